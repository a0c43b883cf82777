import CachePolicy
import HLS
import HTTP
@testable import Model
@testable import Origin
import Posix
import Routing
import Store
import Testing
import URISyntax
import Upstream

/// A flight without an origin, a store or a loop: performs the machine's actions on plain values,
/// and records every violated rule.
struct FlightStory {
    /// The outcome of a waiter.
    enum Told: Equatable {
        case object, failure(HTTPStatus), renewed, head, filledByOthers
    }

    /// A transfer as the origin sees it.
    enum Transfer: Equatable {
        case none, running, dismissed
    }

    /// The object and the fill.
    struct Body {
        var offset: Int64 = 0
        var end: Int64?
        var total: Int64?
        var spans = SpanSet()
        var isDiscarded = false
        var isPublished = false
        var hasStrongValidator = true
    }

    var machine: FlightMachine
    var now = Monotonic(nanoseconds: 1_000_000_000_000)
    private(set) var transfer = Transfer.none
    private(set) var timers = 0
    private(set) var body: Body?
    private(set) var told: [FetchID: Told] = [:]
    private(set) var joined: Set<FetchID> = []
    private(set) var broken: [String] = []
    private(set) var sends = 0
    private(set) var excused = 0
    /// The failures that were counted.
    private(set) var failures = 0
    private(set) var attempt: FlightMachine.Attempt?
    private(set) var completed = false
    private(set) var closed = false
    /// Whether the body's end is known only by the end of the transfer.
    private(set) var endIsMarked = false
    private(set) var delay: Interval?
    /// The pause that the origin asked for last.
    private(set) var refusedFor: Interval?
    /// The facts of the next object that begins.
    var beginning = FlightMachine.Beginning(
        placement: Placement(start: 0), status: .ok, takesRanges: true)
    /// The validator of the next object that begins.
    var hasStrongValidator = true
    /// The number of bytes before the wanted ones that the next request compares.
    var before: Int64 = 0
    /// Whether the origin has answered that nothing follows the last byte.
    var endIsKnown = true
    /// Whether the body is a playlist that was cut.
    var isCutList = false
    var budgets: [OriginBudget] = []
    var random = 0.5
    /// Whether the flight waits for the return of its origin when a transfer breaks.
    var awaitsReturn = false

    static let limits = FlightLimits(
        retries: 4, patience: .seconds(8 as Int64), answer: .seconds(20 as Int64),
        joinDistance: 1 << 20)

    static func resource(_ change: (inout Resource.Parts) -> Void = { _ in }) -> Resource {
        guard let url = try? AbsoluteURL("http://h/a.ts") else { fatalError("no URL") }
        var parts = Resource.Parts(
            url: url, cacheKey: CacheKey(url: "http://h/a.ts"),
            session: Session(id: SessionID(1), fields: Fields()), role: .media, policy: .media,
            forwardedFields: Fields())
        change(&parts)
        return Resource(parts)
    }

    init(
        resource: Resource = FlightStory.resource(), wanted: Wanted = .whole,
        allowance: OriginAllowance.Limits = .init(), wasObjectGiven: Bool = false,
        job change: (inout FlightJob) -> Void = { _ in }
    ) {
        var job = FlightJob(resource: resource, limits: Self.limits, begunAt: now)
        change(&job)
        let budget = OriginBudget(allowance, now: now)
        budgets = [budget]
        machine = FlightMachine(
            job, wanted: wanted, lane: .playback, budget: budget, wasObjectGiven: wasObjectGiven)
    }

    // MARK: Events

    var facts: FillFacts? {
        guard let body, machine.fill != nil else { return nil }
        return FillFacts(
            offset: body.offset, total: body.total,
            hasStrongValidator: body.hasStrongValidator, isCutList: isCutList)
    }

    func ending(isWanted: Bool = true) -> FlightMachine.Ending {
        FlightMachine.Ending(
            isWanted: isWanted, jitter: random, now: now, awaitsReturn: awaitsReturn)
    }

    mutating func pass(_ milliseconds: Int64) { now = now + .milliseconds(milliseconds) }

    @discardableResult mutating func join(
        _ repliesAt: ReplyPoint = .head, budget: OriginBudget? = nil,
        wanted: Wanted = .span(start: 0, end: 1), needsPlaylist: Bool = false
    ) -> FetchID {
        let id = FetchID()
        joined.insert(id)
        if let budget { budgets.append(budget) }
        perform(
            machine.join(
                FlightWaiter(
                    id: id, repliesAt: repliesAt, isCollapsed: false, wanted: wanted,
                    needsPlaylist: needsPlaylist, budget: budget ?? machine.budget,
                    reply: { _ in }),
                lane: .playback, now: now))
        return id
    }

