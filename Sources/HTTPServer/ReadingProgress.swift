// Whether a client still reads what the kernel has for it: pure.
import Posix

/// Compares, at the deadlines of a full socket, how many bytes the client has not read.
///
/// The kernel reports room only once a third of the send buffer is free (tcp(7)), which is more
/// than a megabyte where the buffer has grown; a player that reads as fast as it plays may need
/// minutes for that.
struct ReadingProgress {
    private var unread = Int.max

    /// Records the number of unread bytes at a deadline.
    ///
    /// - Returns: true if some are left, but fewer than at the deadline before; true at the first.
    mutating func hasRead(_ count: Int) -> Bool {
        let before = unread
        unread = count
        return count > 0 && count < before
    }
}

/// Counts the input that a lingering connection discards, and for how many deadlines its client
/// has gone on reading.
///
/// While the kernel has bytes for a slow reader, the socket must stay open: after its end,
/// anything that the client sends, such as WINDOW_UPDATE, makes the kernel reset the connection
/// and discard them.
struct LingerProgress {
    /// The number of deadlines after which a client that still reads is not waited for any more.
    ///
    /// Ten minutes at the default of two seconds: a client could read a byte between two of them.
    static let mostDeadlines = 300
    private var reading = ReadingProgress()
    private var deadlines = 0
    private var discarded = 0

    /// Reads and discards input until there is none, so that closing does not destroy the last
    /// bytes on their way to the client.
    ///
    /// Returns true if the connection can be closed: the client has closed it, or has sent more
    /// than the limit.
    mutating func discardInput(limit: Int, _ receive: () -> ReadOutcome) -> Bool {
        while true {
            switch receive() {
            case .bytes(let count):
                discarded += count
                if discarded > limit { return true }
            case .wouldBlock: return false
            case .end: return true
            }
        }
    }

    /// Records the number of unacknowledged bytes at a deadline.
    ///
    /// - Returns: true if some are left, but fewer than at the deadline before.
    mutating func isReading(_ count: Int) -> Bool {
        deadlines += 1
        return reading.hasRead(count) && deadlines < Self.mostDeadlines
    }
}
