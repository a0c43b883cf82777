// A file descriptor with a single owner, which closes it.
import CLinux
import Glibc

/// Owns one descriptor and closes it at the end of its life (close(2)).
package struct OwnedDescriptor: ~Copyable, Sendable {
    /// The descriptor's number, valid for system calls while the owner lives.
    package let number: CInt

    /// Takes ownership of a descriptor that nothing else closes.
    package init(taking number: CInt) {
        precondition(number >= 0, "a descriptor is never negative")
        self.number = number
    }

    deinit {
        // The descriptor is closed even if close fails; a retry after EINTR could close a reused
        // number.
        _ = close(number)
    }
}

/// Duplicates a descriptor (fcntl(2), F_DUPFD_CLOEXEC).
package func duplicate(_ number: CInt) throws(SystemError) -> OwnedDescriptor {
    OwnedDescriptor(taking: try check("fcntl") { clinux_fcntl(number, F_DUPFD_CLOEXEC, 0) })
}

/// Shares one descriptor between readers, a flight and the store; the last reference closes it.
package final class SharedDescriptor: Sendable {
    private let owned: OwnedDescriptor

    package init(_ descriptor: consuming OwnedDescriptor) {
        owned = descriptor
    }

    /// The descriptor's number, valid while this object is held.
    package var number: CInt { owned.number }
}
