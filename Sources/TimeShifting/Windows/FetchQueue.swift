import Posix

/// The pieces of a growing playlist that are to be fetched: which one is next, when a failed one is
/// tried again, and when it is given up.
///
/// A piece that has failed several times for a reason that may pass *lapses*: it waits until the
/// origin answers again, since an outage may last longer than any number of attempts. A few lapsed
/// ones are then tried, as probes, so that an origin that answers but refuses pieces gets no more
/// requests than from a player; the first that is stored brings all others back.
///
/// A piece that the origin may remove at any moment is *late*: it waits until no other does, so
/// that a queue that is served too slowly still gets what can be had. A value without clock.
struct FetchQueue<Piece: Hashable & Sendable>: Sendable {
    /// What happens with a piece whose fetch has failed.
    enum Verdict: Sendable, Equatable {
        /// It is to be added by `retry` after this time.
        case again(after: Interval)
        case lapsed
        case givenUp
    }

    /// How much time a piece has left.
    enum Standing: Sendable, Equatable {
        /// Enough: it is fetched in its turn.
        case inTime
        /// Perhaps none: it is fetched when no other piece waits.
        case late
        /// None: it is dropped.
        case over
    }

    private var waiting: ArraySlice<Piece> = []
    /// Those that are late, the newest at the end.
    private var late: [Piece] = []
    private var attempts: [Piece: Int] = [:]
    /// The lapsed pieces; the next one to be tried comes first.
    private var lapsed: ArraySlice<Piece> = []
    private var probes: Set<Piece> = []
    /// Those that are not to be fetched before the list is read again.
    private var later: [Piece] = []

    /// The most attempts for a piece, after half a second, one second, two, four and eight.
    private static var mostAttempts: Int { 6 }

    /// True if nothing waits for a fetch or for its next attempt; what has lapsed or was
    /// put off does not count.
    var isIdle: Bool { waiting.isEmpty && late.isEmpty && attempts.isEmpty }

    /// True if a piece waits that is not late.
    var hasPieceInTime: Bool { !waiting.isEmpty }

    /// Adds a piece.
    mutating func add(_ piece: Piece) { waiting.append(piece) }

    /// Removes and returns the piece to be fetched next; nil if none waits.
    ///
    /// Late pieces follow all others, the newest first: it is the likeliest to be there still.
    mutating func next() -> Piece? {
        if let piece = waiting.popFirst() { return piece }
        return late.popLast()
    }

    /// Sorts the pieces that wait, since time has passed for them.
    ///
    /// Costs as much as there are pieces.
    mutating func sort(by standing: (Piece) -> Standing) {
        guard !waiting.isEmpty || !late.isEmpty else { return }
        let pieces = late + waiting
        waiting = []
        late = []
        for piece in pieces {
            switch standing(piece) {
            case .inTime: waiting.append(piece)
            case .late: late.append(piece)
            case .over: cancelled(piece)
            }
        }
    }

    /// Notes that a piece is stored.
    mutating func stored(_ piece: Piece) {
        attempts[piece] = nil
        guard probes.remove(piece) != nil else { return }
        waiting += lapsed
        lapsed = []
    }

    /// Takes a piece back whose fetch was cancelled before it had begun.
    mutating func putBack(_ piece: Piece, as standing: Standing) {
        switch standing {
        case .inTime: waiting.insert(piece, at: waiting.startIndex)
        // It is older than those that still wait.
        case .late: late.insert(piece, at: 0)
        case .over: cancelled(piece)
        }
    }

    /// Notes that the fetch of a piece was cancelled; it is not tried again.
    mutating func cancelled(_ piece: Piece) {
        attempts[piece] = nil
        probes.remove(piece)
    }

    /// Puts off a piece that `next` has returned until the next call of `tryLapsed`.
    ///
    /// No fetch of it has failed: it is no probe then, which a single failure would give up.
    mutating func putOff(_ piece: Piece) {
        attempts[piece] = nil
        if probes.remove(piece) == nil {
            later.append(piece)
        } else {
            lapsed.append(piece)
        }
    }

    /// Notes that the fetch of a piece has failed.
    ///
    /// - Parameters:
    ///   - piece: the piece.
    ///   - mayPass: true if the reason may pass.
    ///   - isFinal: true if no further attempt is worth it: the origin has removed the piece for
    ///     good, or forbids storing it.
    /// - Returns: what happens with it.
    mutating func failed(
        _ piece: Piece, mayPass: Bool, isFinal: Bool = false
    ) -> Verdict {
        let count = attempts[piece, default: 0] + 1
        guard probes.remove(piece) == nil, !isFinal, count < Self.mostAttempts else {
            attempts[piece] = nil
            guard mayPass, !isFinal else { return .givenUp }
            lapsed.append(piece)
            return .lapsed
        }
        attempts[piece] = count
        return .again(after: .milliseconds(250 << Int64(count)))
    }

    /// Adds a piece again after its delay, unless all were removed meanwhile.
    mutating func retry(_ piece: Piece) {
        if attempts[piece] != nil { waiting.append(piece) }
    }

    /// Tries lapsed pieces again, since the origin answers, and those that were put off.
    ///
    /// - Parameters:
    ///   - most: the most probes at the same time.
    ///   - isWanted: false for a piece that is dropped.
    mutating func tryLapsed(most: Int, where isWanted: (Piece) -> Bool) {
        waiting.insert(contentsOf: later.filter(isWanted), at: waiting.startIndex)
        later = []
        lapsed = lapsed.filter(isWanted)[...]
        let count = min(lapsed.count, max(0, most - probes.count))
        probes.formUnion(lapsed.prefix(count))
        waiting += lapsed.prefix(count)
        lapsed = lapsed.dropFirst(count)
    }

    /// Removes all pieces.
    mutating func removeAll() { self = FetchQueue() }
}
