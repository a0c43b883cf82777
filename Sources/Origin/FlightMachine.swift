// The rules of a flight, as a value: events go in with the time, actions come out.
//
//     due ──▶ asking ──head──▶ filling ──end of body──▶ ended
//              │  ▲  │            │  │
//              │  │  ├─▶ holding ─▶  │  a short body is awaited and written with its head
//              │  │  ├─▶ comparing ─▶│  the response begins with bytes that are stored
//              │  │  └─▶ refused     │  503 and the like
//              │  │          │       │
//              │  └─ backingOff ◀────┘  the transfer broke and can be resumed
//              └───────────┴──────────▶ ended
//
// The machine knows no store, event loop, transfer or file. `Flight` performs the actions and hands
// in facts: what a head says (`ResponseFacts`), what is stored (`FillFacts`, `KnownFacts`), the time
// and the random part of delays. Every call changes the state completely before it returns, so that
// performing an action may lead to further events.
//
// - `FlightState.swift`: the states and what they carry.
// - `FlightAction.swift`: the actions, and those who wait.
// - `FlightMachine.swift`: requests, back-off, waiters and the budget.
// - `FlightMachine+Head.swift`: what becomes of a response's head.
// - `FlightMachine+Body.swift`: the bytes of a body and their end.
// - `FlightMachine+Failure.swift`: retry, resume and give up; every way a flight ends.
// - `FlightRules.swift`: the rules that need no state.
import HLS
import Model
import Posix
import Upstream

/// The rules of one flight.
struct FlightMachine {
    let job: FlightJob
    private(set) var state = State.due(.content)
    /// What is still to be fetched; moves up when the transfer is resumed.
    var wanted: Wanted
    private(set) var lane: Lane
    private(set) var waiters: [Waiter] = []
    /// The object that is being filled; nil before there is one.
    var fill: Fill?
    var isPlaylist: Bool
    var ranges: RangeSupport = []
    var keeping = Keeping.possible
    /// When somebody was last told of the object, whose bytes cannot be taken back from then on; nil
    /// while nobody was.
    private(set) var toldAt: Monotonic?
    /// True while only fetches ahead of players want the object.
    private(set) var isAhead: Bool
    /// True once the viewer has moved to another item: the flight may end as soon as nobody reads.
    var isLetGo = false
    /// True once a request was passed on that may have changed what this flight fetches.
    var isOutdated = false
    /// What may still be asked and received for a player request: at first the one that began it.
    private(set) var budget: OriginBudget

    /// Makes a flight that has asked for nothing yet; `isHandedOut` is true where readers may hold the
    /// object already.
    init(_ job: FlightJob, wanted: Wanted, lane: Lane, budget: OriginBudget, isHandedOut: Bool) {
        self.job = job
        self.wanted = wanted
        self.lane = lane
        self.budget = budget
        isPlaylist = job.resource.role == .playlist
        isAhead = job.beganAhead
        toldAt = isHandedOut ? Monotonic(nanoseconds: 0) : nil
    }

    // MARK: Queries

    var phase: Phase {
        switch state {
        case .due, .asking, .refused, .holding, .comparing: .asking
        case .filling: .filling
        case .backingOff, .waitingForOthers: .backingOff
        case .ended: .ended
        }
    }

    var hasEnded: Bool { phase == .ended }
    var isFilling: Bool { phase == .filling }
    var isHandedOut: Bool { toldAt != nil }
    var isOpaque: Bool { fill?.layout == .opaque }

    var isRefused: Bool {
        if case .refused = state { true } else { false }
    }

    var isHolding: Bool {
        if case .holding = state { true } else { false }
    }

    /// The length of a short body whose head waits for it; nil for none.
    var heldLength: Int64? {
        if case .holding(_, let placement) = state { placement.total } else { nil }
    }

    var isWaitingForOthers: Bool {
        if case .waitingForOthers = state { true } else { false }
    }

    var filling: Filling? {
        if case .filling(let filling) = state { filling } else { nil }
    }

    /// Whether an origin that was asked for a part has begun to send more.
    var sendsMore: Bool {
        if case .filling(let filling) = state { filling.sendsMore } else { false }
    }

    /// Since when the origin is held back because readers are far behind.
    var heldSince: Monotonic? {
        if case .filling(let filling) = state, case .held(let since) = filling.flow { return since }
        return nil
    }

    /// The time that a player which was told of the object may take to begin to read it.
    func wasToldLately(_ now: Monotonic, within limit: Interval) -> Bool {
        now - (toldAt ?? Monotonic(nanoseconds: 0)) < limit
    }

    // MARK: Requests

    /// Begins: at once, or after the pause that an origin is left which refuses connections.
    mutating func start(after pause: Interval?) -> [Action] {
        guard case .due = state else { return [] }
        guard let pause else { return [.ask] }
        state = .backingOff(.content)
        return [.schedule(pause)]
    }

    /// Sends the request, once what is stored around the wanted bytes was looked at.
    ///
    /// - Parameters:
    ///   - before: bytes before the wanted ones that are to be compared.
    ///   - behind: bytes behind the wanted ones that are to be compared.
    ///   - now: the time.
    /// - Returns: what is to be done.
    mutating func looked(before: Int64, behind: Int64, now: Monotonic) -> [Action] {
        guard case .due(let question) = state else { return [] }
        var actions: [Action] = []
        guard takesRequest(now, &actions) else { return actions + failSpent() }
        let attempt = Attempt(question: question, wanted: wanted, before: before, behind: behind)
        state = .asking(attempt)
        actions.append(.send(attempt))
        return actions
    }

