// One response body: an offset that advances through an object, which may still be growing.
//
// Present bytes are sent by sendfile. At a hole the reader waits for a flight that is near, or
// starts one; if that fails permanently, the response is aborted so that the player sees an
// incomplete body.
import HLS
import HTTPServer
import Logging
import Model
import Origin
import Posix
import Reactor
import Store
import Upstream
import URISyntax

/// The source of bytes `start..<end` of an object, or up to its end.
///
/// Bound to its server loop.
final class Reader: BodySource {
    var object: StoredObject
    let resource: Resource
    let core: ProxyCore
    let loop: EventLoop
    var offset: Int64
    let end: Int64?
    /// The file being read, if the body lies in several; held while it is sent.
    private var part: SharedDescriptor?
    private var waiterID: UInt64?
    private var pendingFetch: FetchID?
    var isBroken = false
    /// True once the origin responded that the body of unknown length ends at this reader's offset.
    private(set) var isAtEnd = false
    var isOver = false
    private var isWaiting = false
    /// The budget of its request; nil until an origin is contacted.
    var budget: OriginBudget?
    /// True for a page of another site.
    var isForPage = false
    /// The resource under which missing bytes are fetched: `resource`, at the URL that replaced an
    /// expired one, or for an object that is not stored, since storing failed.
    var source: Resource
    var detours = 0
    /// The search for the URL that replaced an expired one; nil while there is none.
    var search: RevivalAttempt?
    /// Where the URL was last searched for, and how often there.
    var searches: (offset: Int64, count: Int) = (0, 0)
    /// True once a flight that this reader waited for was refused at another URL: it requests the
    /// rest at its own.
    private var needsOwnURL = false
    /// When the cookies were set that the rest was requested with once more; nil before.
    var cookiesUsed: Monotonic?
    /// When a flight was last requested; nil before.
    private(set) var askedAt: Monotonic?
    /// The number of ended fills when this reader last requested a flight, and its offset then.
    var lastAsked: (endedFills: UInt64, offset: Int64)?
    /// The offset at which this reader last waited for the return of its origin; nil before.
    private var awaitedAt: Int64?
    private var didRecordFirstByte = false
    /// The fill of `object` that was reported to ahead fetches last.
    var reportedFill: FillID?
    /// The registration with `core.readers`; nil while the object is complete, so that flights need
    /// not know of the reader.
    var readerID: Readers.ID?
    /// The offset last reported to `core.readers`.
    private var reportedOffset: Int64
    /// Where reading of this object began, for the report to retention.
    var firstOffset: Int64
    private let receivedAt: Monotonic
    /// True for the rest of a growing resource: it ends where a transfer for all of it ended.
    var endsWithFill = false
    private let start: Int64
    private let failuresBefore: UInt64
    /// What is kept of a body that may have no end; nil for one that has.
    var endless: EndlessBody?
    /// Bytes to send before those of the body: the tables of a stream that was joined.
    var prefix: ArraySlice<UInt8> = []

    var wake: ((EventLoop) -> Void)? {
        didSet { if wake != nil { waitForMore() } }
    }

    init(
        _ object: StoredObject, of resource: Resource, range: (start: Int64, end: Int64?),
        core: ProxyCore, exchange: Exchange
    ) {
        self.object = object
        self.resource = resource
        source = resource
        self.core = core
        loop = exchange.loop
        receivedAt = exchange.receivedAt
        offset = range.start
        end = range.end
        reportedOffset = range.start
        start = range.start
        firstOffset = range.start
        failuresBefore = object.lastFailure?.endedFills ?? 0
        if !object.isComplete || !object.isStorable { enter() }
    }

    // MARK: BodySource

    func next(limit: Int) -> BodyStep {
        if isBroken { return .broken }
        if isAtEnd { return .end }
        if let endless, let step = edgeStep(of: endless, limit: limit) { return step }
        if let end, offset >= end { return .end }
        switch object.state(at: offset) {
        case .present(let count):
            let wanted = min(
                count, end.map { $0 - offset } ?? count, min(Int64(limit), Readers.longestOffer))
            if object.isSpread { return spreadStep(wanted) }
            return .file(
                descriptor: object.descriptor.number, offset: object.bodyOffset + offset,
                count: Int(wanted))
        case .end:
            // The end is before the promised one.
            return end == nil ? .end : .broken
        case .hole(let hole):
            return endOfGrowth(hole) ?? .wait
        }
    }

    /// Returns how the rest of a growing resource ends here; nil if it continues, and for other
    /// bodies.
    ///
    /// A truncated transfer, or one for a shorter range, does not end the body: the rest is
    /// fetched.
    private func endOfGrowth(_ hole: Hole) -> BodyStep? {
        guard endsWithFill, hole.fill == nil else { return nil }
        if (object.lastFailure?.endedFills ?? 0) > failuresBefore { return .broken }
        return object.growthEnd == offset && offset > start ? .end : nil
    }

