extension QueueWindow {
    /// What the kernel measured since the last sample.
    struct Sample: Sendable {
        /// The lowest round trip of the connections with new bytes, in seconds; nil without any.
        var roundTrip: Double?
        /// The lowest round trip that the handshakes of these connections took, in seconds.
        var handshake: Double?
        /// Bytes that arrived.
        var bytes: Int64 = 0
        /// True if packets arrived out of order, which mostly means that one was lost.
        var isLossy = false
        /// The connections that share the window.
        var connections = 1
        /// The highest rate of the last minutes of all paths that can share the line, in bytes a
        /// second; nil without any.
        var lineRate: Double?
    }
}
