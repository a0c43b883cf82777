import CachePolicy
import HLS
import HTTP
import Model
import Posix
import Reactor
import Routing
import Store
import Upstream
import URISyntax

/// The requests of a flight.
extension Flight {
    /// Looks up what is stored around the wanted bytes, for the machine's next request.
    func look() {
        requestTime = table.loop.wallNow
        requestedAt = table.loop.now
        let stored = compared
        perform(
            machine.neighboursFound(
                before: stored?.before(machine.wanted) ?? 0,
                behind: stored?.behind(machine.wanted) ?? 0, now: table.loop.now))
    }

    /// The stored body that the rest is compared with; nil if a strong validator suffices or
    /// nothing has to be compared.
    ///
    /// Once a strong validator was found to be that of one server of several, it does not suffice.
    var compared: StoredBody? {
        guard resource.live.growth == nil, !resource.followsHTTP, !machine.isConditional,
            let known = object ?? continued, let head = ObjectFacts.of(known)?.head,
            head.strongValidator == nil || machine.omitted.contains(.rangeCondition),
            !head.isPlaylist
        else { return nil }
        return StoredBody(spans: known.spans, total: known.total)
    }

    /// What is stored, for the machine's decision about a head.
    var known: KnownFacts {
        KnownFacts(hasObject: object != nil, total: object?.total, compared: compared)
    }

    /// The head of the response whose rest is requested; nil if there is none yet.
    var knownHead: StoredHead? {
        (object ?? continued).flatMap { ObjectFacts.of($0)?.head }
    }

    func send(_ attempt: FlightMachine.Attempt) {
        // An action performed before may have ended the flight.
        guard phase == .asking else { return }
        if table.shared != nil, asksSharedLevel(attempt) { return }
        if let refusalOfOrigin { return refuse(refusalOfOrigin) }
        sendToOrigin(attempt)
    }

    /// Starts a transfer from the origin, or from its parent.
    func sendToOrigin(_ attempt: FlightMachine.Attempt) {
        redirectedTo = nil
        let range = attempt.rangeField
        let parent = nextParent
        let asked = parent?.origin ?? resource.url.origin
        let url = isPolled(at: asked) ? resource.url.withoutHolding : resource.url
        var request = TransferRequest(
            url: url.authorized(as: resource.mountUser), lane: machine.lane,
            session: resource.session.id.number)
        request.goesFirst = terms.goesFirst
        request.fillsWindow = terms.fillsWindow
        request.isReturning = machine.hadSlot
        request.fields = requestFields(range: range)
        if let user = resource.mountUser { request.originFields = user.fields(for: url) }
        request.timeouts = services.settings.timeouts
        request.timeouts.head =
            passesInterimsOn ? nil : machine.headLimit(now: table.loop.now)
        request.trace = trace
        request.decodesContent =
            resource.decodesContent && range == nil && !machine.omitted.contains(.decoding)
        request.method = terms.method
        // A redirect is passed on and stored like any other response.
        request.followsRedirects = !resource.followsHTTP
        request.isTransparent = resource.followsHTTP
        let hold = allowedHold(at: asked)
        if let hold {
            let isCounted = isCounted(at: asked)
            request.isHeld = true
            request.isLongPoll = !isCounted
            if terms.hasDirectives { services.counters.add(.reloadsHeld) }
            request.timeouts.firstByte =
                isCounted ? hold : max(hold, request.timeouts.firstByte)
        }
        if machine.isPlaylist {
            request.bodyLimit = Int64(services.settings.playlistLimits.byteCount)
        }
        if let parent {
            prepare(&request, for: parent, hold: hold)
        } else {
            request.usesFreshConnection = machine.needsNewConnection
            let isSlow =
                request.isHeld
                || table.lateOrigins.holds(resource.url.origin, now: table.loop.now)
            request.timeouts.firstByte = machine.firstByteLimit(
                request.timeouts.firstByte, isSlow: isSlow)
        }
        transfer = table.client.start(request, delegate: self)
        table.ahead.scheduleRoundEnd(table, of: self)
    }

    /// True if the cookies that a request wants or needs are those of this flight, or its body has
    /// begun, so that the origin did not refuse it.
    func takesCookies(for request: FetchRequest) -> Bool {
        guard request.takesCookies(of: resource.session) else { return false }
        guard let since = request.terms.cookiesSince, !hasFill else { return true }
        guard request.resource.session.id == resource.session.id else { return false }
        // A request that was not sent yet looks the cookies up when it is sent.
        return cookies.readAt.map { $0 >= since } ?? true
    }

    private func requestFields(range: String?) -> Fields {
        // Not the loop's time, which is that of its round: cookies may have arrived within the
        // round.
        cookies.readAt = .now()
        let cookie =
            resource.leavesCookiesToClient
            ? nil : table.cookies.field(for: resource.url, session: resource.session)
        cookies.noteSent(cookie)
        var request = RequestFields(for: resource, cookie: cookie)
        defer { rangeCondition = request.rangeCondition }
        if machine.omitted.contains(.conditions) { return request.fields }
        // Conditions come before a range (RFC 9110 section 13.2.2), and concern no rest of a body.
        if machine.fill == nil { request.add(conditions: terms.conditions) }
        if machine.isConditional {
            variants = storedVariants
            request.revalidate(knownHead, tags: variants.map(\.tag))
        } else if let range {
            let isOfAny = machine.omitted.contains(.rangeCondition)
            request.limit(to: range, of: isOfAny ? nil : knownHead)
        }
        return request.fields
    }

    /// The variants that are stored now, which are kept open: the origin may select one with a 304
    /// after it was evicted.
    ///
    /// Those are left out whose coding the client does not take: a weak tag may be that of several
    /// codings (RFC 9110 section 8.8.1), and the origin would select one that the client cannot
    /// read.
    private var storedVariants: [(tag: String, object: StoredObject)] {
        terms.tags.compactMap { variant in
            let key = ObjectKey(resource.cacheKey.selected(by: variant.mark))
            guard !variant.tag.isEmpty, let object = services.store.lookup(key),
                let fields = ObjectFacts.of(object)?.head.fields,
                ContentCoding.accepts(codingsOf: fields, resource.forwardedFields)
            else { return nil }
            return (variant.tag, object)
        }
    }
}
