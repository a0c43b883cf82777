// One origin transfer that fills one hole of one object, and is resumed when it breaks.
//
// `FlightMachine` holds the life cycle and decides; this class holds the transfer, the object and its
// writer, turns what they say into events of the machine, and performs the machine's actions.
// Everything happens on the upstream loop.
//
// Who waits: requests that want the object, answered at the head or at the end of the body; readers
// wait on the object itself and hear of the flight only through it.
import CachePolicy
import HTTP
import Logging
import Model
import Posix
import Reactor
import Store
import Upstream
import URISyntax

/// One flight.
final class Flight {
    typealias Waiter = FlightMachine.Waiter

    let resource: Resource
    let terms: FetchRequest.Terms
    unowned let table: FlightTable
    /// The table's: each piece of a body is counted.
    let counters: Counters
    // What each piece of a body asks for is read and replaced as a whole, or changed by calls that lead
    // nowhere else, so that accesses cannot overlap; checking that costs a hundred instructions each.
    @exclusivity(unchecked) var machine: FlightMachine
    @exclusivity(unchecked) var transfer: Transfer?
    @exclusivity(unchecked) var writer: FillWriter?
    /// Bytes of this round, not in the file yet.
    @exclusivity(unchecked) var gathered = GatheredBytes()
    /// What the response has said of its body.
    @exclusivity(unchecked) var expected = ExpectedBody()
    /// The head that came last.
    var response: TransferHead?
    var requestTime = WallTime.now()
    /// The same by the monotonic clock.
    var requestedAt: Monotonic
    var object: StoredObject?
    /// What its transfers cost.
    let trace = TransferTrace()
    /// What those are told who get the object.
    var outcome: FetchOutcome?
    /// Whether URLs that differ in more than spelling may have this one's key.
    private(set) lazy var isMerged = table.keys.isMerged(resource)

    init(_ request: FetchRequest, table: FlightTable) {
        resource = request.resource
        terms = request.terms
        self.table = table
        counters = table.counters
        object = request.object
        let now = table.loop.now
        requestedAt = now
        let job = FlightJob(
            resource: request.resource, limits: FlightLimits(table.settings), begunAt: now,
            revalidates: request.revalidates, method: request.terms.method,
            hasConditions: !request.terms.conditions.isEmpty,
            isDelivery: request.terms.isDelivery, staleServes: request.terms.staleServes,
            wantsRest: request.terms.rest != nil,
            mayRepeat: !table.gaveUpLately(on: request.resource.key, for: request.budget),
            beganAhead: request.isAhead)
        machine = FlightMachine(
            job, wanted: request.wanted, lane: request.lane,
            budget: request.budget
                ?? OriginBudget(request.isAhead ? .ahead : .init(), now: now),
            isHandedOut: request.object != nil)
    }

    // MARK: What others see

    var phase: FlightMachine.Phase { machine.phase }
    var hasWaiters: Bool { !machine.waiters.isEmpty }
    /// Whether a body is being written: it outlives a broken transfer.
    var hasFill: Bool { writer != nil }

    /// Where the next byte goes, as far as known.
    var position: Int64? {
        if let writer { return writer.offset + Int64(gathered.bytes.count) }
        guard case .span(let start, _) = machine.wanted else { return nil }
        return start
    }

    /// Whether a request is served by waiting for this flight.
    func covers(_ request: FetchRequest) -> Bool {
        let start = request.wanted.start
        var isSameObject = true
        if let wantedObject = request.object, wantedObject !== object {
            // One without a name is not found again by a flight that does not know its object yet.
            isSameObject = object == nil && wantedObject.isStorable
        }
        return machine.covers(
            JoinFacts(
                isSameQuestion: request.revalidates == machine.job.revalidates
                    && request.terms.rest === terms.rest
                    && request.resource.live.delivery == resource.live.delivery
                    && request.resource.mayStore == resource.mayStore,
                isAlone: terms.isAlone || request.terms.isAlone, isSameObject: isSameObject,
                wanted: request.wanted, position: position, hasObject: object != nil,
                isAtHand: start >= writer?.written ?? machine.wanted.start
                    || object?.spans.contains(start) == true))
    }

    // MARK: Events from the table

    /// Begins: at once, or after a pause.
    func start(after pause: Interval?) { perform(machine.start(after: pause)) }

    /// Adds a waiter; one that comes after the head is answered at once.
    func add(_ waiter: Waiter, lane: Lane) {
        perform(machine.join(waiter, lane: lane, now: table.loop.now))
    }

