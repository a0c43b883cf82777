// What a window knows of its line, and which queue it aims at there.
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

    /// The target of the queue in packets, and its limit in shortest targets.
    private static let packetsOfTarget = (least: 4.0, limit: 4.0)
    /// The bytes of a full packet.
    private static let packet = 1_500.0

    /// Returns the highest rate of the last two minutes, in bytes a second; nil without any.
    func highestRate(at now: Double) -> Double? { others.highestRate(at: now) }

    /// Returns the bytes that fill the line, as the last two minutes have shown; nil where nothing
    /// is known of it.
    func lineWindow(of path: LowestDelay, at now: Double) -> Double? {
        guard let lowest = path.value, let rate = others.highestRate(at: now) else { return nil }
        return min(max(rate * lowest, Self.leastWindow), Self.mostWindow)
    }

    /// Returns the queue that is aimed at, in seconds; background leaves room for players.
    ///
    /// The lowest delay may be that of a handshake, whose packets take no time on the line. On a
    /// slow line each full packet is a queue beside it, so that the target is no less than some
    /// packets.
    ///
    /// - Parameters:
    ///   - lowest: the delay of the empty line, in seconds.
    ///   - lineRate: the highest rate of all that used the line (`LineRates`), in bytes a second;
    ///     nil if unknown. That of background which has given way for long says little of the line.
    ///   - now: seconds of a monotonic clock.
    /// - Returns: seconds.
    func target(of lowest: Double, lineRate: Double?, at now: Double) -> Double {
        let usual = max(Self.target.least, Self.target.share * lowest)
        let rate = max(lineRate ?? 0, highestRate(at: now) ?? 0)
        let packets = rate > 0 ? Self.packetsOfTarget.least * Self.packet / rate : 0
        let target = min(max(usual, packets), Self.packetsOfTarget.limit * usual)
        return purpose == .background ? target / 2 : target
    }
}

/// The rates that paths have shown lately, to tell what the line of one of them carries: pure.
struct LineRates: Sendable {
    private var shown: [(lowest: Double, rate: Double)] = []

    /// A path shares no line with another if its lowest delay is less than both: so many seconds,
    /// and this share of the other's.
    ///
    /// Not by the share alone: a CDN's nearest address and a distant origin are mostly behind the
    /// same line, and a download from there would take it from players. On fibre such an address
    /// is 1.5 to 3 ms away, a server on a cable in the house less than half of one.
    private static let nearby = (delay: 0.001, share: 0.25)

    /// Takes the highest rate that one window of a path has shown, in bytes a second.
    mutating func note(_ rate: Double, of path: LowestDelay) {
        if let lowest = path.value { shown.append((lowest, rate)) }
    }

    /// Returns the highest rate of all paths that can share the line of one, in bytes a second; nil
    /// without any, or where nothing is known of that path.
    func highest(for path: LowestDelay) -> Double? {
        guard let lowest = path.value else { return nil }
        let least = min(Self.nearby.delay, Self.nearby.share * lowest)
        return shown.lazy.filter { $0.lowest >= least }.map(\.rate).max()
    }
}
