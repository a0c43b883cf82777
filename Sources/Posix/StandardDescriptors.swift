import CLinux
import Glibc

/// The descriptors 0 to 2, which whoever starts a process may have closed.
package enum StandardDescriptors {
    /// Gives the numbers of closed ones to /dev/null, so that no file or socket of this process
    /// gets them, and with them what is meant for standard output and standard error.
    ///
    /// /dev/null is opened the wrong way round: reads and writes fail as before. To be called
    /// before anything else opens a descriptor.
    package static func occupy() {
        for number in STDIN_FILENO...STDERR_FILENO {
            guard clinux_fcntl(number, F_GETFD, 0) < 0 else { continue }
            // It gets the lowest free number, which is this one; child programs inherit it.
            _ = open("/dev/null", number == STDIN_FILENO ? O_WRONLY : O_RDONLY)
        }
    }
}