    /// Takes a waiter back.
    func remove(_ id: FetchID) {
        if machine.leave(id) { table.waitersLeft(self) }
    }

    /// Makes a flight that began for nobody a player's.
    func takeForPlayback(_ lane: Lane) {
        guard let actions = machine.takeForPlayback(lane) else { return }
        perform(actions)
        transfer?.resume()
        table.ahead.setNeedsSettle(table)
    }

    /// Ends the flight with a failure that everybody is told.
    func fail(_ failure: ProxyFailure, cause: any Error) {
        perform(machine.fail(failure, cause: cause))
    }

    func refuse(_ failure: ProxyFailure) { perform(machine.refuse(failure)) }

    /// Ends the flight because nobody wants it; what has come is kept.
    func abandon() {
        flush()
        perform(machine.abandon())
    }

    /// Lets nothing be kept of what is fetched.
    func invalidate() {
        machine.isOutdated = true
        object?.discard()
    }

    // MARK: Facts for the machine

    /// What has come of the body; nil where nothing is being filled.
    var fillFacts: FillFacts? {
        guard let writer, let object else { return nil }
        let head = ObjectFacts.of(object)?.head
        return FillFacts(
            offset: writer.offset, total: object.total, hasHead: head != nil,
            hasStrongValidator: head?.strongValidator != nil)
    }

    /// The same at the end of a body.
    ///
    /// Most bodies are whole then: nothing of them is left to be asked for, and no validator need be
    /// looked for.
    var fillFactsAtEnd: FillFacts? {
        guard hasWholeBody, let writer, let object else { return fillFacts }
        return FillFacts(
            offset: writer.offset, total: object.total, hasHead: ObjectFacts.of(object) != nil)
    }

    /// How the flight may go on after an end; not looked for where the body is whole.
    var ending: FlightMachine.Ending {
        guard !hasWholeBody else {
            return FlightMachine.Ending(isWanted: true, jitter: 0, now: table.loop.now)
        }
        return FlightMachine.Ending(
            isWanted: table.isWorthResuming(self), jitter: Double.random(in: 0...1),
            now: table.loop.now)
    }

    private var hasWholeBody: Bool {
        guard let writer, let total = object?.total else { return false }
        return writer.offset >= total
    }

    // MARK: Actions

    /// Performs actions in their order.
    func perform(_ actions: [FlightMachine.Action]) {
        for action in actions { perform(action) }
    }

    private func perform(_ action: FlightMachine.Action) {
        switch action {
        case .ask: look()
        case .send(let attempt): send(attempt)
        case .schedule(let delay): schedule(after: delay)
        case .watchOthers: watchOthers()
        case .drop: dropTransfer()
        case .cancel: transfer?.cancel()
        case .raise: transfer?.raise(to: machine.lane)
        case .release:
            transfer?.resume()
            table.ahead.setNeedsSettle(table)
        case .begin(let placement): begin(placement)
        case .renew: renew()
        case .compareHead: compareHead()
        case .learnEnd(let total): learnEnd(total)
        case .discardObject: object?.discard()
        case .forgetObject:
            object = nil
            outcome = nil
        case .startOver: startOver()
        case .publish: publishIfMedia()
        case .markEnd: if let writer { object?.markBodyEnd(writer.offset) }
        case .readLists: readLists()
        case .complete(let completion): complete(completion)
        case .close(let cause, let cancels): close(cause: cause, cancels: cancels)
        case .deliver(let waiters): deliver(to: waiters)
        case .answer(let waiters, let answer): tell(waiters, answer)
        case .noteGivenUp(let isSpent): table.noteGivenUp(resource.key, isSpent: isSpent)
        case .noteOtherVersion:
            table.log.notice(
                "another version where a body was to go on",
                metadata: ["url": "\(resource.url.redacted)"])
        case .count(let name): counters.add(name)
        }
    }

    private func schedule(after delay: Interval) {
        table.loop.schedule(after: delay) { [weak self] _ in
            guard let self, phase == .backingOff, !machine.isWaitingForOthers else { return }
            let now = table.loop.now
            var turn = FlightMachine.Turn(isWanted: table.isWorthResuming(self))
            // Asking for a turn takes it.
            if turn.isWanted { turn.pause = table.probes.pause(before: resource.url.origin) }
            if turn.pause != nil, machine.isHopeless(now: now) {
                turn.refusal = table.probes.refusal(afterWaiting: resource.url)
            }
            perform(machine.backedOff(turn, now: now))
        }
    }

