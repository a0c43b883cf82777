// What a player leaves of the line to downloads, by when it asks for media.

/// Tells a player that has what it wants from one that hurries.
///
/// Pure: whoever watches players tells the times, in seconds of any clock that runs on.
///
/// A player whose buffer is full asks once a segment's time, and rests between. While it rests the
/// line is free; and where it rests long, its segment may come a little later without its noticing:
/// it then rests less. One that asks at once for the next segment, or out of turn, may have begun,
/// sought or run low: nothing runs beside that.
package struct PlayerRoom: Sendable, Equatable {
    /// Requests in turn before a player is taken for one with a full buffer.
    private static let turns = 2
    /// So much earlier or later than the turns before is out of turn, as a share of one.
    private static let irregular = 0.25
    /// A player that rests less, as a share of its turn and in seconds, has nothing to give.
    private static let leastRest = (share: 0.15, seconds: 0.2)
    /// Shorter turns are parts of low-latency streams, where every delay is seen.
    private static let leastTurn = 1.5
    /// Of a turn, so much is shared: even with little of the line for all of it, the segment comes
    /// within its turn, if alone it took no more than the rest that is asked for allows.
    private static let shared = 0.4
    /// A player that hurries may ask again within so many seconds: to go on for so short a while
    /// would fill sockets at its cost.
    private static let pause = 0.25

    /// A rest that is shorter is none: a reader that fell behind for a moment, or the next request
    /// of one that hurries.
    private static let blink = 0.05

    private var waitsSince: Double?
    private var restsSince: Double?
    private var askedAt: Double?
    /// Seconds from request to request, the last ones.
    private var turns: [Double] = []
    private var isAtEase = false

    package init() {}

    /// Players begin, or cease, to wait for media; the same again changes nothing.
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

    /// As noted last.
    package var playersWait: Bool { waitsSince != nil }

    /// Until when downloads may go on although a player waits; nil where they may not.
    package var sharedUntil: Double? {
        guard isAtEase, let waitsSince, let turn = turns.min() else { return nil }
        return waitsSince + turn * Self.shared
    }

    /// Whether downloads have to stand still.
    package func holdsDownloads(at now: Double) -> Bool {
        if waitsSince != nil { return sharedUntil.map { now >= $0 } ?? true }
        return pausesUntil.map { now < $0 } ?? false
    }

    /// When `holdsDownloads` changes although nothing is noted; nil where it does not.
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
