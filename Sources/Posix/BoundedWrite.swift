import Glibc
import Numbers

/// Writes to pipes, terminals and sockets whose readers may stop reading, without waiting for them
/// beyond a deadline.
///
/// The descriptor stays a blocking one, since its flags belong to every process that has it. So a
/// write may block all the same where another writer fills the pipe between poll(2) and write(2), or
/// a terminal has less room than a piece needs.
package enum BoundedWrite {
    /// The most bytes of a write(2): a pipe that poll(2) finds writable takes PIPE_BUF bytes without
    /// blocking (pipe(7)).
    private static let piece = 4_096

    /// Writes bytes until all are written, a write fails, or the deadline has passed; a regular file
    /// is not waited for.
    ///
    /// - Parameters:
    ///   - bytes: what is written.
    ///   - file: a blocking descriptor.
    ///   - deadline: when the reader must have made room; a passed one writes what fits now.
    /// - Returns: the number of bytes written.
    package static func write(_ bytes: [UInt8], to file: CInt, until deadline: Monotonic) -> Int {
        var found = stat()
        let isFile = fstat(file, &found) == 0 && found.st_mode & S_IFMT == S_IFREG
        var done = 0
        while done < bytes.count, isFile || isWritable(file, until: deadline) {
            let end = isFile ? bytes.count : min(bytes.count, done + piece)
            let count = bytes[done..<end].withUnsafeBytes {
                Glibc.write(file, $0.baseAddress, $0.count)
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { break }
            done += count
        }
        return done
    }

    private static func isWritable(_ file: CInt, until deadline: Monotonic) -> Bool {
        while true {
            let left = max(0, (deadline - .now()).nanoseconds)
            var waiting = pollfd(fd: file, events: Int16(POLLOUT), revents: 0)
            let found = poll(&waiting, 1, CInt(clamping: left.addingSaturated(999_999) / 1_000_000))
            if found < 0, errno == EINTR { continue }
            // A write finds out about errors.
            return found > 0
        }
    }
}