    /// A redirect is about to be followed, which costs another request.
    mutating func followsRedirect(now: Monotonic, isHeldByOrigin: Bool) -> [Action] {
        guard !hasEnded else { return [] }
        if let overdue = failOverdue(now: now, isHeldByOrigin: isHeldByOrigin) { return overdue }
        var actions: [Action] = []
        guard takesRequest(now, &actions) else { return actions + failSpent() }
        return actions
    }

    /// Makes a request due.
    mutating func becomeDue(_ question: Question = .content) -> [Action] {
        state = .due(question)
        return [.ask]
    }

    /// Waits before the next request.
    mutating func backOff(_ question: Question = .content, for delay: Interval) -> [Action] {
        state = .backingOff(question)
        return [.schedule(delay)]
    }

    /// What is known at the end of a back-off.
    struct Turn {
        /// Whether anybody still wants what the flight brings.
        let isWanted: Bool
        /// The time until the origin may be asked, where it refuses connections; nil for now.
        var pause: Interval?
        /// Why the origin is not asked at all, where it is known to be down.
        var refusal: ProxyFailure?
    }

    /// The time of a back-off is over.
    mutating func backedOff(_ turn: Turn, now: Monotonic) -> [Action] {
        guard case .backingOff(let question) = state else { return [] }
        guard turn.isWanted else { return abandon() }
        guard let pause = turn.pause else { return becomeDue(question) }
        if isHopeless(now: now), let failure = turn.refusal { return refuse(failure) }
        return backOff(question, for: pause)
    }

    /// Whether a flight to an origin that is down has no reason to wait on: a body that broke in the
    /// middle waits for as long as its player does.
    func isHopeless(now: Monotonic) -> Bool {
        fill == nil || now - budget.lastProgress >= job.limits.patience
    }

    // MARK: Waiting

    /// Adds a waiter; one that comes after the head is answered at once.
    mutating func join(_ waiter: Waiter, lane: Lane, now: Monotonic) -> [Action] {
        guard !hasEnded else { return [] }
        waiters.append(waiter)
        var actions = raise(to: lane)
        if isFilling { actions += deliver(now: now) }
        // Whoever waits for the whole body does not wait for readers that are far behind.
        if !waiters.isEmpty, release() { actions.append(.release) }
        return actions
    }

    /// Takes a waiter back.
    ///
    /// - Returns: true where nobody waits now.
    mutating func leave(_ id: FetchID) -> Bool {
        waiters.removeAll { $0.id == id }
        return waiters.isEmpty
    }

    /// Makes a flight that began for nobody a player's.
    mutating func takeForPlayback(_ lane: Lane) -> [Action]? {
        guard isAhead, !hasEnded else { return nil }
        isAhead = false
        return raise(to: lane)
    }

    private mutating func raise(to lane: Lane) -> [Action] {
        guard lane < self.lane else { return [] }
        self.lane = lane
        return [.raise]
    }

    /// Readers may hold the object although nobody was told of it here.
    mutating func noteReaders() { toldAt = toldAt ?? Monotonic(nanoseconds: 0) }

    /// Answers those who want no more than a head, once the body is known not to be a playlist.
    mutating func deliver(now: Monotonic) -> [Action] {
        guard case .filling(let filling) = state, filling.sniffing == .settled, !isPlaylist else {
            return []
        }
        let ready = waiters.filter { $0.delivery == .head }
        guard !ready.isEmpty else { return [] }
        toldAt = now
        waiters.removeAll { $0.delivery == .head }
        return [.deliver(ready)]
    }

    /// All waiters, who are answered now.
    mutating func takeWaiters() -> [Waiter] {
        let all = waiters
        waiters = []
        return all
    }

    /// The waiters who want a part of the body, who are answered now.
    mutating func takeWaitersOfParts() -> [Waiter] {
        let parts = waiters.filter { !$0.wantsWhole }
        waiters.removeAll { !$0.wantsWhole }
        return parts
    }

    /// All waiters, who are told of the object now that its body is whole.
    mutating func deliverComplete(now: Monotonic) -> [Action] {
        guard !waiters.isEmpty else { return [] }
        toldAt = now
        return [.deliver(takeWaiters())]
    }

    // MARK: Budget

    /// Takes one request out of the budget of somebody who waits; false where none may ask.
    private mutating func takesRequest(_ now: Monotonic, _ actions: inout [Action]) -> Bool {
        if budget.with({ $0.takeRequest(now: now) }) { return true }
        return borrows(&actions) && budget.with { $0.takeRequest(now: now) }
    }

    /// Goes on with the budget of a request that joined, and tells those that have spent theirs.
    ///
    /// - Returns: false, and nothing changes, where nobody who waits may ask.
    mutating func borrows(_ actions: inout [Action]) -> Bool {
        guard let next = waiters.lazy.compactMap(\.budget).first(where: \.mayAsk) else {
            return false
        }
        let failure = spentFailure
        let spent = waiters.filter { $0.budget === budget }
        waiters.removeAll { $0.budget === budget }
        budget = next
        if !spent.isEmpty { actions.append(.answer(spent, .failure(failure))) }
        return true
    }

    // MARK: Changes of state, for the other files of this type

    mutating func enter(_ next: State) { state = next }

    /// Changes what is known of the response that fills the object.
    mutating func change(_ change: (inout Filling) -> Void) {
        guard case .filling(var filling) = state else { return }
        change(&filling)
        state = .filling(filling)
    }
}
