// The access log: one line per request, written by a separate thread.
import Glibc
import Model
import Posix
import Reactor
import Synchronization

/// Accepts lines from any thread without waiting for the disk; when the buffer is full, lines are
/// dropped and counted.
package final class AccessLog: Sendable {
    /// Bytes that may wait for the disk.
    private static let most = 1 << 20

    private struct State {
        var waiting: [UInt8] = []
        var isWriting = false
    }

    private let path: String
    private let state = Mutex(State())
    private let file: Mutex<OwnedDescriptor?>
    private let thread: LoopThread
    private let counters: Counters

    /// Opens the log and starts its thread.
    ///
    /// - Parameters:
    ///   - path: a file that is appended to and created if missing, or `-` for standard output.
    ///   - counters: counts dropped lines.
    /// - Throws: `SystemError` if the file cannot be opened.
    init(path: String, counters: Counters) throws(SystemError) {
        self.path = path
        self.counters = counters
        file = Mutex(try Self.open(path))
        thread = try LoopThread(name: "access log") { _ in }
    }

    private static func open(_ path: String) throws(SystemError) -> OwnedDescriptor? {
        guard path != "-" else { return nil }
        return try openFile(path, flags: O_WRONLY | O_APPEND | O_CREAT, mode: 0o600)
    }

    /// Adds a line, which must end in a line feed.
    func append(_ line: [UInt8]) {
        let (isKept, startsWriting) = state.withLock { state -> (Bool, Bool) in
            guard state.waiting.count + line.count <= Self.most else { return (false, false) }
            state.waiting.append(contentsOf: line)
            let starts = !state.isWriting
            state.isWriting = true
            return (true, starts)
        }
        if !isKept { counters.add(.accessLogDropped) }
        if startsWriting { thread.handle.enqueue { [weak self] _ in self?.write() } }
    }

    /// Reopens the file, after it was moved away; keeps the old one if that fails.
    package func reopen() {
        thread.handle.enqueue { [weak self] _ in
            self?.openAnew()
        }
    }

    private func openAnew() {
        guard path != "-" else { return }
        file.withLock { file in
            do throws(SystemError) { file = try Self.open(path) } catch {}
        }
    }

    /// Writes the buffered lines and ends the thread; blocks on the disk.
    package func close() {
        thread.stopAndJoin()
        write()
    }

    private func write() {
        while true {
            let bytes = state.withLock { state -> [UInt8] in
                var taken: [UInt8] = []
                swap(&taken, &state.waiting)
                if taken.isEmpty { state.isWriting = false }
                return taken
            }
            guard !bytes.isEmpty else { return }
            file.withLock { file in
                Self.write(bytes, to: file?.number ?? STDOUT_FILENO)
            }
        }
    }

    private static func write(_ bytes: [UInt8], to file: CInt) {
        bytes.withUnsafeBytes { raw in
            var done = 0
            while done < raw.count {
                let count = Glibc.write(file, raw.baseAddress?.advanced(by: done), raw.count - done)
                if count < 0, errno == EINTR { continue }
                // A full disk only loses lines.
                guard count > 0 else { return }
                done += count
            }
        }
    }
}
