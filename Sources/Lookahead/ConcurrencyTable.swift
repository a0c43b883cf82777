/// The controller by thresholds: so many transfers for so much goodput.

/// Looks the limit up by the goodput of the last seconds.
///
/// The published clients that work so name what they read (speed, processor, memory, battery) but
/// not their figures; these thresholds are ours, chosen so that each row's transfers keep its link
/// busy at 1 MB a segment and 100 ms to the first byte. What it cannot see is why goodput is low: a
/// link whose hosts limit each connection stays at few transfers for ever.
///
/// | goodput, MB/s, from | transfers |
/// |---|---|
/// | 0 | 2 |
/// | 0.25 | 3 |
/// | 0.5 | 4 |
/// | 2 | 6 |
/// | 4 | 8 |
/// | 8 | 12 |
/// | 16 | 16 |
/// | 32 | 24 |
struct ConcurrencyTable: Sendable, Equatable {
    private static let rows: [(from: Double, transfers: Int)] = [
        (0, 2), (0.25e6, 3), (0.5e6, 4), (2e6, 6), (4e6, 8), (8e6, 12), (16e6, 16), (32e6, 24),
    ]

    private var goodput = Goodput(halfLife: 2)
    /// Halved by trouble, back after as many quiet samples.
    private var penalty = 0

    /// How many transfers may run.
    var limit: Int {
        guard let measured = goodput.bytesPerSecond else { return ConcurrencyPlan.start }
        let count = Self.rows.last { $0.from <= measured }?.transfers ?? 2
        return penalty > 0 ? max(1, count / 2) : count
    }

    mutating func note(_ sample: LinkSample) {
        if sample.isTroubled {
            penalty = 20
        } else if penalty > 0 {
            penalty -= 1
        }
        // A link that is not used says nothing.
        if sample.isFull { goodput.add(bytes: sample.bytes, seconds: sample.seconds) }
    }
}
