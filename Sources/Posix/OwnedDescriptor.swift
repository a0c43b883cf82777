// A file descriptor with one owner that closes it.
import CLinux
import Glibc

/// Owns one descriptor; closing is its end of life (close(2)).
package struct OwnedDescriptor: ~Copyable, Sendable {
    /// The descriptor's number, to be lent to system calls while the owner lives.
    package let number: CInt

    /// Takes over a descriptor that nobody else will close.
    package init(taking number: CInt) {
        precondition(number >= 0, "a descriptor is never negative")
        self.number = number
    }

    deinit {
        // The descriptor is gone whatever close says; retrying EINTR could close another's.
        _ = close(number)
    }
}

/// Another number for what a descriptor stands for (fcntl(2), F_DUPFD_CLOEXEC).
package func duplicate(_ number: CInt) throws(SystemError) -> OwnedDescriptor {
    OwnedDescriptor(taking: try check("fcntl") { clinux_fcntl(number, F_DUPFD_CLOEXEC, 0) })
}

/// Shares one descriptor between readers, a flight and the store; the last one out closes it.
package final class SharedDescriptor: Sendable {
    private let owned: OwnedDescriptor

    package init(_ descriptor: consuming OwnedDescriptor) {
        owned = descriptor
    }

    /// The descriptor's number, valid while this object is held.
    package var number: CInt { owned.number }
}
