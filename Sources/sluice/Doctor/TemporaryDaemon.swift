// A daemon for as long as a command needs one, which leaves nothing when a signal ends the command.
import Glibc
import Posix

/// A daemon with a cache folder of its own, ended by `stop`, and with this process.
final class TemporaryDaemon {
    let base: String
    private let child: ChildProgram

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
            folder = try Interruption.makeTemporary("sluice-doctor")
        } catch {
            throw Fault(text: "\(error)")
        }
        var command = [InspectLoader.absolutePath("/proc/self/exe") ?? "sluice", "serve"]
        command += arguments
        command += ["--bind", "127.0.0.1", "--port", "0", "--cache-dir", folder + "/cache"]
        command += ["--access-log", "/dev/null", "--log-format", "text", "--drain-timeout", "0"]
        // It is gone in a moment: other nodes must not count it, nor repeat what it does.
        command += ["--shared-store", "off"]
        // No proxy in front removes a base path from its links.
        command += ["--drain-delay", "0", "--base-path", "/"]
        if speaksTLS { command += ["--tls-port", "0"] }
        do throws(SystemError) {
            let output = try openFile(
                folder + "/output", flags: O_WRONLY | O_CREAT | O_APPEND)
            let errors = try openFile(
                folder + "/errors", flags: O_WRONLY | O_CREAT | O_APPEND)
            child = try Interruption.start(
                command, output: output.number, errors: errors.number)
        } catch {
            Interruption.removeFolder()
            throw Fault(text: "\(error)")
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
        Interruption.removeFolder(afterEndOf: child)
    }
}
