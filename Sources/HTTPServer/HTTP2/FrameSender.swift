// The writing half of an HTTP/2 connection's socket.
import Posix
import Reactor
import TLS

/// Sends frames, and keeps those that the socket has no room for: at most one turn's.
struct FrameSender {
    private let number: CInt
    private let tls: TLSSession?
    private var unsent: [UInt8] = []
    private var start = 0
    /// When the client must have read; nil while nothing waits.
    private(set) var deadline: Monotonic?
    /// What the client has read at the deadlines since the socket last accepted bytes.
    private var progress = ReadingProgress()

    init(to number: CInt, through tls: TLSSession?) {
        self.number = number
        self.tls = tls
    }

    /// True while bytes wait for room in the socket.
    var hasUnsent: Bool { start < unsent.count || (tls?.hasUnsent ?? false) }

    /// Sends the waiting bytes, then `frames`, and keeps the rest; the client of a full socket must
    /// read within `patience`.
    ///
    /// - Returns: `.bytes` once everything is in the kernel or in the TLS session's records.
    mutating func send(
        _ frames: UnsafeRawBufferPointer?, now: Monotonic, patience: Interval
    ) -> WriteOutcome {
        var outcome = WriteOutcome.bytes(0)
        while start < unsent.count {
            outcome = unsent.withUnsafeBytes {
                write(UnsafeRawBufferPointer(rebasing: $0[start...]))
            }
            guard case .bytes(let count) = outcome else { return wait(outcome, now, patience) }
            start += count
            deadline = nil
        }
        forget()
        var rest = frames ?? UnsafeRawBufferPointer(start: nil, count: 0)
        while !rest.isEmpty {
            outcome = write(rest)
            guard case .bytes(let count) = outcome else {
                unsent = Array(rest)
                return wait(outcome, now, patience)
            }
            rest = UnsafeRawBufferPointer(rebasing: rest[count...])
            deadline = nil
        }
        if let tls, tls.hasUnsent {
            outcome = tls.flush(to: number)
            guard case .bytes = outcome else { return wait(outcome, now, patience) }
        }
        deadline = nil
        return .bytes(frames?.count ?? 0)
    }

    /// Drops the waiting bytes.
    mutating func forget() {
        unsent = []
        start = 0
    }

    private func write(_ bytes: UnsafeRawBufferPointer) -> WriteOutcome {
        guard let tls else { return Posix.send(bytes, to: number) }
        return tls.send(bytes, to: number)
    }

    private mutating func wait(
        _ outcome: WriteOutcome, _ now: Monotonic, _ patience: Interval
    ) -> WriteOutcome {
        if deadline == nil {
            deadline = now + patience
            progress = ReadingProgress()
        }
        return outcome
    }

    /// Extends the passed deadline if the client has read since the one before.
    ///
    /// - Returns: false if it has read nothing.
    mutating func extendDeadline(now: Monotonic, patience: Interval) -> Bool {
        let waiting = tls?.unsentCount ?? 0
        guard progress.hasRead(unacknowledgedBytes(of: number) + waiting) else { return false }
        deadline = now + patience
        return true
    }
}
