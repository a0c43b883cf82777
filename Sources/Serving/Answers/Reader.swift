// One response body: an offset that walks through an object which may still be growing.
//
// Present bytes leave by sendfile. At a hole the reader waits for a flight that is near, or asks
// for one of its own; when that fails for good, the player is made to see a broken body.
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

/// Reads `start..<end` of an object, or up to its end.
///
/// Bound to its server loop.
final class Reader: BodySource {
    var object: StoredObject
    let resource: Resource
    let core: ProxyCore
    private let loop: EventLoop
    var offset: Int64
    let end: Int64?
    /// The file that is read from, beside the object's own; held while it is sent.
    private var part: SharedDescriptor?
    private var waiterID: UInt64?
    private var pendingFetch: FetchID?
    private var isBroken = false
    /// Set when the origin said that the body, whose length nobody knew, ends where this reader is.
    private(set) var isAtEnd = false
    var isOver = false
    private var isWaiting = false
    /// The budget of its request; nil until an origin was asked.
    var budget: OriginBudget?
    /// Set when the object's storage failed: the rest comes through a file that is not kept.
    var detour: Resource?
    var detours = 0
    /// The number of ended fills when this reader last asked for a flight, and where it then was.
    var lastAsked: (endedFills: UInt64, offset: Int64)?
    private var didRecordFirstByte = false
    private var didTellOfWaiting = false
    /// Nil while flights need not know: nothing is missing of the object.
    var readerID: Readers.ID?
    /// The offset that `core.readers` knows of.
    private var toldOffset: Int64
    /// Where reading of this object began, for what retention is told.
    private var firstOffset: Int64
    private let receivedAt: Monotonic
    /// True for the rest of a resource that grows: its end is where a transfer ends that was to bring all
    /// of it.
    var endsWithFill = false
    private let start: Int64
    private let failuresBefore: UInt64

    var wake: ((EventLoop) -> Void)? {
        didSet { if wake != nil { waitForMore() } }
    }

    init(
        _ object: StoredObject, of resource: Resource, range: (start: Int64, end: Int64?),
        core: ProxyCore, exchange: Exchange
    ) {
        self.object = object
        self.resource = resource
        self.core = core
        loop = exchange.loop
        receivedAt = exchange.receivedAt
        offset = range.start
        end = range.end
        toldOffset = range.start
        start = range.start
        firstOffset = range.start
        failuresBefore = object.lastFailure?.endedFills ?? 0
        if !object.isComplete || !object.isStorable { enter() }
    }

    // MARK: BodySource

    func next(limit: Int) -> BodyStep {
        if isBroken { return .broken }
        if isAtEnd { return .end }
        if let end, offset >= end { return .end }
        switch object.state(at: offset) {
        case .present(let count):
            let wanted = min(count, end.map { $0 - offset } ?? count, Int64(limit))
            if object.isSpread { return spreadStep(wanted) }
            return .file(
                descriptor: object.descriptor.number, offset: object.bodyOffset + offset,
                count: Int(wanted))
        case .end:
            // An end before the promised one is a broken promise.
            return end == nil ? .end : .broken
        case .hole(let hole):
            return endOfGrowth(hole) ?? .wait
        }
    }

    /// How the rest of a resource that grows ends here; nil where it goes on, and for other bodies.
    ///
    /// What a transfer brought that was cut, or was asked for less, ends at no end: the rest is asked for.
    private func endOfGrowth(_ hole: Hole) -> BodyStep? {
        guard endsWithFill, hole.fill == nil else { return nil }
        if (object.lastFailure?.endedFills ?? 0) > failuresBefore { return .broken }
        return object.growthEnd == offset && offset > start ? .end : nil
    }

    /// What comes next of a body that lies in several files.
    private func spreadStep(_ count: Int64) -> BodyStep {
        // Bytes that have just been given back to the disk are a hole by now.
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
        offset += Int64(count)
        if offset - toldOffset >= Readers.step { tellOffset() }
        if !object.isStorable, let least = core.readers.least(object.generation) {
            // A reader that is alone need not tell of each step.
            let isAlone = core.readers.count(object.generation) == 1
            object.punch(upTo: max(0, (isAlone ? offset : least) - Wanted.overlapLimit))
        }
    }

    func cancel() {
        guard !isOver else { return }
        isOver = true
        wake = nil
        if let waiterID { object.cancelWait(waiterID) }
        if let pendingFetch { core.flights.cancel(pendingFetch) }
        leave()
    }

    func enter() {
        guard readerID == nil else { return }
        readerID = core.readers.enter(object.generation, from: offset, to: end)
        toldOffset = offset
    }

    private func tellOffset() {
        toldOffset = offset
        if let readerID { core.readers.move(readerID, of: object.generation, to: offset) }
    }

    func leave() {
        if let readerID { core.readers.leave(readerID, of: object.generation) }
        readerID = nil
        core.store.noteRead(object, bytes: offset - firstOffset)
        firstOffset = offset
        if !object.isComplete { core.flights.readerLeft(object.key) }
    }

