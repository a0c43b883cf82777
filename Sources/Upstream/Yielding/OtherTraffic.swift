/// Tells whether a queue that stays is that of other traffic on the line, which takes the whole
/// line from those who give way.
struct OtherTraffic: Sendable {
    private var highestRates = RecentExtreme(.highest, minutes: 2)
    private var crowdedRounds = 0
    private var releaseTime = OtherTraffic.firstRelease

    /// The share of the window that filled the line in the last minutes below which a window has
    /// shrunk for others.
    private static let crowdedShare = 0.6
    /// Round trips of such a window and a queue after which the queue is that of others.
    private static let mostCrowdedRounds = 6
    private static let firstRelease = 10.0
    private static let longestRelease = 160.0

    /// Takes what arrived in a round trip, in bytes a second.
    mutating func note(rate: Double, at now: Double) { highestRates.note(rate, at: now) }

    /// Returns the highest rate of the last two minutes, in bytes a second; nil without any.
    func highestRate(at now: Double) -> Double? { highestRates.value(at: now) }

    /// Takes note of a round trip in which the window was bounded.
    ///
    /// - Parameters:
    ///   - window: the window, in bytes.
    ///   - hasQueue: true if there is a longer queue than is aimed at, without a loss.
    ///   - lowest: the delay of the empty line, in seconds.
    /// - Returns: true if the queue has to be that of others.
    mutating func note(window: Double, hasQueue: Bool, lowest: Double) -> Bool {
        if hasQueue, window < (highestRates.value ?? 0) * lowest * Self.crowdedShare {
            crowdedRounds += 1
        } else {
            crowdedRounds = 0
            releaseTime = max(Self.firstRelease, releaseTime - 0.1)
        }
        return crowdedRounds >= Self.mostCrowdedRounds
    }

    /// Returns for how many seconds transfers go on without a bound: longer each time.
    mutating func release() -> Double {
        crowdedRounds = 0
        defer { releaseTime = min(releaseTime * 2, Self.longestRelease) }
        return releaseTime
    }
}
