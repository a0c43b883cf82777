// The access log: one line per request, written by a separate thread.
import Glibc
import Logging
import Model
import Posix
import Reactor
import Synchronization

/// Accepts lines from any thread without waiting for the disk; when the buffer is full, lines are
/// dropped and counted.
package final class AccessLog: Sendable {
    /// Bytes that may wait for the disk.
    private static let most = 1 << 20
    /// How long the reader of a pipe may take for the bytes that wait; the end of the daemon waits
    /// for it.
    private static let patience = Interval.seconds(2 as Int64)

    private struct State {
        var waiting: [UInt8] = []
        var isWriting = false
        /// The lines that the buffer had no room for since the last write.
        var dropped = 0
        /// The deadline of all writes once the log is being closed.
        var end: Monotonic?
    }

    private struct Output: ~Copyable {
        /// Nil for standard output.
        var file: OwnedDescriptor?
        /// True if the last line was not written to its end.
        var isTorn = false
        /// The lines dropped since the daemon's log said that some are; 0 while none are.
        var dropped = 0
    }

    private let path: String
    private let state = Mutex(State())
    private let output: Mutex<Output>
    private let thread: LoopThread
    private let counters: Counters
    private let log: Logger

    /// Opens the log and starts its thread.
    ///
    /// - Parameters:
    ///   - path: a file that is appended to and created if missing, a named pipe, or `-` for
    ///     standard output.
    ///   - counters: counts dropped lines.
    ///   - log: for dropped lines, and a file that cannot be reopened.
    /// - Throws: `SystemError` if the file cannot be opened.
    init(path: String, counters: Counters, log: Logger) throws(SystemError) {
        self.path = path
        self.counters = counters
        self.log = log
        output = Mutex(Output(file: try Self.open(path)))
        thread = try LoopThread(name: "access log") { _ in }
    }

    private static func open(_ path: String) throws(SystemError) -> OwnedDescriptor? {
        guard path != "-" else { return nil }
        let file = try openAtOnce(path)
        // Writes have a deadline of their own (BoundedWrite).
        _ = fcntl(file.number, F_SETFL, fcntl(file.number, F_GETFL) & ~O_NONBLOCK)
        return file
    }

    /// Opens the file without waiting for anybody.
    ///
    /// A named pipe is opened for reading too, so that lines wait in it while it has no other
    /// reader (fifo(7)): open(2) for writing alone would wait for one, and neither the start nor
    /// the end of the daemon may.
    private static func openAtOnce(_ path: String) throws(SystemError) -> OwnedDescriptor {
        var found = stat()
        if stat(path, &found) == 0, found.st_mode & S_IFMT == S_IFIFO {
            do throws(SystemError) {
                return try openFile(path, flags: O_RDWR | O_APPEND | O_NONBLOCK)
            } catch {
                // A pipe that this user may only write to needs a reader now.
                guard error.code == EACCES else { throw error }
            }
        }
        return try openFile(path, flags: O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK, mode: 0o600)
    }

    /// Adds a line, which must end in a line feed.
    func append(_ line: [UInt8]) {
        let (isKept, startsWriting) = state.withLock { state -> (Bool, Bool) in
            guard state.waiting.count + line.count <= Self.most else {
                state.dropped += 1
                return (false, false)
            }
            state.waiting.append(contentsOf: line)
            let starts = !state.isWriting
            state.isWriting = true
            return (true, starts)
        }
        if !isKept { counters.add(.accessLogDropped) }
        if startsWriting { writeSoon() }
    }

    /// Reopens the file, after it was moved away; keeps the old one if that fails.
    package func reopen() {
        thread.handle.enqueue { [weak self] _ in
            self?.openAnew()
        }
    }

    private func openAnew() {
        guard path != "-" else { return }
        output.withLock { output in
            do throws(SystemError) {
                let former = FileIdentity(of: output.file?.number ?? STDOUT_FILENO)
                output.file = try Self.open(path)
                // A cut line only has to be ended in the file that it is in.
                if FileIdentity(of: output.file?.number ?? STDOUT_FILENO) != former {
                    output.isTorn = false
                }
            } catch {
                log.warning(
                    "the access log goes on in its former file",
                    metadata: [
                        "reason": "\(error); make its folder writable, and send SIGHUP again"
                    ])
            }
        }
    }

    /// Writes the buffered lines and ends the thread; blocks on the disk, but not on a reader that
    /// does not read.
    package func close() {
        // One deadline for all: a stop takes no longer for lines that come meanwhile.
        state.withLock { $0.end = Monotonic.now() + Self.patience }
        thread.stopAndJoin()
        while writeWaiting() {}
        tell(dropped: 0)
    }

    private func writeSoon() {
        thread.handle.enqueue { [weak self] _ in self?.writeOnce() }
    }

    /// Writes the lines that wait; later ones get another job, so that `reopen` and the end have
    /// their turn although nobody reads a pipe.
    private func writeOnce() {
        _ = writeWaiting()
        let goesOn = state.withLock { state -> Bool in
            state.isWriting = !state.waiting.isEmpty
            return state.isWriting
        }
        if goesOn { writeSoon() }
    }

    /// Writes the lines that wait; false if none did.
    private func writeWaiting() -> Bool {
        let (lines, end) = state.withLock { state -> ([UInt8], Monotonic?) in
            var taken: [UInt8] = []
            swap(&taken, &state.waiting)
            return (taken, state.end)
        }
        guard !lines.isEmpty else { return false }
        write(lines, until: end ?? (Monotonic.now() + Self.patience))
        return true
    }

    /// Writes lines; a full disk or a stuck reader only loses them, and they are counted.
    private func write(_ lines: [UInt8], until deadline: Monotonic) {
        let lineFeed = UInt8(ascii: "\n")
        let lost = output.withLock { output -> Int in
            // A line that was cut ends before the next one begins.
            let bytes = output.isTorn ? [lineFeed] + lines : lines
            let done = BoundedWrite.write(
                bytes, to: output.file?.number ?? STDOUT_FILENO, until: deadline)
            if done > 0 { output.isTorn = bytes[done - 1] != lineFeed }
            return bytes[max(done, bytes.count - lines.count)...].count { $0 == lineFeed }
        }
        if lost > 0 { counters.add(.accessLogDropped, Int64(lost)) }
        // Those of `append` too, which is called on server loops: the log may wait for its reader.
        let dropped = state.withLock { state -> Int in
            defer { state.dropped = 0 }
            return state.dropped
        }
        tell(dropped: lost + dropped)
    }

    /// Logs once that lines are dropped, and how many they were once a write drops none.
    ///
    /// - Parameter dropped: the lines dropped by and since the last write.
    private func tell(dropped: Int) {
        let former = output.withLock { output -> Int in
            let former = output.dropped
            output.dropped = dropped > 0 ? former + dropped : 0
            return former
        }
        if dropped > 0, former == 0 {
            log.warning(
                "lines of the access log are dropped",
                metadata: ["reason": "its disk is full or slow, or nobody reads it"])
        } else if dropped == 0, former > 0 {
            log.notice(
                "lines of the access log are no longer dropped", metadata: ["lines": "\(former)"])
        }
    }
}