    // MARK: Waiting

    func waitForMore() {
        guard !isOver, !isWaiting else { return }
        guard case .hole(let hole) = object.state(at: offset), !isBroken else { return wakeNow() }
        if endOfGrowth(hole) != nil { return wakeNow() }
        enter()
        guard seesTo(hole) else { return }
        let bound = LoopBound(self, to: loop)
        let waiter = Waiter { _ in bound.enqueue { reader, loop in reader.awaken(loop) } }
        if lastAsked == nil { lastAsked = (hole.endedFills, offset) }
        switch object.wait(at: offset, since: hole, waiter) {
        case .ready: wakeNow()
        case .waiting:
            isWaiting = true
            waiterID = waiter.id
        }
    }

    /// Asks for a flight where none is near; false where there is nothing to wait for.
    private func seesTo(_ hole: Hole) -> Bool {
        if object.isDiscarded, hole.fill == nil {
            goOnElsewhere()
            return false
        }
        if let failure = object.lastFailure, let asked = lastAsked, asked.offset == offset,
            failure.endedFills > asked.endedFills, hole.fill == nil,
            !mayGoOn(after: failure.error)
        {
            breakOff(failure.error)
            return false
        }
        if hole.fill == nil || hole.fillDistance > core.settings.joinDistance {
            askForFlight(hole)
        } else {
            tellOfWaiting()
        }
        return true
    }

    /// Whether a transfer ended because another request has spent its budget, and this one may ask.
    private func mayGoOn(after error: any Error) -> Bool {
        guard case FillEnd.spent = error else { return false }
        return budget?.mayAsk ?? true
    }

    /// What was fetched ahead is playback from now on.
    private func tellOfWaiting() {
        guard !didTellOfWaiting, core.ahead.isRunning else { return }
        didTellOfWaiting = true
        core.flights.readerJoined(object)
    }

    private func awaken(_ loop: EventLoop) {
        isWaiting = false
        waiterID = nil
        guard !isOver else { return }
        if case .hole = object.state(at: offset), !isBroken { return waitForMore() }
        wakeNow()
    }

    /// Lets the connection come back for more, from a fresh turn of the loop.
    private func wakeNow() {
        let wake = self.wake
        self.wake = nil
        wake?(loop)
    }

    private func askForFlight(_ hole: Hole) {
        guard pendingFetch == nil else { return }
        lastAsked = (hole.endedFills, offset)
        var stop = end
        if let holeEnd = hole.end { stop = min(stop ?? holeEnd, holeEnd) }
        // To the end of a body whose length is known: the range may stay open.
        if stop == object.total { stop = nil }
        let request = FetchRequest(
            resource: detour ?? resource, wanted: .span(start: offset, end: stop), object: object,
            delivery: .head, lane: Self.lane(resource, from: offset, to: stop))
        ask(request) { reader, reply in reader.hear(reply) }
    }

    /// Asks for a flight; what a former fetch would still bring is not wanted any more.
    func ask(
        _ request: FetchRequest, _ hear: @escaping @Sendable (Reader, FetchReply) -> Void
    ) {
        if let pendingFetch { core.flights.cancel(pendingFetch) }
        let id = FetchID()
        pendingFetch = id
        let bound = LoopBound(self, to: loop)
        var request = request
        if budget == nil { budget = OriginBudget(now: loop.now) }
        request.budget = budget
        core.flights.fetch(request, id: id) { reply in
            bound.enqueue { reader, _ in
                guard reader.pendingFetch == id else { return }
                reader.pendingFetch = nil
                hear(reader, reply)
            }
        }
    }

    private func hear(_ reply: FetchReply) {
        guard !isOver else { return }
        switch reply {
        case .object(let other, _) where other !== object:
            // Nothing fills the former object any more.
            guard moves(to: other) else { return breakOff(FillEnd.representationChanged) }
        case .notModified, .head: breakOff(FillEnd.representationChanged)
        case .object:
            // The bytes may have come here before this word of them: the reader then waits at the
            // next hole, for which it could not ask while a fetch was open.
            guard isWaiting, lastAsked?.offset != offset,
                case .hole(let hole) = object.state(at: offset)
            else { return }
            _ = seesTo(hole)
        case .failure(let failure):
            guard case .hole(let hole) = object.state(at: offset), hole.fill == nil else { return }
            if endsHere(failure) { return endWell() }
            breakOff(failure)
        }
    }

    /// Whether a refusal says that there is nothing after the bytes that were read (RFC 9110
    /// section 15.5.17): so ends a body of unknown length whose first transfer could not be kept.
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
        endBroken(because: error)
    }

    func endBroken(because error: any Error) {
        core.log.notice(
            "a body broke off",
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

    /// The lane of a fetch: what playback stands still for goes by the express lane.
    static func lane(_ resource: Resource, from start: Int64, to end: Int64?) -> Lane {
        if resource.role?.isExpress ?? (resource.nameExtension.hasPrefix("m3u")) { return .express }
        if let end, end - start < 1_024 { return .express }
        return .playback
    }
}
