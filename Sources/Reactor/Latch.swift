// Lets one thread wait until others have done something; an eventfd, as for loops.
import CLinux
import Glibc
package import Posix

/// Closed until `open`, then open for good.
package final class Latch: Sendable {
    private let descriptor: OwnedDescriptor

    package init() throws(SystemError) {
        let number = try check("eventfd") { eventfd(0, CInt(EFD_CLOEXEC) | CInt(EFD_SEMAPHORE)) }
        descriptor = OwnedDescriptor(taking: number)
    }

    /// Lets one waiter, present or to come, through.
    package func open() {
        var one: UInt64 = 1
        _ = write(descriptor.number, &one, 8)
    }

    /// Waits to be let through; blocks up to `limit`.
    ///
    /// - Returns: false when the time was up first.
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
