// A system call that failed: which, with what errno, on what.
import Glibc

/// The failure of one system call (errno(3)).
package struct SystemError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The call, as its manual page names it.
    package let call: StaticString
    /// The errno it left.
    package let code: CInt
    /// The path or address it was about, if any; never a secret.
    package let subject: String

    package init(_ call: StaticString, code: CInt, subject: String = "") {
        self.call = call
        self.code = code
        self.subject = subject
    }

    package static func == (a: SystemError, b: SystemError) -> Bool {
        a.code == b.code && "\(a.call)" == "\(b.call)" && a.subject == b.subject
    }

    /// True for failures of storage that leave the network path usable (full, read-only, broken,
    /// over quota, out of descriptors).
    package var isStorageExhausted: Bool {
        switch code {
        case ENOSPC, EDQUOT, EROFS, EIO, EMFILE, ENFILE, EFBIG: true
        default: false
        }
    }

    package var description: String {
        let text = String(cString: strerror(code))
        return subject.isEmpty ? "\(call): \(text)" : "\(call) \(subject): \(text)"
    }
}

/// Runs a call that answers -1 on failure; retries EINTR.
package func check<Value: SignedInteger>(
    _ call: StaticString, _ subject: @autoclosure () -> String = "", _ body: () -> Value
) throws(SystemError) -> Value {
    while true {
        let value = body()
        if value != -1 { return value }
        let code = errno
        if code == EINTR { continue }
        throw SystemError(call, code: code, subject: subject())
    }
}

/// The outcome of a non-blocking read.
package enum ReadOutcome: Equatable, Sendable {
    /// So many bytes arrived; at least one.
    case bytes(Int)
    /// Nothing now; wait for readiness.
    case wouldBlock
    /// The other side ended its stream.
    case end
}

/// The outcome of a non-blocking write.
package enum WriteOutcome: Equatable, Sendable {
    /// So many bytes were taken; at least one, unless none were offered.
    case bytes(Int)
    /// No room now; wait for readiness.
    case wouldBlock
    /// The other side is gone (EPIPE, ECONNRESET).
    case closed
}

extension SystemError {
    /// Whether the disk or the budget was full (`errno(3)`: ENOSPC, EDQUOT).
    package var isLackOfRoom: Bool { [ENOSPC, EDQUOT].contains(code) }
}
