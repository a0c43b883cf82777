// Lets one thread wait until others have done something; uses an eventfd, as loops do.
import CLinux
import Glibc
package import Posix

/// A semaphore that starts at zero: each `signal` lets one `wait` through.
package final class ThreadSemaphore: Sendable {
    private let descriptor: OwnedDescriptor

    package init() throws(SystemError) {
        let number = try check("eventfd") { eventfd(0, CInt(EFD_CLOEXEC) | CInt(EFD_SEMAPHORE)) }
        descriptor = OwnedDescriptor(taking: number)
    }

    /// Lets one waiter through, a current or a later one.
    package func signal() {
        var one: UInt64 = 1
        _ = write(descriptor.number, &one, 8)
    }

    /// Waits until an `signal` lets it through; blocks up to `limit`.
    ///
    /// - Returns: false if `limit` passed first.
    package func wait(atMost limit: Interval) -> Bool {
        var poller = pollfd(fd: descriptor.number, events: Int16(POLLIN), revents: 0)
        let deadline = Monotonic.now() + limit
        while true {
            let left = (deadline - .now()).nanoseconds / 1_000_000
            let count = poll(&poller, 1, CInt(max(0, min(left, 1_000_000))))
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            var value: UInt64 = 0
            return read(descriptor.number, &value, 8) == 8
        }
    }
}
