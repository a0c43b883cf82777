// Whether the client of a full socket still reads: pure.

/// Compares, at the deadlines of a full socket, how many bytes the client has not read.
///
/// The kernel reports room only once a third of the send buffer is free (tcp(7)), which is more
/// than a megabyte where the buffer has grown; a player that reads as fast as it plays may need
/// minutes for that.
struct WriteProgress {
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
