// Decides from the timing of a player's requests how much of the line downloads may use.

/// Distinguishes a player with a full buffer from one that is filling it.
///
/// Pure: the caller provides times, in seconds of any monotonic clock.
///
/// A player with a full buffer requests one segment per segment duration and rests in between.
/// While it rests the line is free; and if it rests long, its segment may arrive a little later
/// without harm: the rest is then shorter. A player that requests the next segment immediately, or
/// irregularly, may have started, sought or run low: nothing may run in parallel with that.
package struct PlayerIdleTime: Sendable, Equatable {
    /// The number of regular requests before a player is considered to have a full buffer.
    private static let turns = 2
    /// The deviation from earlier turns, as a share of a turn, that makes a request irregular.
    private static let irregular = 0.25
    /// A player whose rest is below this share of its turn, or this many seconds, leaves no room.
    private static let leastRest = (share: 0.15, seconds: 0.2)
    /// Shorter turns, in seconds, are parts of low-latency streams, where every delay is visible.
    private static let leastTurn = 1.5
    /// The share of a turn in which downloads may run: even if the segment gets little of the line
    /// for that time, it arrives within its turn, provided that alone it takes no longer than the
    /// required rest allows.
    private static let shared = 0.4
    /// A player that is filling its buffer may send its next request within this many seconds;
    /// downloads that ran for so short a time would only fill sockets at its cost.
    private static let pause = 0.25

    /// A shorter rest, in seconds, does not count: a reader that fell behind for a moment, or the
    /// next request of a player that is filling its buffer.
    private static let blink = 0.05

    private var waitsSince: Double?
    private var restsSince: Double?
    private var askedAt: Double?
    /// The last times from request to request, in seconds.
    private var turns: [Double] = []
    private var isAtEase = false

    package init() {}

    /// Records that players begin or stop waiting for media; a repeated value changes nothing.
    package mutating func note(playersWait: Bool, at now: Double) {
        if playersWait, waitsSince == nil {
            if let askedAt, let restsSince, now - restsSince < Self.blink {
                waitsSince = askedAt
            } else {
                begin(at: now)
            }
        } else if !playersWait, waitsSince != nil {
            waitsSince = nil
            restsSince = now
        }
    }

    /// The value recorded last.
    package var playersWait: Bool { waitsSince != nil }

    /// Until when downloads may continue although a player waits; nil if they may not.
    package var sharedUntil: Double? {
        guard isAtEase, let waitsSince, let turn = turns.min() else { return nil }
        return waitsSince + turn * Self.shared
    }

    /// True if downloads must pause.
    package func holdsDownloads(at now: Double) -> Bool {
        if waitsSince != nil { return sharedUntil.map { now >= $0 } ?? true }
        return pausesUntil.map { now < $0 } ?? false
    }

    /// Returns when `holdsDownloads` will change without a further `note`; nil if it will not.
    package func change(after now: Double) -> Double? {
        [sharedUntil, pausesUntil].compactMap { $0 }.filter { $0 > now }.min()
    }

    private var pausesUntil: Double? {
        guard !isAtEase, waitsSince == nil, let restsSince else { return nil }
        return restsSince + Self.pause
    }

    private mutating func begin(at now: Double) {
        waitsSince = now
        defer { askedAt = now }
        guard let askedAt, let restsSince else { return }
        let turn = now - askedAt
        let isInTurn =
            turns.count >= Self.turns
            && turns.allSatisfy { abs($0 - turn) <= Self.irregular * turn }
        let rest = now - restsSince
        isAtEase =
            isInTurn && turn >= Self.leastTurn
            && rest >= max(Self.leastRest.seconds, Self.leastRest.share * turn)
        turns = (turns + [turn]).suffix(Self.turns)
    }
}
