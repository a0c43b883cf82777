// One origin transfer that fills one hole of one object, and is taken up again when it breaks.
//
// Life cycle; everything happens on the upstream loop.
//
//     asking ──head──▶ filling ──end of body──▶ ended        `transfer(_:didReceive:)`, `finish`
//       │  ▲              │
//       │  └──back-off────┤ broke, and can be resumed         `retry`
//       │                 │
//       └──gave up────────┴──────────────────▶ ended          `fail`, `abandon`
//
// Who waits: requests that want the object (`waiters`), answered at the head or at the end of the
// body; readers wait on the object itself and hear of the flight only through it.
import Model
import CachePolicy
import HLS
import HTTP
import Posix
import Reactor
import Routing
import Store
import Upstream
import URISyntax

/// One flight.
final class Flight {
    /// A request that waits for this flight's object.
    struct Waiting {
        let id: FetchID
        var delivery: Delivery
        let isCollapsed: Bool
        /// The first byte that is wanted.
        let start: Int64
        /// The budget of the player request; nil for one that brought none.
        let budget: OriginBudget?
        let reply: @Sendable (FetchReply) -> Void

        func answer(_ reply: FetchReply, _ table: FlightTable) {
            table.forget(id)
            self.reply(reply)
        }
    }

    enum State {
        case asking
        case filling
        case backingOff
        case ended
    }

    let resource: Resource
    unowned let table: FlightTable
    /// The table's: each piece of a body is counted.
    let counters: Counters
    var state = State.asking
    var lane: Lane
    /// What is still to be fetched; moves up when the transfer is resumed.
    var wanted: Wanted
    /// Where this flight's first byte went, for what share of its work is done.
    var firstOffset: Int64 = 0
    let revalidates: Bool
    let begunAt: Monotonic
    let terms: FetchRequest.Terms
    var object: StoredObject?
    @exclusivity(unchecked) var writer: FillWriter?
    var outcome: FetchOutcome?
    var waiters: [Waiting] = []
    @exclusivity(unchecked) var transfer: Transfer?
    // What each piece of a body asks for is read and replaced as a whole, or changed by calls that lead
    // nowhere else, so that accesses cannot overlap; checking that costs a hundred instructions each.
    /// Bytes of this round, not in the file yet.
    @exclusivity(unchecked) var gathered: [UInt8] = []
    /// What of the piece that is being gathered is still to come, in bytes; 0 until that is known.
    @exclusivity(unchecked) var roomInPiece = 0
    /// A response whose short body may be here in a moment, and with it the object is made.
    @exclusivity(unchecked) var heldHead: HeldHead?
    /// True until the first bytes of a response have come, which readers are waiting for.
    @exclusivity(unchecked) var isExpected = false
    var requestTime = WallTime.now()
    /// True once storing failed before anybody was told of the object: the body is passed on only.
    var keepsNothing = false
    /// The list whose reading elsewhere the end of this flight has waited for.
    var listsAwaited: UInt64?
    /// True until the first bytes have told whether this is a playlist.
    var isSniffing = false
    /// The first bytes, while they do not tell yet.
    var prefix: [UInt8] = []
    var isPlaylist: Bool
    /// False while the body's end would only be the connection's end, which a cut looks like too.
    var endIsProven = true
    /// True while the origin is asked whether there is anything after the last byte.
    var isVerifyingEnd = false
    /// True once a request was passed on that may have changed what this flight fetches.
    var isOutdated = false
    /// True for a part that is passed on without being understood: its bytes stand from the start of
    /// the object on, whatever their place in the body.
    var isOpaque = false
    /// Where the bytes end that the response has said it holds; what comes behind is not written.
    @exclusivity(unchecked) var provenEnd: Int64?
    /// Bytes before the wanted ones that were asked for, to be compared.
    var overlapCount: Int64 = 0
    /// Bytes behind the wanted ones that were asked for, to be compared.
    var tailCount: Int64 = 0
    /// Where the response ends, as far as it says.
    @exclusivity(unchecked) var receivedEnd: Int64?
    /// True where what is stored has to be compared before the transfer gets there.
    @exclusivity(unchecked) var comparesAhead = false
    /// The end of a hole that is being compared.
    @exclusivity(unchecked) var meeting: Meeting?
    /// The response that is being compared with what is stored.
    @exclusivity(unchecked) var overlap: Overlap?
    /// True while a response is begun with that was compared.
    var isProvenRest = false
    /// True once a range was answered with the whole body.
    var ignoresRanges = false
    /// True once the loss of the object's name was counted.
    var isUnkept = false
    /// True once readers may hold the object: from then on its bytes cannot be taken back.
    var isHandedOut = false
    /// When somebody was told of the object last.
    var answeredAt = Monotonic(nanoseconds: 0)
    /// The status that made this response useless; its body is not read.
    @exclusivity(unchecked) var refusal: (status: HTTPStatus, retryAfter: Interval?)?
    /// Whether URLs that differ in more than spelling may have this one's key.
    private(set) lazy var isMerged = table.keys.isMerged(resource)
    /// Whether the origin said, or showed, that it answers range requests.
    var takesRanges = false
    /// Since when the origin is held back because readers are far behind.
    var heldSince: Monotonic?
    /// What may still be asked and received for a player request: at first the one that began it.
    var budget: OriginBudget
    /// The range that was asked for: nil for the whole body; its end is nil for the body's.
    var askedRange: Wanted?
    /// True once an origin that was asked for a part has begun to send more.
    @exclusivity(unchecked) var sendsMore = false
    /// The end of what the budget knows of this transfer's bytes.
    @exclusivity(unchecked) var accountedEnd: Int64 = 0
    /// Whether a failed attempt may be repeated: not so soon after all attempts have failed.
    let mayRepeat: Bool
    /// True while only fetches ahead of players want it.
    @exclusivity(unchecked) var isAhead: Bool
    /// Whether its viewer is known to have gone on, so that it may end as soon as nobody reads it.
    var isLetGo = false
    /// True where it was begun so: it may have been paused, and its time says nothing of the line.
    let wasAhead: Bool
    /// Since when bytes of this round may come.
    var filledSince: Monotonic?