    /// Returns the next step for a body that lies in several files.
    private func spreadStep(_ count: Int64) -> BodyStep {
        // The bytes may just have been punched out.
        guard let stretch = object.stretch(at: offset, count: count) else { return .wait }
        part = stretch.file
        return .file(
            descriptor: stretch.file.number, offset: stretch.offset, count: Int(stretch.count))
    }

    func advance(by count: Int) {
        if !didRecordFirstByte {
            didRecordFirstByte = true
            core.counters.record(firstByte: Monotonic.now() - receivedAt)
        }
        if let endless, !advances(by: count, in: endless) { return }
        offset += Int64(count)
        if offset - reportedOffset >= Readers.step { reportOffset() }
        if !object.isStorable, endless?.stage ?? .file == .file {
            // Only up to the reported position: a flight counts a reader before the bytes at hand
            // as given up.
            object.punch(
                upTo: (core.readers.least(object.generation) ?? 0) - Wanted.overlapLimit)
        }
    }

    func cancel() {
        guard !isOver else { return }
        isOver = true
        wake = nil
        endless?.viewerLeft()
        if let waiterID { object.cancelWait(waiterID) }
        if let pendingFetch { core.flights.cancel(pendingFetch) }
        search?.cancel()
        search = nil
        leave()
    }

    func enter() {
        guard readerID == nil else { return }
        readerID = core.readers.enter(object.generation, from: offset, to: end)
        reportedOffset = offset
    }

    func reportOffset() {
        reportedOffset = offset
        if let readerID { core.readers.move(readerID, of: object.generation, to: offset) }
    }

    func leave() {
        if let readerID { core.readers.leave(readerID, of: object.generation) }
        readerID = nil
        core.store.noteRead(object, bytes: offset - firstOffset)
        firstOffset = offset
        if !object.isComplete { core.flights.readerLeft(object) }
    }

    // MARK: Waiting

    func waitForMore() {
        guard !isOver, !isWaiting else { return }
        guard case .hole(let hole) = object.state(at: offset), !isBroken, !isBehind else {
            return wakeNow()
        }
        if endOfGrowth(hole) != nil { return wakeNow() }
        enter()
        guard ensuresFill(of: hole) else { return }
        let bound = LoopBound(self, to: loop)
        let waiter = Waiter { _ in bound.enqueue { reader, _ in reader.awaken() } }
        if lastAsked == nil { lastAsked = (hole.endedFills, offset) }
        switch object.wait(at: offset, since: hole, waiter) {
        case .ready: wakeNow()
        case .waiting:
            isWaiting = true
            waiterID = waiter.id
        }
    }

    /// Requests a flight if none is near; returns false if there is nothing to wait for.
    private func ensuresFill(of hole: Hole) -> Bool {
        if hole.fill == nil, endless?.stage == .endless {
            endBroken(because: object.lastFailure?.error ?? FillEnd.streamEnded)
            return false
        }
        if object.isDiscarded, hole.fill == nil {
            goOnElsewhere()
            return false
        }
        // Another flight may bring the bytes first.
        if search != nil { return true }
        if let failure = object.lastFailure, let asked = lastAsked, asked.offset == offset,
            failure.endedFills > asked.endedFills, isLost(hole, since: failure),
            !mayGoOn(after: failure.error)
        {
            breakOff(failure.error)
            return false
        }
        if isFar(hole) { askForFlight(hole) } else { reportWaiting(hole.fill) }
        return true
    }

    /// True if no flight is near enough to wait for: one far behind may never get here, since it is
    /// paused and ended for the sake of its own readers.
    func isFar(_ hole: Hole) -> Bool {
        hole.fill == nil || hole.fillDistance > core.settings.joinDistance
    }

    /// True if what was to fill a hole has failed.
    ///
    /// While a flight far behind goes on, that is only one that was near: the failure of another
    /// concerns other readers, and this one may wait for an origin that ignores ranges.
    private func isLost(_ hole: Hole, since failure: FillFailure) -> Bool {
        guard hole.fill != nil else { return true }
        guard isFar(hole), pendingFetch == nil, let distance = failure.distance(to: offset) else {
            return false
        }
        return distance <= core.settings.joinDistance
    }

    /// True if a transfer ended because another request's budget is spent, and this reader's allows
    /// a request.
    private func mayGoOn(after error: any Error) -> Bool {
        guard case FillEnd.spent = error else { return false }
        return budget?.mayAsk ?? true
    }

    /// Turns the ahead flight of a fill into playback, once.
    private func reportWaiting(_ fill: FillID?) {
        guard fill != reportedFill, core.ahead.isRunning else { return }
        reportedFill = fill
        core.flights.readerJoined(object)
    }

    private func awaken() {
        isWaiting = false
        waiterID = nil
        guard !isOver else { return }
        if case .hole = object.state(at: offset), !isBroken, !isBehind { return waitForMore() }
        wakeNow()
    }

    /// Makes the connection call again for more, in a fresh turn of the loop.
    private func wakeNow() {
        let wake = self.wake
        self.wake = nil
        wake?(loop)
    }