    mutating func leave(_ id: FetchID) {
        guard joined.remove(id) != nil, told[id] == nil else { return }
        _ = machine.leave(id)
    }

    mutating func start(after pause: Interval? = nil) { perform(machine.start(after: pause)) }

    mutating func head(_ facts: ResponseFacts, _ known: KnownFacts = KnownFacts()) {
        perform(machine.received(facts, known, self.facts, now: now))
    }

    mutating func whole(_ length: Int64?, provesItsEnd: Bool = true) {
        beginning.status = .ok
        beginning.provesItsEnd = provesItsEnd
        endIsKnown = provesItsEnd || length != nil
        head(ResponseFacts(status: .ok, contentLength: length))
    }

    mutating func part(_ first: Int64, _ last: Int64, of total: Int64?) {
        beginning.status = .partialContent
        beginning.provesItsEnd = true
        endIsKnown = true
        head(
            ResponseFacts(
                status: .partialContent, contentLength: last - first + 1,
                range: .satisfied(first: first, last: last, total: total)))
    }

    mutating func status(_ status: HTTPStatus, retryAfter: Interval? = nil) {
        beginning.status = status
        head(ResponseFacts(status: status, retryAfter: retryAfter))
    }

    /// Bytes of the body arrive and are written.
    mutating func bytes(_ count: Int64) {
        if case .hold = machine.intake { perform(machine.releaseHeldHead()) }
        guard case .take = machine.intake, var body else { return }
        let end = body.offset + min(count, (body.end ?? .max) - body.offset)
        guard end > body.offset else { return }
        body.spans.insert(body.offset..<end)
        body.offset = end
        self.body = body
        if let spent = machine.account(to: end, now: now) { perform(spent) }
    }

    mutating func end() {
        guard transfer != .none else { return }
        transfer = .none
        if machine.isRefused { return perform(machine.refusalEnded(facts, ending())) }
        if machine.isHolding { perform(machine.releaseHeldHead()) }
        perform(machine.bodyEnded(facts, ending()))
    }

    mutating func breaks(
        _ kind: UpstreamError.Kind = .reset, isDown: Bool = false, isWanted: Bool = true
    ) {
        guard transfer != .none else { return }
        transfer = .none
        if machine.isRefused {
            return perform(machine.refusalEnded(facts, ending(isWanted: isWanted)))
        }
        if machine.isHolding { perform(machine.releaseHeldHead()) }
        perform(
            machine.broke(
                UpstreamError(kind, host: "h"), isDown: isDown, facts,
                ending(isWanted: isWanted)))
    }

    /// The response is useless for a reason that another request avoids.
    ///
    /// - Returns: false if no other request is sent, or must end the flight.
    @discardableResult mutating func again(
        without what: FlightMachine.Omissions, refusal: ProxyFailure? = nil
    ) -> Bool {
        guard let actions = machine.again(without: what, refusal: refusal, now: now) else {
            return false
        }
        perform(actions)
        return true
    }

    /// The request has got a slot.
    mutating func slot() { machine.wasSent(now: now) }

    /// Something has arrived, and it may be too late.
    mutating func roundEnds() {
        perform(machine.failOverdue(now: now, isHeldByOrigin: false) ?? [])
    }

    mutating func timer(_ turn: FlightMachine.Turn = .init(isWanted: true)) {
        guard timers > 0 else { return }
        timers -= 1
        perform(machine.backedOff(turn, now: now))
    }

    /// A look of a flight that waits for the return of its origin, which is still silent.
    mutating func looks() {
        timer(.init(isWanted: true, pause: .milliseconds(200), awaitsReturn: true))
    }

    mutating func others(_ others: FlightMachine.Others, isWanted: Bool = true) {
        guard timers > 0 else { return }
        timers -= 1
        perform(machine.othersLooked(others, isWanted: isWanted))
    }

    // MARK: Actions

    private mutating func check(_ holds: Bool, _ rule: String) {
        if !holds { broken.append(rule) }
    }

    mutating func perform(_ actions: [FlightMachine.Action]) {
        check(!closed || actions.isEmpty, "no action follows the end")
        for action in actions { perform(action) }
    }

