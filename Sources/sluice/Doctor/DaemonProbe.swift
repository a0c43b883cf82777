// Finds the daemon of a configuration, or starts one for as long as it is needed.
import CommandSupport
import DaemonService
import Diagnosis
import FoundationEssentials
import Glibc
import Numbers
import Model
import Posix
import Synchronization

/// What listens at the addresses of a configuration.
struct DaemonProbe {
    /// The base URL of the first daemon that answers; nil where none does.
    private(set) var base: String?
    private(set) var findings: [Finding] = []

    /// Asks at each address; blocks for seconds at most.
    init(_ configuration: DaemonConfiguration) {
        let addresses = configuration.addresses.filter { $0.port != 0 }
        for (base, address) in zip(configuration.localBases, addresses) {
            let (finding, isDaemon) = Self.look(at: base, address, configuration.proxy.token)
            findings.append(finding)
            if isDaemon, self.base == nil { self.base = base }
        }
        if findings.isEmpty {
            findings.append(.ok("port", "none is fixed; the daemon takes a free one"))
        }
    }

    private struct Version: Decodable { let version: String }

    private static func look(
        at base: String, _ address: SocketAddress, _ token: String?
    ) -> (Finding, isDaemon: Bool) {
        let check = "port \(address.port)"
        func ask(_ path: String) throws(BlockingClient.Failure) -> (status: Int, text: String) {
            var request = BlockingClient.Request("GET", base + path)
            request.milliseconds = 3_000
            request.connectSeconds = 2
            if let token { request.fields = ["Authorization: Bearer \(token)"] }
            let (answer, bytes) = try BlockingClient().body(of: request, upTo: 4 << 20)
            return (answer.status, String(decoding: bytes, as: UTF8.self))
        }
        do throws(BlockingClient.Failure) {
            let health = try ask("/api/health")
            if health.status == 401, health.text.hasPrefix("client error:") {
                let advice = "give its token with --token or SLUICE_TOKEN"
                return (.problem(check, "a daemon answers and requires its token", advice), false)
            }
            guard health.status == 200, health.text.contains("\"status\":\"ok\"") else {
                return (otherProgram(check), false)
            }
            let stats = try ask("/api/stats")
            guard
                let version = try? JSONDecoder().decode(
                    Version.self, from: Data(stats.text.utf8)
                ).version
            else { return (otherProgram(check), false) }
            guard version == sluiceVersion else {
                let advice = "restart the daemon to run this program's version"
                let text =
                    "a daemon of version \(version) answers; this program is \(sluiceVersion)"
                return (.warning(check, text, advice), true)
            }
            return (.ok(check, "a daemon of version \(version) answers"), true)
        } catch {
            guard error.kind == .refused else {
                let advice = "find the process with `ss -ltnp`; restart it if it is the daemon"
                let text = "a process has it and does not answer: \(error.reason)"
                return (.problem(check, text, advice), false)
            }
        }
        do throws(SystemError) {
            _ = try listenFirst(on: address)
            return (.ok(check, "free; no daemon runs"), false)
        } catch {
            let advice =
                error.code == EACCES
                ? "choose one from 1024 on with --port"
                : "choose an address of this machine and a free port"
            return (.problem(check, "cannot be listened on: \(error)", advice), false)
        }
    }

    private static func otherProgram(_ check: String) -> Finding {
        .problem(
            check, "another program answers there",
            "stop it, or choose another port with --port")
    }
}
