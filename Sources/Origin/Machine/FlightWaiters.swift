// The requests that wait for a flight, and when readers were given its object.
import Model
import Posix

/// A request that waits for the object of a flight.
struct FlightWaiter {
    let id: FetchID
    let repliesAt: ReplyPoint
    let isCollapsed: Bool
    let wanted: Wanted
    /// True if only a playlist answers it.
    var needsPlaylist = false
    /// The budget of the player request; nil if it has none.
    let budget: OriginBudget?
    let reply: @Sendable (FetchReply) -> Void
}

/// The waiters of one flight in the order in which they joined, and when readers were last given
/// the object.
///
/// A waiter stays until it is answered or leaves: callers answer every waiter that they take.
struct FlightWaiters {
    /// When readers were given an object.
    private enum Given: Equatable {
        /// By others, or before the flight began: no reader is just about to begin with it.
        case earlier
        /// The flight gave it to waiters.
        case at(Monotonic)
    }

    private(set) var all: [FlightWaiter] = []
    /// When the last one joined; before there was one, when the flight began.
    private(set) var lastJoinedAt: Monotonic
    /// When readers were last given the object; nil before.
    private var given: Given?

    /// Makes the waiters of a flight that nobody has joined yet.
    ///
    /// - Parameters:
    ///   - begunAt: when the flight began.
    ///   - wasObjectGiven: whether readers may hold the object already.
    init(begunAt: Monotonic, wasObjectGiven: Bool) {
        lastJoinedAt = begunAt
        given = wasObjectGiven ? Given.earlier : nil
    }

    var isEmpty: Bool { all.isEmpty }
    var count: Int { all.count }

    // MARK: Joining and leaving

    mutating func add(_ waiter: FlightWaiter, now: Monotonic) {
        all.append(waiter)
        lastJoinedAt = now
    }

    /// Removes a waiter that needs no answer.
    mutating func remove(_ id: FetchID) { all.removeAll { $0.id == id } }

    // MARK: Answers

    /// Removes and returns all waiters, to be answered now.
    mutating func takeAll() -> [FlightWaiter] {
        defer { all = [] }
        return all
    }

    /// Removes and returns the waiters of a player request, to be answered now.
    mutating func take(of budget: OriginBudget) -> [FlightWaiter] { take { $0.budget === budget } }

    /// Removes and returns the waiters that are answered at the head, which are given the object.
    mutating func giveAtHead(now: Monotonic) -> [FlightWaiter] {
        let ready = take { $0.repliesAt == .head }
        if !ready.isEmpty { given = .at(now) }
        return ready
    }

    /// Removes and returns all waiters, which are given the object with its complete body.
    mutating func giveToAll(now: Monotonic) -> [FlightWaiter] {
        if !isEmpty { given = .at(now) }
        return takeAll()
    }

    /// Keeps only some of the waiters; the others are answered now.
    mutating func keep(_ rest: [FlightWaiter]) { all = rest }

    private mutating func take(where isTaken: (FlightWaiter) -> Bool) -> [FlightWaiter] {
        let taken = all.filter(isTaken)
        if !taken.isEmpty { all.removeAll(where: isTaken) }
        return taken
    }

    // MARK: Readers

    /// True once readers may hold the object, whose bytes cannot be taken back from then on.
    var wasObjectGiven: Bool { given != nil }

    /// True if a waiter got the object less than `limit` ago and may still be about to read it.
    func wasObjectGivenLately(_ now: Monotonic, within limit: Interval) -> Bool {
        if case .at(let time)? = given { now - time < limit } else { false }
    }

    /// Notes that readers may hold the object although this flight gave it to no waiter.
    mutating func noteReaders() { if given == nil { given = .earlier } }

    // MARK: Budgets

    /// The first budget that allows another request; nil if none does.
    var budgetToBorrow: OriginBudget? { all.lazy.compactMap(\.budget).first(where: \.mayAsk) }
}