    init(_ request: FetchRequest, table: FlightTable) {
        resource = request.resource
        self.table = table
        counters = table.counters
        lane = request.lane
        wanted = request.wanted
        revalidates = request.revalidates
        terms = request.terms
        object = request.object
        isPlaylist = request.resource.role == .playlist
        budget =
            request.budget
            ?? OriginBudget(request.isAhead ? .ahead : .init(), now: table.loop.now)
        mayRepeat = !table.gaveUpLately(on: request.resource.key, for: request.budget)
        begunAt = table.loop.now
        isHandedOut = request.object != nil
        isAhead = request.isAhead
        wasAhead = request.isAhead
    }

    /// Where the next byte goes, as far as known.
    var position: Int64? {
        if let writer { return writer.offset + Int64(gathered.count) }
        guard case .span(let start, _) = wanted else { return nil }
        return start
    }

    /// Whether a request is served by waiting for this flight.
    func covers(_ request: FetchRequest) -> Bool {
        guard state != .ended, request.revalidates == revalidates, !isOpaque else { return false }
        guard request.terms.rest === terms.rest else { return false }
        guard !terms.isAlone, !request.terms.isAlone, !isOutdated else { return false }
        guard request.resource.live.delivery == resource.live.delivery else { return false }
        guard request.resource.mayStore == resource.mayStore else { return false }
        if let wantedObject = request.object, wantedObject !== object {
            // One without a name is not found again by a flight that does not know its object yet.
            if object != nil || !wantedObject.isStorable { return false }
        }
        if request.revalidates { return true }
        guard case .span(let start, _) = request.wanted else { return request.wanted == wanted }
        guard case .span(let first, let end) = wanted, let position else { return false }
        // What a response will say of this range says nothing of one that begins before it.
        guard start >= first else { return false }
        if object == nil || isPlaylist { return start == first || within(start, position, end) }
        // What lies behind the watermark may be gone again: a body that is not kept is punched out.
        guard start >= writer?.written ?? first || object?.spans.contains(start) == true else {
            return false
        }
        return within(start, position, end)
    }

    private func within(_ start: Int64, _ position: Int64, _ end: Int64?) -> Bool {
        if let end, start >= end { return false }
        // Another request would be answered with the whole body too.
        if ignoresRanges { return true }
        return start - position <= table.settings.joinDistance
    }

    // MARK: Asking

    /// Sends the request, or sends it again for what is still missing.
    func ask() {
        state = .asking
        refusal = nil
        requestTime = table.loop.wallNow
        overlap = nil
        meeting = nil
        overlapCount = chooseOverlap()
        tailCount = chooseTail()
        var request = TransferRequest(
            url: resource.url, lane: lane, session: resource.session.id.number)
        request.fields = requestFields()
        request.timeouts = table.settings.timeouts
        request.decodesContent = resource.decodesContent && rangeField == nil
        request.method = terms.method
        // A redirect is the origin's answer, to be passed on and stored like any other.
        request.followsRedirects = resource.kind == nil
        guard takeRequest() else { return failSpent() }
        askedRange = wanted.rangeField == nil ? nil : wanted
        sendsMore = false
        request.isTransparent = resource.kind != nil
        if let hold = longestHold {
            request.isHeld = true
            if terms.isDelivery { table.counters.add(.reloadsHeld) }
            request.timeouts.firstByte = max(hold, request.timeouts.firstByte)
        }
        if isPlaylist { request.bodyLimit = Int64(table.settings.playlistLimits.byteCount) }
        transfer = table.client.start(request, delegate: self)
        table.ahead.setNeedsSettle(table)
    }

