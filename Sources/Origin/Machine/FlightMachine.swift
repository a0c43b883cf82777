// The rules of a flight, as a value: events go in with the time, actions come out.
//
//     due ──▶ asking ──head──▶ filling ──end of body──▶ ended
//              │  ▲  │            │  │
//              │  │  ├─▶ asking   │  │  again, without what made the response useless
//              │  │  ├─▶ holding ─▶  │  a short body is awaited and written with its head
//              │  │  ├─▶ comparing ─▶│  the response begins with bytes that are stored
//              │  │  └─▶ refused     │  503 and the like
//              │  │          │       │
//              │  └─ backingOff ◀────┘  the transfer broke and can be resumed
//              └───────────┴──────────▶ ended
//
// The machine has no access to store, event loop, transfer or file. `Flight` performs the actions
// and passes in facts: the content of a head (`ResponseFacts`), what is stored (`FillFacts`,
// `KnownFacts`), the time and the random part of delays. Every call completes its change of state
// before it returns, so that performing an action may cause further events.
//
// - `Flights/FlightJob.swift`: the constant parameters and the settings.
// - `FlightState.swift`: the states and their contents.
// - `FlightAction.swift`: the actions.
// - `FlightWaiters.swift`: who waits for the object, and who may hold it: a value of its own.
// - `FlightMachine.swift`: requests, back-off, answers to waiters and the budget.
// - `FlightMachine+Head.swift`: response heads.
// - `FlightMachine+Body.swift`: the bytes of a body and their end.
// - `FlightMachine+Failure.swift`: retry, resume and give up; every end of a flight.
// - `FlightRules.swift`: rules about facts: joining, resuming, the first attempt, abandonment.
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
    var waiters: FlightWaiters
    /// The object that is being filled; nil before there is one.
    var fill: Fill?
    var isPlaylist: Bool
    var ranges: RangeSupport = []
    /// True if the latest response is the whole body of another version than If-Range named.
    var isOfOtherVersion = false
    /// True if this flight still allows storing the object; false once storing failed before any
    /// waiter got it, so that the body is only passed on.
    var mayKeep = true
    /// True once it was counted that the object has no name, or has lost it.
    var hasCountedLoss = false
    /// True while only ahead fetches need the object.
    private(set) var isAhead: Bool
    /// True once the viewer has moved to another item: the flight may end as soon as it has no
    /// reader.
    var viewerMovedOn = false
    /// What became of the short time of the first attempt.
    var firstTry = FirstTry.due
    /// Whether the body that is being filled has an end.
    var extent = Extent.bounded
    /// When the last transfer of a live stream that delivered bytes ended; nil before.
    var deliveredUntil: Monotonic?
    /// True if something else than a playlist or a document is stored of the resource: a page is
    /// not its new version.
    var replacesFile = false
    /// True once a request was passed on that may have changed what this flight fetches.
    var isOutdated = false
    /// The budget of the player request that pays for requests and bytes: at first the one that
    /// started the flight.
    private(set) var budget: OriginBudget
    /// What the requests of the flight leave out.
    private(set) var omitted: Omissions = []
    /// When the request was made that has not been sent yet; nil for none.
    private var queuedAt: Monotonic?
    /// True once a request has got a slot: the next does not wait behind those that had none.
    private(set) var hadSlot = false

    /// Makes a flight that has not sent a request yet; `wasObjectGiven` is true if readers may hold
    /// the object already.
    init(_ job: FlightJob, wanted: Wanted, lane: Lane, budget: OriginBudget, wasObjectGiven: Bool) {
        self.job = job
        self.wanted = wanted
        self.lane = lane
        self.budget = budget
        waiters = FlightWaiters(begunAt: job.begunAt, wasObjectGiven: wasObjectGiven)
        isPlaylist = job.resource.role == .playlist
        isAhead = job.beganAhead
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
    var wasObjectGiven: Bool { waiters.wasObjectGiven }
    var isOpaque: Bool { fill?.layout == .opaque }

    var isRefused: Bool {
        if case .refused = state { true } else { false }
    }

    /// The request that waits for its head; nil if none does.
    var attempt: Attempt? {
        if case .asking(let attempt) = state { attempt } else { nil }
    }

    var isHolding: Bool {
        if case .holding = state { true } else { false }
    }

    /// The length of a short body that a held head waits for; nil for none.
    var heldLength: Int64? {
        if case .holding(_, let placement) = state { placement.total } else { nil }
    }

    var isWaitingForOthers: Bool {
        if case .waitingForOthers = state { true } else { false }
    }

    var filling: Filling? {
        if case .filling(let filling) = state { filling } else { nil }
    }

    /// True if an origin that was asked for a part sends more.
    var sendsMore: Bool {
        if case .filling(let filling) = state { filling.sendsMore } else { false }
    }

    /// When the transfer was paused because readers are far behind; nil while it is not.
    var pausedSince: Monotonic? {
        if case .filling(let filling) = state, case .paused(let since) = filling.flow {
            return since
        }
        return nil
    }

    // MARK: Requests

    /// Starts immediately, or after the pause for an origin that refuses connections.
    mutating func start(after pause: Interval?) -> [Action] {
        guard case .due = state else { return [] }
        guard let pause else { return [.ask] }
        state = .backingOff(.content)
        return [.schedule(pause)]
    }

    /// Sends the request, after the lookup of what is stored around the wanted bytes.
    ///
    /// - Parameters:
    ///   - before: the number of bytes before the wanted ones to compare.
    ///   - behind: the number of bytes after the wanted ones to compare.
    ///   - now: the time.
    /// - Returns: the actions.
    mutating func neighboursFound(before: Int64, behind: Int64, now: Monotonic) -> [Action] {
        guard case .due(let question) = state else { return [] }
        var actions: [Action] = []
        guard takesRequest(now, &actions) else { return actions + failSpent() }
        let attempt = Attempt(question: question, wanted: wanted, before: before, behind: behind)
        state = .asking(attempt)
        queuedAt = now
        actions.append(.send(attempt))
        return actions
    }

    /// Sends the request again without what made its response useless, at once and whatever is
    /// left of the budget: that is done once for each.
    ///
    /// - Parameters:
    ///   - what: what the request and all later ones do without.
    ///   - refusal: the failure to end with if the origin is known to be down.
    ///   - now: the time.
    /// - Returns: nil if it was sent without that already, or no head is awaited.
    mutating func again(
        without what: Omissions, refusal: ProxyFailure? = nil, now: Monotonic
    ) -> [Action]? {
        guard case .asking(let attempt) = state, omitted.isDisjoint(with: what) else { return nil }
        omit(what)
        if let refusal { return [.drop] + refuse(refusal) }
        budget.with { $0.noteRequest(now: now) }
        queuedAt = now
        return [.drop, .send(attempt)]
    }

    /// Has all later requests do without something.
    mutating func omit(_ what: Omissions) { omitted.formUnion(what) }

    /// Notes that the request has got a slot and is sent.
    mutating func wasSent(now: Monotonic) {
        hadSlot = true
        guard let since = queuedAt else { return }
        queuedAt = nil
        budget.with { $0.noteQueued(since: since, now: now) }
    }

    /// Draws another request from the budget before a redirect is followed.
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

    /// Schedules the next request.
    mutating func backOff(_ question: Question = .content, for delay: Interval) -> [Action] {
        state = .backingOff(question)
        return [.schedule(delay)]
    }

    /// The circumstances at the end of a back-off.
    struct Turn {
        /// True if what the flight fetches is still needed.
        let isWanted: Bool
        /// The time until an origin that refuses connections may be contacted; nil for now.
        var pause: Interval?
        /// The failure to end with if the origin is known to be down.
        var refusal: ProxyFailure?
        /// True if the flight waits for the return of its origin.
        var awaitsReturn = false
    }

    /// Handles the end of a back-off.
    mutating func backedOff(_ turn: Turn, now: Monotonic) -> [Action] {
        guard case .backingOff(let question) = state else { return [] }
        guard turn.isWanted else { return abandon() }
        if turn.awaitsReturn { budget.with { $0.noteReturnWait(now: now) } }
        guard let pause = turn.pause else { return becomeDue(question) }
        if isHopeless(now: now), let failure = turn.refusal { return refuse(failure) }
        return backOff(question, for: pause)
    }

    /// True if a flight to an origin that is down should not wait any longer: a body interrupted in
    /// the middle is resumed for as long as its player has patience.
    func isHopeless(now: Monotonic) -> Bool {
        fill == nil || now - lastProgress >= job.limits.patience
    }

    // MARK: Waiters

    /// Adds a waiter; after the head it is answered immediately.
    mutating func join(_ waiter: FlightWaiter, lane: Lane, now: Monotonic) -> [Action] {
        guard !hasEnded else { return [] }
        if let failure = futility(of: waiter) { return [.answer([waiter], .failure(failure))] }
        waiters.add(waiter, now: now)
        var actions = raise(to: lane)
        if isFilling { actions += deliver(now: now) }
        // A waiter for the whole body must not wait for slow readers.
        if !waiters.isEmpty, resumeTransfer() { actions.append(.resumeTransfer) }
        return actions
    }

    /// Removes a waiter.
    ///
    /// - Returns: true if no waiter is left.
    mutating func leave(_ id: FetchID) -> Bool {
        waiters.remove(id)
        return waiters.isEmpty
    }

    /// Turns an ahead flight into one for a player.
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

    /// Answers waiters for the head, once the body is known not to be a playlist, and those that
    /// need a playlist.
    mutating func deliver(now: Monotonic) -> [Action] {
        guard isKnownAsMedia else { return [] }
        let refused = refuseFutile()
        let ready = waiters.giveAtHead(now: now)
        return ready.isEmpty ? refused : refused + [.deliver(ready)]
    }

    /// Removes and refuses the waiters that this flight can never serve.
    mutating func refuseFutile() -> [Action] {
        guard waiters.all.contains(where: { futility(of: $0) != nil }) else { return [] }
        var rest: [FlightWaiter] = []
        var actions: [Action] = []
        for waiter in waiters.all {
            if let failure = futility(of: waiter) {
                actions.append(.answer([waiter], .failure(failure)))
            } else {
                rest.append(waiter)
            }
        }
        waiters.keep(rest)
        return actions
    }

    /// Gives all waiters the object once its body is complete.
    mutating func deliverComplete(now: Monotonic) -> [Action] {
        let ready = waiters.giveToAll(now: now)
        return ready.isEmpty ? [] : [.deliver(ready)]
    }

    // MARK: Budget

    /// Draws one request from the budget, or from that of another waiter; returns false if all are
    /// spent.
    private mutating func takesRequest(_ now: Monotonic, _ actions: inout [Action]) -> Bool {
        if budget.with({ $0.takeRequest(now: now) }) { return true }
        return borrows(&actions) && budget.with { $0.takeRequest(now: now) }
    }

    /// Switches to the budget of another waiter, and fails the waiters whose budget is spent.
    ///
    /// - Returns: false, with no change, if no waiter's budget allows a request.
    mutating func borrows(_ actions: inout [Action]) -> Bool {
        guard let next = waiters.budgetToBorrow else { return false }
        let failure = spentFailure
        let spent = waiters.take(of: budget)
        budget = next
        if !spent.isEmpty { actions.append(.answer(spent, .failure(failure))) }
        return true
    }

    // MARK: State changes for the other files of this type

    mutating func enter(_ next: State) { state = next }

    /// Changes the state of the response that fills the object.
    mutating func change(_ change: (inout Filling) -> Void) {
        guard case .filling(var filling) = state else { return }
        change(&filling)
        state = .filling(filling)
    }
}
