import CLinux
import Glibc

/// The stream to which `print` writes.
package enum StandardOutput {
    /// Writes what is still buffered.
    ///
    /// - Returns: why something that was printed is lost; nil if nothing is. A reader that closes
    ///   its end of a pipe, as head(1) does, has what it wanted.
    package static func finish() -> String? {
        let code = clinux_finish_output()
        switch code {
        case 0, EPIPE: return nil
        case -1: return isPipe && hasNoReader ? nil : "an earlier write failed"
        default: return String(cString: strerror(code))
        }
    }

    private static var isPipe: Bool {
        var found = stat()
        guard fstat(STDOUT_FILENO, &found) == 0 else { return false }
        let kind = found.st_mode & S_IFMT
        return kind == S_IFIFO || kind == S_IFSOCK
    }

    /// True if the reader of a pipe or socket has closed its end.
    ///
    /// A reader that is only slow loses output, too, if the pipe is non-blocking.
    private static var hasNoReader: Bool {
        var state = pollfd(fd: STDOUT_FILENO, events: Int16(POLLOUT), revents: 0)
        guard poll(&state, 1, 0) == 1 else { return false }
        return CInt(state.revents) & (POLLERR | POLLHUP) != 0
    }
}
