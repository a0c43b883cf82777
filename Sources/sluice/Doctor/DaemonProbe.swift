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
                return (.problem(check, "a daemon answers and wants its token", advice), false)
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
                let advice = "restart the daemon if it is to be of the version of this program"
                let text =
                    "a daemon of version \(version) answers; this program is \(sluiceVersion)"
                return (.warning(check, text, advice), true)
            }
            return (.ok(check, "a daemon of version \(version) answers"), true)
        } catch {
            guard error.kind == .refused else {
                let advice = "see who holds it with `ss -ltnp`; restart it if it is the daemon"
                let text = "something holds it and does not answer: \(error.reason)"
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

/// The process of a `TemporaryDaemon`, for the handler of signals; 0 for none.
private let childID = Atomic<CInt>(0)

/// A daemon with a cache folder of its own, ended by `stop`, and with this process.
final class TemporaryDaemon {
    let base: String
    private let child: ChildProgram
    private let folder: String

    struct Fault: Error {
        let text: String
    }

    /// Starts a daemon; blocks until it listens.
    ///
    /// - Parameters:
    ///   - arguments: options of `serve`; those that name a place are replaced.
    ///   - speaksTLS: whether the settings name a port for TLS, which is replaced then.
    /// - Throws: `Fault` with the last line that the daemon printed.
    init(_ arguments: [String], speaksTLS: Bool) throws(Fault) {
        let folder: String
        do throws(SystemError) {
            folder = try makeTemporaryFolder("sluice-doctor")
        } catch {
            throw Fault(text: "\(error)")
        }
        self.folder = folder
        var command = [InspectLoader.absolutePath("/proc/self/exe") ?? "sluice", "serve"]
        command += arguments
        command += ["--bind", "127.0.0.1", "--port", "0", "--cache-dir", folder + "/cache"]
        command += ["--access-log", "/dev/null", "--log-format", "text", "--drain-timeout", "0"]
        if speaksTLS { command += ["--tls-port", "0"] }
        do throws(SystemError) {
            let output = try openFile(
                folder + "/output", flags: O_WRONLY | O_CREAT | O_APPEND)
            let errors = try openFile(
                folder + "/errors", flags: O_WRONLY | O_CREAT | O_APPEND)
            child = try ChildProgram(command, output: output.number, errors: errors.number)
        } catch {
            removeTree(folder)
            throw Fault(text: "\(error)")
        }
        childID.store(child.id, ordering: .relaxed)
        for number in [SIGINT, SIGTERM, SIGHUP] {
            signal(number) { number in
                let id = childID.load(ordering: .relaxed)
                if id > 0 { kill(id, SIGKILL) }
                _exit(128 + number)
            }
        }
        guard let base = Self.waitUntilReady(child, folder) else {
            let errors = (try? readStart(folder + "/errors", atMost: 2_000)) ?? []
            let text = String(decoding: errors, as: UTF8.self).split(separator: "\n").last
            self.base = ""
            stop()
            throw Fault(text: text.map(String.init) ?? "it did not start within 20 s")
        }
        self.base = base
    }

    private static func waitUntilReady(_ child: ChildProgram, _ folder: String) -> String? {
        let deadline = Monotonic.now() + .seconds(20 as Int64)
        while Monotonic.now() < deadline {
            let bytes = (try? readStart(folder + "/output", atMost: 10_000)) ?? []
            // Only whole lines: the last may still be written.
            for line in bytes.split(separator: 0x0A, omittingEmptySubsequences: false).dropLast() {
                let text = String(decoding: line, as: UTF8.self)
                if text.hasPrefix("sluice ready http://") {
                    return String(text.dropFirst("sluice ready ".utf8.count))
                }
            }
            var found = siginfo_t()
            if waitid(P_PID, id_t(child.id), &found, WEXITED | WNOHANG | WNOWAIT) == 0,
                found.si_signo != 0
            {
                return nil
            }
            usleep(10_000)
        }
        return nil
    }

    /// Ends the daemon and removes its folder; blocks until both is done.
    func stop() {
        childID.store(0, ordering: .relaxed)
        child.end(SIGTERM, within: 5)
        removeTree(folder)
    }
}
