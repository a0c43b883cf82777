// Whether the client of a lingering connection still reads: pure.

/// Compares, at the deadlines of lingering, how many bytes the client has not acknowledged.
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