    private mutating func perform(_ action: FlightMachine.Action) {
        switch action {
        case .ask: perform(machine.neighboursFound(before: before, behind: 0, now: now))
        case .send(let attempt):
            check(transfer == .none, "one transfer at a time")
            transfer = .running
            sends += 1
            self.attempt = attempt
        case .schedule(let delay):
            timers += 1
            self.delay = delay
        case .watchOthers: timers += 1
        case .drop: transfer = .none
        case .dismiss: transfer = .dismissed
        case .begin(let placement): begin(placement)
        case .renew: perform(machine.end(with: .renewed))
        case .compareHead: perform(machine.end(with: .head))
        case .forgetObject: body = nil
        case .startOver:
            check(machine.fill == nil, "what is begun anew is forgotten")
            body = nil
        case .discardObject: body?.isDiscarded = true
        case .publish: body?.isPublished = true
        case .markEnd, .readLists:
            endIsMarked = true
            if let end = body?.offset { body?.total = end }
        case .complete(let completion): complete(completion)
        case .close:
            check(!closed, "a flight ends once")
            transfer = .none
            closed = true
        case .deliver(let waiters): answer(waiters, .object)
        case .answer(let waiters, let answer):
            switch answer {
            case .failure(let failure): self.answer(waiters, .failure(failure.status))
            case .renewed: self.answer(waiters, .renewed)
            case .head: self.answer(waiters, .head)
            case .filledByOthers: self.answer(waiters, .filledByOthers)
            }
        case .count(let name):
            if name == .reloadsRepeated { excused += 1 }
            if name == .originFailures { failures += 1 }
        case .noteRefusal(_, let pause): refusedFor = pause
        case .raise, .resumeTransfer, .learnEnd, .noteGivenUp, .noteOtherVersion: break
        }
    }

    private mutating func begin(_ placement: Placement) {
        check(transfer == .running || transfer == .none, "no dismissed transfer begins a fill")
        var beginning = beginning
        beginning.placement = placement
        // Another status or another length is another representation.
        let isSame =
            body.map {
                !$0.isDiscarded
                    && ($0.total == nil || placement.total == nil
                        || $0.total == placement.total)
            } ?? false
        let isContent = beginning.status == .ok || beginning.status == .partialContent
        beginning.goesOn = machine.fill != nil && isSame && isContent
        if !beginning.goesOn { body = Body(hasStrongValidator: hasStrongValidator) }
        if beginning.goesOn, beginning.status == .partialContent {
            check(placement.start == body?.offset, "no byte is written twice")
        }
        body?.offset = placement.start
        if let total = placement.total { body?.total = total }
        let known = body?.total
        body?.end = placement.last ?? known
        perform(machine.began(beginning, now: now))
    }

    private mutating func complete(_ completion: FlightMachine.Completion) {
        check(!closed, "a flight ends once")
        check(transfer == .none, "no transfer outlives its flight")
        closed = true
        completed = true
        guard let body else { return check(false, "there is something to complete") }
        let promised: Int64?
        if case .span(_, let end?) = machine.wanted {
            promised = end
        } else {
            promised = body.total
        }
        switch completion {
        case .atEnd:
            check(body.offset >= promised ?? .max, "nothing incomplete is complete")
            check(
                endIsKnown || !endIsMarked || body.isDiscarded || machine.isPlaylist
                    || machine.job.followsHTTP,
                "what may have been cut is not kept")
        case .atLength:
            check(body.offset >= promised ?? .max, "nothing incomplete is complete")
        }
        if machine.wanted.start == 0 {
            let known = body.spans.contiguousEnd(from: 0)
            check(known >= body.offset, "a body has no holes")
        }
    }

    private mutating func answer(_ waiters: [FlightWaiter], _ answer: Told) {
        for waiter in waiters {
            check(joined.contains(waiter.id), "only those who wait are answered")
            check(told[waiter.id] == nil, "every waiter is answered once")
            told[waiter.id] = answer
        }
    }

    /// What must hold after the end.
    mutating func checkEnd() {
        check(machine.hasEnded && closed, "the flight has ended")
        perform(machine.fail(.noRoom, cause: FillEnd.refused(.noRoom)))
        perform(machine.end(with: .head) + machine.abandon() + machine.close(cause: nil))
        perform(machine.wasWhole(now: now) + machine.start(after: nil))
        check(machine.account(to: .max, now: now) == nil, "no bytes are counted after the end")
        perform(machine.broke(UpstreamError(.reset, host: "h"), isDown: false, facts, ending()))
        perform(machine.bodyEnded(facts, ending()))
        check(transfer == .none, "no transfer outlives its flight")
        for id in joined {
            check(told[id] != nil, "every waiter is answered")
        }
        check(machine.waiters.isEmpty, "nobody waits for a flight that has ended")
        var seen: [ObjectIdentifier: OriginBudget] = [:]
        for budget in budgets { seen[ObjectIdentifier(budget)] = budget }
        let paid = seen.values.reduce(0) { $0 + $1.requests }
        check(Int64(sends - excused) <= paid, "every request is paid for")
    }
}
