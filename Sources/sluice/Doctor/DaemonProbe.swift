// Finds the daemon of a configuration, or starts one for as long as it is needed.
import CommandSupport
import DaemonService
import Diagnosis
import FoundationEssentials
import Glibc
import Model
import Numbers
import Posix
import Synchronization

/// A daemon that answers to this machine.
struct FoundDaemon {
    /// The base URL at which it listens.
    let base: String
    /// The base path that its links begin with, which a proxy in front removes; "" or "/x".
    var basePath = ""
    /// A PEM file of an authority that is trusted besides the system's; nil for none.
    var authority: String?
    /// What it says of its shared store; none without one.
    var storeFindings: [Finding] = []
}

/// What listens at the addresses of a configuration.
struct DaemonProbe {
    /// The first daemon that answers; nil where none does.
    private(set) var daemon: FoundDaemon?
    private(set) var findings: [Finding] = []

    /// Why what listens could not be asked, and what to do; nil if a daemon answers, or nothing
    /// listens.
    var fault: String? {
        guard daemon == nil, let finding = findings.first(where: { $0.verdict != .ok }) else {
            return nil
        }
        return [finding.text, finding.advice].compactMap { $0 }.joined(separator: "; ")
    }

    /// Asks at each address; blocks for seconds at most.
    init(_ configuration: DaemonConfiguration) {
        for listener in configuration.localListeners {
            // A daemon that answers in the clear holds its ports for TLS too.
            if listener.isSecure, daemon != nil { break }
            let (finding, found) = Self.look(at: listener, configuration.proxy)
            findings.append(finding)
            if daemon == nil {
                daemon = found
                findings += found?.storeFindings ?? []
            }
        }
        if findings.isEmpty {
            findings.append(.ok("port", "none is fixed; the daemon takes a free one"))
        }
    }

    private struct Version: Decodable { let version: String }

    private struct Settings: Decodable {
        struct Setting: Decodable {
            let name: String
            let values: [String]
        }

        let settings: [Setting]

        /// The base path without the slash at its end.
        var basePath: String {
            let given = settings.first { $0.name == "base-path" }?.values.first ?? ""
            return given.hasSuffix("/") ? String(given.dropLast()) : given
        }
    }

    private struct Origins: Decodable {
        let store: SharedStoreLine?

        enum CodingKeys: String, CodingKey {
            case store = "shared_store"
        }

        var findings: [Finding] {
            guard let store else { return [] }
            let check = "shared store"
            guard store.state == "up" else {
                let reason = store.reason ?? "it does not answer"
                return [
                    .problem(
                        check, "\(store.store) is left out: \(reason)",
                        "correct --shared-store and its credentials, or look at the store")
                ]
            }
            guard !store.failures.isEmpty else { return [.ok(check, "\(store.store) is used")] }
            return store.failures.map {
                .problem(check, $0, "let the credentials list, read, write and delete objects")
            }
        }
    }

    private static func look(
        at listener: LocalListener, _ proxy: ProxySettings
    ) -> (Finding, FoundDaemon?) {
        let check = "\(listener.isSecure ? "TLS port" : "port") \(listener.address.port)"
        let option = listener.isSecure ? "--tls-port" : "--port"
        let authority = listener.isSecure ? DaemonAccess.authority(nil) : nil
        func ask(_ path: String) throws(BlockingClient.Failure) -> (status: Int, text: String) {
            var request = BlockingClient.Request("GET", listener.base + path)
            request.authority = authority
            request.milliseconds = 3_000
            request.connectSeconds = 2
            if let token = proxy.token { request.fields = ["Authorization: Bearer \(token)"] }
            let (answer, bytes) = try BlockingClient().body(of: request, upTo: 4 << 20)
            return (answer.status, String(decoding: bytes, as: UTF8.self))
        }
        do throws(BlockingClient.Failure) {
            let health = try ask("/api/health")
            if let finding = tokenFault(check, health, proxy) { return (finding, nil) }
            guard health.status == 200, health.text.contains("\"status\":\"ok\"") else {
                return (otherProgram(check, option), nil)
            }
            // Health needs no token; all other pages do.
            let stats = try ask("/api/stats")
            if let finding = tokenFault(check, stats, proxy) { return (finding, nil) }
            guard let version = decode(Version.self, stats)?.version else {
                return (otherProgram(check, option), nil)
            }
            // The daemon's own settings count: it may have been started with other options.
            let settings = decode(Settings.self, try? ask("/api/settings"))
            let origins = decode(Origins.self, try? ask("/api/origins"))
            let found = FoundDaemon(
                base: listener.base, basePath: settings?.basePath ?? proxy.basePath,
                authority: authority, storeFindings: origins?.findings ?? [])
            guard version == sluiceVersion else {
                let advice = "restart the daemon to run this program's version"
                let text =
                    "a daemon of version \(version) answers; this program is \(sluiceVersion)"
                return (.warning(check, text, advice), found)
            }
            return (.ok(check, "a daemon of version \(version) answers"), found)
        } catch {
            if error.kind == .untrusted {
                let advice =
                    "name the authority with SLUICE_DAEMON_CA; the certificate must name the address too"
                let text =
                    "not checked: a process has it whose certificate is not trusted: \(error.reason)"
                return (.warning(check, text, advice), nil)
            }
            guard error.kind == .refused else {
                let advice = "find the process with `ss -ltnp`; restart it if it is the daemon"
                let text = "a process has it and does not answer: \(error.reason)"
                return (.problem(check, text, advice), nil)
            }
        }
        do throws(SystemError) {
            _ = try listenFirst(on: listener.address)
            return (.ok(check, "free; no daemon runs"), nil)
        } catch {
            let advice =
                error.code == EACCES
                ? "choose one from 1024 on with \(option)"
                : "choose an address of this machine and a free port"
            return (.problem(check, "cannot be listened on: \(error)", advice), nil)
        }
    }

    /// Returns what an answer says; nil without one, or if it is another.
    private static func decode<Value: Decodable>(
        _ type: Value.Type, _ answer: (status: Int, text: String)?
    ) -> Value? {
        answer.flatMap { try? JSONDecoder().decode(type, from: Data($0.text.utf8)) }
    }

    /// The finding for a daemon that refused a request for want of its token; nil for other answers.
    private static func tokenFault(
        _ check: String, _ answer: (status: Int, text: String), _ proxy: ProxySettings
    ) -> Finding? {
        guard answer.status == 401, answer.text.hasPrefix("client error:") else { return nil }
        let text =
            proxy.token == nil
            ? "a daemon answers and requires its access token"
            : "a daemon answers and has another access token"
        return .problem(check, text, "give its token with --token or SLUICE_TOKEN")
    }

    private static func otherProgram(_ check: String, _ option: String) -> Finding {
        .problem(
            check, "another program answers there",
            "stop it, or choose another port with \(option)")
    }
}