    private func askForFlight(_ hole: Hole) {
        guard pendingFetch == nil else { return }
        lastAsked = (hole.endedFills, offset)
        // The origin would refuse the old URL once more.
        if let url = core.successor(of: source) { _ = fetchesRest(at: url) }
        var stop = end
        if let holeEnd = hole.end { stop = min(stop ?? holeEnd, holeEnd) }
        // Up to the end of a body of known length the range may stay open.
        if stop == object.total { stop = nil }
        var request = FetchRequest(
            resource: source, wanted: .span(start: offset, end: stop), for: .hole(of: object),
            repliesAt: .head, lane: Self.lane(resource, from: offset, to: stop))
        request.terms.awaitsReturn = awaitedAt == offset
        if !object.isStorable, let budget {
            let (start, key, now) = (offset, request.resource.key, loop.now)
            budget.with { $0.goBack(to: start, of: key, now: now) }
        }
        ask(request) { reader, reply in reader.receive(reply) }
    }

    /// Requests a flight; cancels an earlier request.
    func ask(
        _ request: FetchRequest, _ receive: @escaping @Sendable (Reader, FetchReply) -> Void
    ) {
        if let pendingFetch { core.flights.cancel(pendingFetch) }
        let id = FetchID()
        pendingFetch = id
        let bound = LoopBound(self, to: loop)
        var request = request
        if budget == nil { budget = OriginBudget(now: loop.now) }
        request.budget = budget
        request.terms.isForPage = isForPage
        request.terms.cookiesSince = cookiesUsed
        request.terms.needsOwnURL = needsOwnURL || source.url != resource.url
        askedAt = loop.now
        core.flights.fetch(request, id: id) { reply in
            bound.enqueue { reader, _ in
                guard reader.pendingFetch == id else { return }
                reader.pendingFetch = nil
                receive(reader, reply)
            }
        }
    }

    private func receive(_ reply: FetchReply) {
        guard !isOver else { return }
        switch reply {
        case .object(let other, _) where other !== object:
            // Nothing fills the former object any more.
            guard moves(to: other) else { return breakOff(FillEnd.representationChanged) }
        case .notModified, .head: breakOff(FillEnd.representationChanged)
        case .object:
            // The bytes may have arrived before this reply, or their transfer may have ended without
            // any: the reader then waits at a hole for which it could not request a flight while a
            // fetch was open. Without the end of a fill, it would only join the same flight again.
            guard isWaiting, case .hole(let hole) = object.state(at: offset),
                lastAsked?.offset != offset || lastAsked?.endedFills != hole.endedFills
                    || hole.fill == nil
            else { return }
            _ = ensuresFill(of: hole)
        case .failure(let failure):
            guard case .hole(let hole) = object.state(at: offset), isFar(hole) else { return }
            if endsHere(failure) { return endWell() }
            if mayAwaitReturn(after: failure) {
                awaitedAt = offset
                return askForFlight(hole)
            }
            breakOff(failure)
        }
    }

    /// True if the fetch that failed may be repeated once the origin that failed is back.
    private func mayAwaitReturn(after failure: ProxyFailure) -> Bool {
        awaitedAt != offset && resource.mayAwaitReturn(from: offset)
            && core.origins.isAwaited(source, at: failure.redirectedOrigin, now: loop.now)
    }

    /// True if a 416 means that nothing follows the bytes read so far (RFC 9110 section 15.5.17),
    /// which ends a body of unknown length whose first transfer could not be stored.
    func endsHere(_ failure: ProxyFailure) -> Bool {
        end == nil && object.total == nil && offset > 0 && failure.total == offset
    }

    func endWell() {
        isAtEnd = true
        stopWaiting()
        wakeNow()
    }

    private func breakOff(_ error: any Error) {
        if error is SystemError || object.didFailToStore { return goOnElsewhere() }
        if isOfOtherURL(error) {
            needsOwnURL = true
            return waitAnew()
        }
        if maySearch(after: error) { return findSuccessor(after: error) }
        endBroken(because: error)
    }

    /// Waits again for the next bytes, as if nothing had been requested for them.
    func waitAnew() {
        stopWaiting()
        lastAsked = nil
        reportedFill = nil
        if wake != nil { waitForMore() }
    }

    func endBroken(because error: any Error) {
        core.log.notice(
            "a response body ended early",
            metadata: [
                "url": "\(resource.url.redacted)", "offset": "\(offset)", "reason": "\(error)",
            ])
        isBroken = true
        stopWaiting()
        wakeNow()
    }

    func stopWaiting() {
        if let waiterID { object.cancelWait(waiterID) }
        waiterID = nil
        isWaiting = false
    }

    /// Returns the lane of a fetch: express for what would stall playback.
    static func lane(_ resource: Resource, from start: Int64, to end: Int64?) -> Lane {
        if resource.role?.isExpress ?? (resource.nameExtension.hasPrefix("m3u")) { return .express }
        if let end, end - start < 1_024 { return .express }
        return .playback
    }
}