    private func watchOthers() {
        table.loop.schedule(after: .milliseconds(100)) { [weak self] _ in
            guard let self, machine.isWaitingForOthers else { return }
            perform(machine.othersLooked(others, isWanted: table.isWorthResuming(self)))
        }
    }

    /// Ends the transfer; nothing that it still says is heard.
    func dropTransfer() {
        let running = transfer
        transfer = nil
        running?.cancel()
    }

    /// Discards what has come, which nobody has seen.
    private func startOver() {
        object?.discard()
        writer?.end(failure: nil)
        writer = nil
        object = nil
        outcome = nil
        gathered.drop()
    }

    /// Lets go of transfer, fill and place in the table.
    private func close(cause: (any Error)?, cancels: Bool) {
        table.remove(self)
        let running = transfer
        transfer = nil
        if cancels { running?.cancel() }
        guard let object, writer != nil else { return }
        // What is on its way into the file may be what makes it whole.
        let failure = settled() ?? cause
        guard let facts = fillFacts, let writer else { return }
        // Before readers hear of the end, or one of them would ask for the rest of a lost body.
        if !object.isComplete, !machine.job.canBeJoined(facts) { object.discard() }
        writer.end(failure: failure)
        self.writer = nil
        table.store.finish(object)
    }

    /// Ends the fill of a body that is whole.
    private func complete(_ completion: FlightMachine.Completion) {
        guard let object, let writer else { return }
        table.remove(self)
        if case .atEnd = completion { table.forgetGivenUp(resource.key) }
        if resource.isGrowing, machine.wanted.isOpen { object.noteGrowthEnd(writer.offset) }
        writer.end(failure: nil)
        self.writer = nil
        switch completion {
        case .atEnd:
            if object.isStorable, !object.isCurrent, !object.isDiscarded, !isBehindStored {
                publish(object)
            }
            if resource.live.growth == nil {
                table.keys.learn(resource, object, isMerged: isMerged)
            }
        case .atLength(let isKnown):
            if isKnown { publishIfMedia() }
            if machine.isPlaylist, object.isStorable, !object.isDiscarded { publish(object) }
        }
        if machine.isPlaylist, !object.isCurrent { forgetFormerList() }
        table.store.finish(object)
    }

    /// Removes the stored form of a live list whose newer form cannot be kept: served later in the
    /// place of that one, it would take players back.
    private func forgetFormerList() {
        guard outcome?.notStored != nil || object?.didFailToStore == true, !isBehindStored,
            table.live.list(resource.listKey) != nil
        else { return }
        table.store.remove(resource.key)
    }

    // MARK: Answers to those who wait

    private func deliver(to waiters: [Waiter]) {
        guard let object, let outcome else { return }
        // What is no part of a representation is read from its first byte on.
        let isPlaced =
            !machine.isOpaque && (outcome.status == .ok || outcome.status == .partialContent)
        for waiter in waiters {
            let hold =
                object.isComplete
                ? nil
                : table.readers.hold(object.generation, from: isPlaced ? waiter.start : 0)
            let told = FetchOutcome(
                isCollapsed: waiter.isCollapsed, status: outcome.status,
                notStored: outcome.notStored,
                onlyHere: waiter.isCollapsed ? Fields() : outcome.onlyHere,
                isProvenRest: outcome.isProvenRest, hold: hold)
            reply(to: waiter, .object(object, told))
        }
        // The player may have left while its answer was on its way.
        table.checkAbandoned(self)
    }

    private func tell(_ waiters: [Waiter], _ answer: FlightMachine.Answer) {
        guard !waiters.isEmpty else { return }
        let told: FetchReply
        switch answer {
        case .failure(let failure): told = .failure(failure)
        case .renewed:
            guard let object else { return }
            told = .notModified(object)
        case .head:
            guard let response else { return }
            told = .head(
                storedHead(response, .inPlace), length: response.fields.first(.contentLength))
        case .filledByOthers:
            guard let object else { return }
            told = .object(object, FetchOutcome(isCollapsed: true, status: .ok, notStored: nil))
        }
        for waiter in waiters { reply(to: waiter, told) }
    }

    private func reply(to waiter: Waiter, _ reply: FetchReply) {
        table.forget(waiter.id)
        waiter.reply(reply)
    }
}

extension FlightLimits {
    init(_ settings: ProxySettings) {
        self.init(
            retries: settings.retries, patience: settings.patience, answer: settings.answerLimit,
            joinDistance: settings.joinDistance)
    }
}
