// The error of a failed system call.
import Glibc

/// A failed system call: its name, its errno (errno(3)) and its subject.
package struct SystemError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The call, as its manual page names it.
    package let call: StaticString
    /// The errno of the failure.
    package let code: CInt
    /// The path or address that the call was given, if any; never a secret.
    package let subject: String

    package init(_ call: StaticString, code: CInt, subject: String = "") {
        self.call = call
        self.code = code
        self.subject = subject
    }

    package static func == (a: SystemError, b: SystemError) -> Bool {
        a.code == b.code && "\(a.call)" == "\(b.call)" && a.subject == b.subject
    }

    /// True for storage failures that leave the network usable (full, read-only, broken, over
    /// quota, out of descriptors).
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

/// Runs a call that returns -1 on failure; retries EINTR.
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
    /// This many bytes arrived; at least one.
    case bytes(Int)
    /// Nothing has arrived; wait for readiness.
    case wouldBlock
    /// The other side ended its stream.
    case end
}

/// The outcome of a non-blocking write.
package enum WriteOutcome: Equatable, Sendable {
    /// This many bytes were accepted; at least one, unless none were offered.
    case bytes(Int)
    /// The buffer is full; wait for readiness.
    case wouldBlock
    /// The peer is gone (EPIPE, ECONNRESET).
    case closed
}

extension SystemError {
    /// True if the disk or the budget was full (`errno(3)`: ENOSPC, EDQUOT).
    package var isLackOfRoom: Bool { [ENOSPC, EDQUOT].contains(code) }
}
