// How long a connection lingers: pure.
import Posix

/// Counts the input that is discarded, and compares, at the deadlines of lingering, how many bytes
/// the client has not acknowledged.
///
/// While the kernel has bytes for a slow reader, the socket must stay open: after its end,
/// anything that the client sends, such as WINDOW_UPDATE, makes the kernel reset the connection
/// and discard them.
struct LingerProgress {
    /// The number of deadlines after which a client that still reads is not waited for any more.
    ///
    /// Ten minutes at the default of two seconds: a client could read a byte between two of them.
    static let mostDeadlines = 300
    private var unacknowledged = Int.max
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
        let before = unacknowledged
        unacknowledged = count
        deadlines += 1
        return count > 0 && count < before && deadlines < Self.mostDeadlines
    }
}