    private func requestFields() -> Fields {
        var fields = resource.forwardedFields
        for (name, value) in resource.session.fields { fields.set(name, value) }
        // Under a mount the clients keep their cookies themselves.
        if resource.kind == nil,
            let cookie = table.cookieField(for: resource.url, session: resource.session)
        {
            fields.set(.cookie, cookie)
        }
        fields.append(contentsOf: terms.conditions)
        let head = knownHead
        if revalidates {
            if let date = head?.fields.valueBytes(.lastModified) {
                fields.append(
                    nameBytes: FieldName.ifModifiedSince.spelling.utf8, valueBytes: date)
            }
            appendTags(head, to: &fields)
        } else if let range = rangeField {
            fields.set(.range, range)
            // A resource that grows has another validator with each part.
            if let validator = head?.strongValidator, resource.live.growth == nil {
                fields.set(.ifRange, validator)
            }
        }
        return fields
    }

    /// The stored tags, byte for byte: what is asked about has to be what the origin gave.
    private func appendTags(_ head: StoredHead?, to fields: inout Fields) {
        var value = head?.fields.valueBytes(.etag).map { Array($0) } ?? []
        for variant in terms.tags where !variant.tag.isEmpty {
            if !value.isEmpty { value += ", ".utf8 }
            value += variant.tag.utf8
        }
        guard !value.isEmpty else { return }
        fields.append(nameBytes: FieldName.ifNoneMatch.spelling.utf8, valueBytes: value)
    }

    // MARK: Answers to those who wait

    /// Answers every waiter that wants no more than has happened.
    func answer(isComplete: Bool) {
        guard let object, let outcome else { return }
        let ready = waiters.filter {
            isComplete || ($0.delivery == .head && !isSniffing && !isPlaylist)
        }
        guard !ready.isEmpty else { return }
        isHandedOut = true
        answeredAt = table.loop.now
        waiters.removeAll { isComplete || ($0.delivery == .head && !isSniffing && !isPlaylist) }
        // What is no part of a representation is read from its first byte on.
        let isPlaced = !isOpaque && (outcome.status == .ok || outcome.status == .partialContent)
        for waiter in ready {
            waiter.answer(
                .object(
                    object,
                    FetchOutcome(
                        isCollapsed: waiter.isCollapsed, status: outcome.status,
                        notStored: outcome.notStored,
                        onlyHere: waiter.isCollapsed ? Fields() : outcome.onlyHere,
                        isProvenRest: outcome.isProvenRest,
                        hold: object.isComplete
                            ? nil
                            : table.readers.hold(
                                object.generation, from: isPlaced ? waiter.start : 0))),
                table)
        }
        // The player may have left while its answer was on its way.
        table.checkAbandoned(self)
    }

    /// Adds a waiter; one that comes after the head is answered at once.
    func add(_ waiter: Waiting, lane: Lane) {
        waiters.append(waiter)
        if lane < self.lane {
            self.lane = lane
            transfer?.raise(to: lane)
        }
        if state == .filling { answer(isComplete: false) }
    }

    /// Takes a waiter back.
    func remove(_ id: FetchID) {
        waiters.removeAll { $0.id == id }
        if waiters.isEmpty { table.waitersLeft(self) }
    }

    // MARK: Ends

    /// Ends the flight with a failure that everybody is told.
    func fail(_ failure: ProxyFailure, cause: any Error) {
        guard state != .ended else { return }
        table.counters.add(.originFailures)
        close(cause: cause)
        let waiting = waiters
        waiters = []
        for waiter in waiting { waiter.answer(.failure(failure), table) }
    }

    /// Ends the flight because nobody wants it; what has come is kept.
    func abandon() {
        guard state != .ended else { return }
        table.counters.add(.flightsAbandoned)
        flush()
        close(cause: nil)
    }

    /// Lets go of transfer, fill and place in the table.
    ///
    /// `cancels` is false for an answer without content: its transfer ends by itself in a moment,
    /// and leaves a connection that can be used again.
    func close(cause: (any Error)?, cancels: Bool = true) {
        state = .ended
        heldSince = nil
        table.remove(self)
        let running = transfer
        transfer = nil
        if cancels { running?.cancel() }
        guard let object, writer != nil else { return }
        // What is on its way into the file may be what makes it whole.
        let failure = settled() ?? cause
        guard let writer else { return }
        // Before readers hear of the end, or one of them would ask for the rest of a lost body.
        if !object.isComplete, !canBeJoined(object) { object.discard() }
        writer.end(failure: failure)
        self.writer = nil
        table.store.finish(object)
    }

    /// True when a later response can be known to hold the rest of what has come of this one.
    ///
    /// Under HTTP's rules by a strong validator or not at all (RFC 9111 section 3.4); a playlist's
    /// media also by its length. An end that is not known cannot be checked by anything else.
    func canBeJoined(_ object: StoredObject) -> Bool {
        if resource.live.growth != nil { return true }
        if ObjectFacts.of(object)?.head.strongValidator != nil { return true }
        return object.total != nil && resource.kind == nil
    }
}
