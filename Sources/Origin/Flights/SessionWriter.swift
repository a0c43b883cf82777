import Glibc
import Logging
import Posix
import Reactor
import Upstream

/// Reads and writes the file of persistent TLS sessions, off the upstream loop.
final class SessionWriter: Sendable {
    private let path: String
    private let thread: LoopThread
    private let log: Logger

    /// Nil if the system cannot create another thread.
    init?(_ path: String, log: Logger) {
        guard let thread = try? LoopThread(name: "tls-sessions", { _ in }) else { return nil }
        self.path = path
        self.thread = thread
        self.log = log
    }

    /// Returns the file's text; nil if it is absent or unreadable.
    ///
    /// Blocks on the disk.
    func read() -> String? {
        do throws(SystemError) {
            let bytes = try readWhole(path, atMost: KeptSessions.mostText)
            return String(decoding: bytes, as: UTF8.self)
        } catch {
            if error.code != ENOENT {
                log.warning("kept TLS sessions are ignored: \(error)")
            }
            return nil
        }
    }

    func save(_ text: String) {
        thread.handle.enqueue { [path, log] _ in
            let folder = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
            do throws(SystemError) {
                // Mode 0600: a session lets whoever has it impersonate the daemon.
                try replaceFile(path, with: Array(text.utf8), in: folder, mode: 0o600)
            } catch {
                log.warning("TLS sessions could not be saved: \(error)")
            }
        }
    }

    /// Waits until everything is written; blocks.
    func stop() { thread.stopAndJoin() }
}
