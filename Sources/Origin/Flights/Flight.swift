// One origin transfer that fills one hole of one object; resumed after failures.
//
// `FlightMachine` holds the life cycle and decides, `ReceivedBody` the bytes that are not yet in
// the object; this class holds the transfer and the object, turns their reports into events of the
// machine, and performs the machine's actions.
// Everything happens on the upstream loop.
//
// Waiters are requests for the object, answered at the head or at the end of the body; readers wait
// on the object itself and learn of the flight only through it.
import CachePolicy
import Endless
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
    let resource: Resource
    var terms: FetchRequest.Terms
    /// The object whose rest it fetches into one of its own; nil if that is not its purpose.
    let continued: StoredObject?
    /// The stored variants that the origin was asked about, with their entity tags.
    var variants: [(tag: String, object: StoredObject)] = []
    unowned let table: FlightTable
    /// The services that flights share with other threads; held here to save the way through the
    /// table.
    let services: FlightServices
    // The properties used for each piece of a body are read and replaced as a whole, or changed by
    // calls that do not re-enter, so accesses cannot overlap; the check would cost a hundred
    // instructions each.
    @exclusivity(unchecked) var machine: FlightMachine
    @exclusivity(unchecked) var transfer: Transfer?
    @exclusivity(unchecked) var body = ReceivedBody()
    /// What is known of a body that may have no end; nil for one that has.
    var endless: EndlessFill?
    /// The last response head.
    var response: TransferHead?
    /// The parent that sent the last response head from a network; nil for the origin itself.
    var answeringParent: Parent?
    /// The validator that its last request to an origin sent as If-Range; nil for none.
    var rangeCondition: String?
    var requestTime = WallTime.now()
    /// The request time by the monotonic clock.
    var requestedAt: Monotonic
    /// Where its last request to an origin was redirected to; nil if it was not.
    var redirectedTo: AbsoluteURL?
    var object: StoredObject?
    /// The policy of a body that is not stored.
    var unstored = UnstoredBody()
    /// The costs of its transfers.
    let trace = TransferTrace()
    /// The second level's part; nil unless it is being asked or fills the object.
    var sharing: FlightSharing?
    /// Why the origin cannot be asked while only the second level may have what is wanted; nil once
    /// that is asked.
    var refusalOfOrigin: ProxyFailure?
    /// The outcome that waiters are told with the object.
    var outcome: FetchOutcome?
    /// The object that is discarded once the first bytes of the new one show that they are no page,
    /// and this flight's fill of it, which ends then; nil for none.
    var outdated: (object: StoredObject, writer: FillWriter?)?
    /// The host that is asked once more without other transfers to it; nil if none is.
    var triedHost: String?
    /// True if the object has left the name of its key to a former one until it is whole.
    var leavesName = false
    /// True until the table removes it.
    var isInTable = false
    /// What is known of the cookies that it sent and received.
    var cookies: FlightCookies
    /// True if URLs that differ in more than spelling may share this resource's key.
    private(set) lazy var isMerged = services.keys.isMerged(
        resource, mayStandIn: terms.needsOwnURL)

    init(_ request: FetchRequest, table: FlightTable) {
        resource = request.resource
        (terms, cookies) = (request.terms, FlightCookies(of: request.resource))
        continued = request.continued
        self.table = table
        services = table.services
        object = request.object
        let now = table.loop.now
        requestedAt = now
        let job = FlightJob(
            resource: request.resource, limits: FlightLimits(services.settings), begunAt: now,
            revalidates: request.revalidates, method: request.terms.method,
            hasConditions: !request.terms.conditions.isEmpty,
            hasDirectives: request.terms.hasDirectives, staleServes: request.terms.staleServes,
            wantsRest: request.continued != nil, awaitsReturn: request.terms.awaitsReturn,
            mayRepeat: request.terms.awaitsReturn
                || !table.givenUp.holds(request.resource.key, for: request.budget, now: now),
            beganAhead: request.isAhead)
        machine = FlightMachine(
            job, wanted: request.wanted, lane: request.lane,
            budget: request.budget
                ?? OriginBudget(request.isAhead ? .ahead : .init(), now: now),
            wasObjectGiven: request.object != nil)
        if !request.resource.followsHTTP, let known = request.object ?? request.continued,
            table.mixedTags[known.generation] != nil
        {
            machine.omit(.rangeCondition)
        }
    }

    // MARK: State for others

    var phase: FlightMachine.Phase { machine.phase }
    var hasWaiters: Bool { !machine.waiters.isEmpty }
    /// True while a body is being written; a fill outlives a failed transfer.
    var hasFill: Bool { body.writer != nil }

    /// The offset of the next byte, if known.
    var position: Int64? {
        if let position = body.position { return position }
        guard case .span(let start, _) = machine.wanted else { return nil }
        return start
    }

    /// True if a request can be served by joining this flight.
    func covers(_ request: FetchRequest) -> Bool {
        // One that may be answered with something else does not wait with it.
        if phase == .backingOff, !hasFill, !request.terms.awaitsReturn, awaitsReturn {
            return false
        }
        let start = request.object == nil ? firstByte(for: request.wanted) : request.wanted.start
        // What is requested after a purge is to be kept.
        var isSameObject = request.object != nil || object?.isRemoved != true
        if let wantedObject = request.object, wantedObject !== object {
            // An unnamed object cannot be found by a flight that does not have its object yet.
            isSameObject =
                object == nil
                ? wantedObject.isStorable
                : request.revalidates && hasReplaced(wantedObject, for: request)
        }
        return machine.covers(
            JoinFacts(
                isSameQuestion: request.revalidates == machine.job.revalidates
                    && request.continued === continued
                    && isJoinedBy(isForPage: request.terms.isForPage)
                    && request.resource.live.directives == resource.live.directives
                    && takesCookies(for: request)
                    // A body that is being received was not refused.
                    && (machine.isFilling || request.takesURL(of: resource))
                    && request.resource.mayStore == resource.mayStore
                    && request.resource.isOneQuestion(with: resource),
                isAlone: terms.isAlone || request.terms.isAlone, isSameObject: isSameObject,
                wanted: request.wanted, position: position, hasObject: object != nil,
                isAtHand: start >= body.writer?.written ?? machine.wanted.start
                    || object?.spans.contains(start) == true))
    }

    /// The first byte of an answer; an open range of a body of unknown length gets all of it.
    private func firstByte(for wanted: Wanted) -> Int64 {
        wanted.end == nil && object?.total == nil && !resource.isGrowing ? 0 : wanted.start
    }

    /// True if this flight's object took the place of an object, for a request to revalidate that
    /// was on its way meanwhile, or will take it once it is whole.
    ///
    /// A body that has broken off may never be whole: who asks then is not to wait for it. One that
    /// has lost its place on the disk keeps only what its readers still need.
    private func hasReplaced(_ former: StoredObject, for request: FetchRequest) -> Bool {
        guard let object, object.key == former.key else { return false }
        if object.isCurrent { return true }
        // Nobody waits for a renewal behind a stale response: it needs no flight of its own.
        return (machine.isFilling || request.lane == .background) && object.former === former
            && object.isStorable && !object.isDiscarded
    }

    // MARK: Events from the table

    /// Starts immediately, or after a pause.
    func start(after pause: Interval?) { perform(machine.start(after: pause)) }

    /// Adds a waiter; after the head it is answered immediately.
    func add(_ waiter: FlightWaiter, lane: Lane) {
        perform(machine.join(waiter, lane: lane, now: table.loop.now))
    }

    /// Removes a waiter.
    func remove(_ id: FetchID) {
        if machine.leave(id) { table.gracePeriods.waitersLeft(self) }
    }

    /// Turns an ahead flight into one for a player.
    func takeForPlayback(_ lane: Lane) {
        guard let actions = machine.takeForPlayback(lane) else { return }
        table.noteForPlayers(self)
        perform(actions)
        resumeTransfer()
        table.ahead.scheduleRoundEnd(table)
    }

    /// Has its transfers precede all other prefetches that wait for a slot, also one that waits
    /// now.
    func goFirst() {
        terms.goesFirst = true
        transfer?.goFirst()
    }

    /// Lets its transfers, including one that waits now, be sent to a host with one connection.
    func fillWindow() {
        terms.fillsWindow = true
        transfer?.fillWindow()
    }

    /// Ends the flight with a failure that all waiters get.
    func fail(_ failure: ProxyFailure, cause: any Error) {
        perform(machine.fail(failure, cause: cause))
    }

    func refuse(_ failure: ProxyFailure) { perform(machine.refuse(failure)) }

    /// Ends the flight because it is not needed; what was received stays stored.
    func abandon() {
        flush()
        perform(machine.abandon())
    }

    /// Keeps what is fetched from being stored.
    func invalidate() {
        machine.isOutdated = true
        object?.discard()
    }

    // MARK: Facts for the machine

    /// How the flight may continue after the end of a transfer; not computed if the body is
    /// complete.
    var ending: FlightMachine.Ending {
        guard !hasWholeBody else {
            return FlightMachine.Ending(isWanted: true, jitter: 0, now: table.loop.now)
        }
        return FlightMachine.Ending(
            isWanted: isWorthResuming, jitter: Double.random(in: 0...1),
            now: table.loop.now, awaitsReturn: awaitsReturn,
            redirectedOrigin: redirectedTo?.origin)
    }

    /// The origin that its last request got to.
    private var askedOrigin: Origin { (redirectedTo ?? resource.url).origin }

    /// Whether it waits for the return of the origin that its last request got to.
    private var returnWait: ReturnWait {
        guard !asksParent else { return .none }
        return machine.returnWait(
            for: table.probes.health.mark(of: askedOrigin), now: table.loop.now)
    }

    /// True if it waits for that return, or will once its transfer has failed.
    var awaitsReturn: Bool { returnWait == .lasts }

    var hasWholeBody: Bool {
        guard let writer = body.writer, let total = object?.total else { return false }
        return writer.offset >= total
    }

    // MARK: Actions

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
        case .dismiss:
            dropSharing()
            transfer?.dismiss()
        case .raise: transfer?.raise(to: machine.lane)
        case .resumeTransfer:
            resumeTransfer()
            table.ahead.scheduleRoundEnd(table, of: self)
        case .begin(let placement): begin(placement)
        case .renew: renew()
        case .compareHead: compareHead()
        case .learnEnd(let total): learnEnd(total)
        case .discardObject: object?.discard()
        case .forgetObject: (object, outcome) = (nil, nil)
        case .startOver: startOver()
        case .publish: publishIfMedia()
        case .markEnd: if let writer = body.writer { object?.learnTotal(writer.offset) }
        case .readLists: readLists()
        case .complete(let completion): complete(completion)
        case .close(let cause, let cancels): close(cause: cause, cancels: cancels)
        case .deliver(let waiters): deliver(to: waiters)
        case .answer(let waiters, let answer): self.answer(waiters, answer)
        case .noteGivenUp(let isSpent):
            table.givenUp.note(resource.key, isSpent: isSpent, now: table.loop.now)
        case .noteRefusal(let status, let pause):
            services.origins.refusals.note(
                resource.key, status, pause, now: table.loop.now)
        case .noteOtherVersion:
            services.log.notice(
                "the origin sent another version where a body was to continue",
                metadata: ["url": "\(resource.url.redacted)"])
        case .count(let name): services.counters.add(name)
        }
    }

    private func schedule(after delay: Interval) {
        table.loop.schedule(after: delay) { [weak self] _ in
            guard let self, phase == .backingOff, !machine.isWaitingForOthers else { return }
            perform(machine.backedOff(turn, now: table.loop.now))
        }
    }

    /// The circumstances at the end of a back-off; this takes the turn at the origin.
    private var turn: FlightMachine.Turn {
        var turn = FlightMachine.Turn(isWanted: isWorthResuming)
        guard turn.isWanted else { return turn }
        let wait = returnWait
        turn.pause = wait == .none ? pauseBeforeRequest : OriginProbes.returnLook
        if wait == .lasts {
            turn.awaitsReturn = true
            table.probes.noteWait(for: askedOrigin)
        } else if turn.pause != nil, machine.isHopeless(now: table.loop.now) {
            turn.refusal = table.probes.refusal(
                afterWaiting: resource.url, at: wait == .none ? nil : redirectedTo)
        }
        return turn
    }

    private func watchOthers() {
        table.loop.schedule(after: .milliseconds(100)) { [weak self] _ in
            guard let self, machine.isWaitingForOthers else { return }
            perform(
                machine.othersLooked(
                    FlightRivals(of: self).state, isWanted: isWorthResuming))
        }
    }

    /// Pauses whatever sends the body.
    func pauseTransfer() {
        transfer?.pause()
        sharing?.read?.pause()
    }

    func resumeTransfer() {
        transfer?.resume()
        sharing?.read?.resume()
    }

    /// Ends the transfer; its further callbacks are ignored.
    func dropTransfer() {
        if fillsFromShared, transfer == nil { dropSharing() }
        let running = transfer
        transfer = nil
        running?.cancel()
    }

    /// Ends the wait for the first bytes of what may be a new version.
    ///
    /// - Parameter isReplaced: true if it is one, so that the former object is discarded.
    func settleOutdated(isReplaced: Bool) {
        guard let former = outdated else { return }
        outdated = nil
        if isReplaced { former.object.discard() }
        guard let writer = former.writer else { return }
        writer.end(failure: FillEnd.representationChanged)
        if !isReplaced { services.store.finish(former.object) }
    }

    /// Discards what was received and not yet handed out.
    private func startOver() {
        settleOutdated(isReplaced: false)
        object?.discard()
        body.takeWriter()?.end(failure: nil)
        object = nil
        outcome = nil
        body.drop()
    }

    /// Releases the transfer, the fill and the place in the table.
    private func close(cause: (any Error)?, cancels: Bool) {
        table.remove(self)
        settleOutdated(isReplaced: false)
        defer { forgetEndless() }
        let isFromShared = fillsFromShared
        dropSharing()
        let running = transfer
        transfer = nil
        if cancels { running?.cancel() } else { running?.dismiss() }
        guard let object, hasFill else { return }
        // Deferred writes may complete the body.
        let failure = body.drain() ?? cause
        guard let facts = fillFacts else { return }
        // Before readers are woken, or one of them would request the rest of a discarded body.
        if !object.isComplete, !machine.job.canBeJoined(facts) { object.discard() }
        body.takeWriter()?.end(failure: failure)
        if leavesName { noteVariant(object) }
        services.store.finish(object)
        // The object may be complete now: the bytes that were missing may have been a hole between
        // stored ones.
        if !isFromShared { offerToSharedLevel(object) }
    }

    /// Ends the fill of a complete body.
    private func complete(_ completion: FlightMachine.Completion) {
        guard let object, let writer = body.writer else { return }
        table.remove(self)
        settleOutdated(isReplaced: false)
        forgetEndless()
        if case .atEnd = completion { table.givenUp.forget(resource.key) }
        let isFromShared = fillsFromShared
        dropSharing()
        if writer.offset == 0 { discardUnkeptEmpty(object) }
        if resource.isGrowing, machine.wanted.isOpen { object.noteGrowthEnd(writer.offset) }
        body.takeWriter()?.end(failure: nil)
        switch completion {
        case .atEnd:
            if object.isStorable, !object.isCurrent, !object.isDiscarded, !isBehindStored {
                publish(object)
            }
            if resource.live.growth == nil, !isFromShared {
                services.keys.learn(resource, object, isMerged: isMerged)
            }
        case .atLength(let isKnown):
            if isKnown { publishIfMedia() }
            if machine.isPlaylist, object.isStorable, !object.isDiscarded { publish(object) }
        }
        if leavesName { noteVariant(object) }
        if machine.isPlaylist, !object.isCurrent { forgetFormerList() }
        services.store.finish(object)
        if !isFromShared { offerToSharedLevel(object) }
    }

    /// Removes the stored form of a list that has not ended, and whose newer form cannot be stored:
    /// served later, it would set players back.
    private func forgetFormerList() {
        guard outcome?.notStored != nil || object?.didFailToStore == true, !isBehindStored,
            let list = services.live.list(resource.listKey), list.ended == nil
        else { return }
        services.store.remove(resource.key)
    }

    // MARK: Replies to waiters

    private func deliver(to waiters: [FlightWaiter]) {
        guard let object, let outcome else { return }
        // A body that is not a part of a representation is read from its first byte on.
        let isPlaced =
            !machine.isOpaque && (outcome.status == .ok || outcome.status == .partialContent)
        let edge = endless?.body.entry(now: table.loop.now)?.offset
        for waiter in waiters {
            let wanted = isPlaced && endless == nil ? waiter.wanted : .whole
            let hold =
                object.isComplete && object.isStorable
                ? nil
                : services.readers.hold(
                    object.generation, from: edge ?? firstByte(for: wanted), to: wanted.end)
            let told = outcome.told(
                isCollapsed: waiter.isCollapsed, hold: hold, endless: endless?.body)
            reply(to: waiter, .object(object, told))
        }
        // The player may have left before its reply.
        table.gracePeriods.check(self)
    }

    private func answer(_ waiters: [FlightWaiter], _ answer: FlightMachine.Answer) {
        guard !waiters.isEmpty else { return }
        let reply: FetchReply
        switch answer {
        case .failure(let failure): reply = .failure(failure)
        case .renewed:
            guard let object else { return }
            reply = .notModified(object)
        case .head:
            guard let response else { return }
            reply = .head(
                form.stored(response, .inPlace), length: response.fields.first(.contentLength))
        case .filledByOthers:
            guard let object else { return }
            reply = .object(object, FetchOutcome(isCollapsed: true, status: .ok, notStored: nil))
        }
        for waiter in waiters { self.reply(to: waiter, reply) }
        // Without the answered waiters, nobody may need the flight any more.
        if phase != .ended, !hasWaiters { table.gracePeriods.check(self) }
    }

    private func reply(to waiter: FlightWaiter, _ reply: FetchReply) {
        table.forget(waiter.id)
        waiter.reply(reply)
    }
}
