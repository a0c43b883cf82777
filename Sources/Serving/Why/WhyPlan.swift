import CachePolicy
import HLS
import HTTP
import Model
import Origin
import Playlists
import Posix
import Store
import URISyntax
import Upstream

/// The current plan for a plain GET: made by the same function as for requests, from facts that are
/// looked up without counting as use.
struct WhyPlan {
    private let context: WhyContext
    private(set) var facts: RequestFacts
    private(set) var object: StoredObject?
    /// The URLs of what a playlist lacks; nil if unknown.
    private(set) var lacking: [AbsoluteURL]?
    /// The first plan that is not a lookup.
    private(set) var plan: RequestPlan
    /// The final plan: the same, or the one after an origin that is down has failed.
    private(set) var end: RequestPlan
    /// The plan for the body, if an object is served without rewriting.
    private(set) var body: BodyPlan?
    /// Why the request may not be sent to the origin; nil if it may, or none is to be sent.
    private var refusal: UpstreamError?
    /// The pause that the origin has asked for, if the request meets it.
    private var pause: RefusalMemory.Pause?
    /// What is arriving for other players and may have no end.
    private let arriving: EndlessBody?

    /// More lookups than this mean that the plan never ends.
    private static let mostLookups = 64

    init(_ resource: Resource, _ context: WhyContext, now: WallTime) {
        self.context = context
        arriving = context.daemon?.endless.arriving(for: resource.key)
        facts = RequestFacts(
            resource,
            RequestCircumstances(
                fields: resource.forwardedFields, now: now, isShared: context.isShared),
            .get, .none)
        facts.origin = context.daemon?.origins.state(of: resource) ?? .up
        facts.hasDown = context.daemon?.origins.mustReduce(resource) ?? false
        plan = facts.plan
        end = plan
        follow()
        plan = end
        refusal = sendsRequest ? context.refusal(facts.resource.url.origin) : nil
        pause = refusal == nil ? pauseOfOrigin : nil
        guard let failure = failureToCome else {
            // The plan of a reload needs no lookup; the report shows what is stored all the same.
            if facts.stored == nil { lookUp() }
            body = bodyPlan
            return
        }
        // The flights fail such a request immediately.
        let known = (facts, object)
        facts.failure = failure
        if case .revalidate = end {} else { facts.stored = .nothing }
        follow()
        (facts, object) = known
    }

    /// True if the plan sends the request, and does not only check whether origins answer.
    private var sendsRequest: Bool { end.asksOrigin && end != .learn(.originConfirmation) }

    /// The pause that the origin has asked for; nil if no request is to be sent, or another node's
    /// copy may answer it.
    private var pauseOfOrigin: RefusalMemory.Pause? {
        guard sendsRequest else { return nil }
        if isFetch, context.shared(facts.resource) != nil { return nil }
        return context.daemon?.refusals.pause(of: facts.resource, now: .now())
    }

    /// True if what is not stored is fetched, which may wait for the end of a short pause.
    private var isFetch: Bool {
        switch end {
        case .fetch, .fetchRest: true
        default: false
        }
    }

    /// The failure of the request that is to be sent to the origin; nil if it may succeed.
    ///
    /// A pause decides before the state of the origin does, as in the flights.
    private var failureToCome: RequestFacts.Failure? {
        guard sendsRequest else { return nil }
        if refusal != nil { return RequestFacts.Failure() }
        if let pause {
            if isFetch, pause.left <= context.daemon?.settings.patience ?? .zero { return nil }
            return RequestFacts.Failure(allowsStale: pause.failure.allowsStale)
        }
        guard facts.origin == .down else { return nil }
        var failure = RequestFacts.Failure(allowsStale: true)
        if case .revalidate = end { return failure }
        failure.mayAwaitReturn = mayAwaitReturn
        return failure
    }

    /// Continues while facts are missing, or the request starts over under another key of its URL.
    private mutating func follow() {
        end = facts.plan
        for _ in 0..<Self.mostLookups {
            switch end {
            case .learn(.originConfirmation) where facts.playlist?.isLive == true:
                // Its own origin is down: the live list ends, whichever other origins answer.
                facts.originConfirmation = .asked
            case .learn(.originConfirmation):
                guard lacking?.isEmpty ?? true else { return }
                facts.originConfirmation = .lacksNothing
            case .learn(let fact): learn(fact)
            case .fetchOwnCopy:
                let own = facts.resource.ownCopy
                guard context.store.peek(own.key) != nil else { return }
                startOver(with: own)
            default: return
            }
            end = facts.plan
        }
    }

    private mutating func startOver(with resource: Resource) {
        var next = RequestFacts(resource, facts.circumstances, .get, .none)
        (next.origin, next.hasDown) = (facts.origin, facts.hasDown)
        facts = next
        object = nil
    }

    // MARK: Facts

    var stored: ObjectFacts? { facts.response?.facts }

    /// The body without a known end that a request would join; nil if it would not.
    var endless: EndlessBody? { end.asksOrigin ? arriving : nil }

    private mutating func learn(_ fact: RequestPlan.Fact) {
        switch fact {
        case .stored: lookUp()
        case .name:
            let resource = facts.resource
            facts.name =
                context.daemon.map { $0.name(of: resource, movedTo: $0.successor(of: resource)) }
                ?? RequestFacts.Name()
        case .sharing: facts.mayShare = false
        case .stream: facts.isLiveSession = context.isLive(facts.resource)
        case .originConfirmation: facts.originConfirmation = .asked
        case .entryText, .owner, .playlist, .offlineForm, .reading, .epoch, .pin, .bytes:
            guard let object, let stored else { return facts.stored = .nothing }
            learn(fact, of: object, stored)
        }
    }

    private mutating func learn(
        _ fact: RequestPlan.Fact, of object: StoredObject, _ stored: ObjectFacts
    ) {
        let resource = facts.resource
        switch fact {
        case .entryText:
            let entry = resource.entryText(object, stored) ?? .other
            facts.entry = entry
            if case .text = entry { facts.resource = resource.changing { $0.role = .json } }
        case .owner:
            facts.belongsToAnotherViewer = belongsToAnotherViewer(object, stored)
            facts.isOfOneClient = resource.isOfOneClient(stored, context.mountKind)
        case .playlist:
            facts.text = text(of: object, stored)
            facts.mayLack = !(lacking?.isEmpty ?? true)
        case .offlineForm:
            let form = context.daemon.map { $0.offline.form($0.question(about: object, resource)) }
            facts.offline = form?.outcome ?? .cut
        case .reading:
            facts.sinceReading =
                context.live?.sinceReading(of: resource, facts.circumstances)
                ?? Interval(nanoseconds: .max)
        case .epoch:
            facts.isOfFormerEpoch = context.live?.isOfFormerEpoch(stored, resource) ?? false
            facts.isNameGivenAway = context.live?.isNameReused(resource) ?? false
        case .pin: facts.isPinned = context.store.isPinned(object)
        default: facts.holdsAsked = object.isFilling(from: 0)
        }
    }

    private func belongsToAnotherViewer(_ object: StoredObject, _ stored: ObjectFacts) -> Bool {
        let resource = facts.resource
        return resource.belongsToAnotherViewer(
            object, stored, of: context.sessions, keys: context.keys, mountKind: context.mountKind,
            isOfForeignPage: false, isKnown: stored.isPrepared(for: resource.session.id),
            mayGetOwnCopy: facts.origin == .up || context.store.peek(resource.ownCopy.key) != nil)
    }

    private mutating func lookUp() {
        facts.stored = .nothing
        if facts.resource.followsHTTP {
            switch context.store.select(facts.resource) {
            case .object(let object, let stored, let selected):
                facts.resource = selected
                take(object, stored)
            case .otherVariants(_, let selected):
                facts.resource = selected
                facts.stored = .otherVariants
            case .nothing: break
            }
        } else if let object = context.store.peek(facts.resource.key),
            let stored = ObjectFacts.of(object), !lacksAsked(object) || underFormerKey == nil
        {
            take(object, stored)
        } else if facts.resource.mayHaveOwnCopy,
            let object = context.store.peek(facts.resource.ownCopy.key),
            let stored = ObjectFacts.of(object), stored.head.isPlaylist
        {
            facts.resource = facts.resource.ownCopy
            take(object, stored)
        } else if let former = underFormerKey, let object = context.store.peek(former.key),
            let stored = ObjectFacts.of(object)
        {
            facts.resource = former
            take(object, stored)
        }
    }

    /// True if an object lacks bytes that cannot be fetched now.
    private func lacksAsked(_ object: StoredObject) -> Bool {
        (facts.resource.policy == .offline || facts.origin != .up)
            && !object.isComplete && !object.isFilling(from: 0)
    }

    private var underFormerKey: Resource? {
        facts.resource.underFormerKey(
            context.keys, context.live, context.store, isOriginUp: facts.origin == .up,
            where: \.isComplete)
    }

    private mutating func take(_ object: StoredObject, _ stored: ObjectFacts) {
        self.object = object
        facts.stored = .response(RequestFacts.Response(object, stored))
        lacking = nil
        guard object.isComplete, stored.head.isPlaylist, let daemon = context.daemon else { return }
        lacking = daemon.offline.lacking(daemon.question(about: object, facts.resource))
    }

    private func text(of object: StoredObject, _ stored: ObjectFacts) -> RequestFacts.Text {
        guard stored.head.isPlaylist else {
            return .readable(PlaylistFacts(isLive: false), isShifted: false)
        }
        let resource = self.facts.resource
        guard let facts = context.playlist(object, stored, of: resource) else { return .unreadable }
        // A window that is not in memory is read for a request.
        let isWindow =
            context.window(resource) != nil || (resource.session.isShifted && facts.isLive)
        return .readable(facts, isShifted: isWindow)
    }

    /// True if a request waits for the return of the origin.
    private var mayAwaitReturn: Bool {
        facts.resource.mayAwaitReturn(from: 0)
            && context.daemon?.origins.isAwaited(facts.resource, now: .now()) == true
    }

    private var bodyPlan: BodyPlan? {
        guard case .serve(let disposition, _) = end, let object, let stored,
            !facts.resource.isRewritten(stored)
        else { return nil }
        var body = BodyFacts(
            disposition: disposition, policy: facts.resource.policy, origin: facts.origin,
            isAwaited: mayAwaitReturn, wasAsked: false, start: 0, end: object.total,
            total: object.total, isPresent: object.isComplete,
            joinDistance: context.daemon?.settings.joinDistance ?? 0)
        if case .hole(let hole) = object.state(at: 0) { body.hole = hole }
        body.firstHole = object.firstHole(from: 0)
        return body.plan
    }
}

extension WhyContext {
    /// Returns the facts of a stored playlist; nil if it cannot be parsed.
    func playlist(_ object: StoredObject, _ stored: ObjectFacts, of resource: Resource)
        -> PlaylistFacts?
    {
        guard stored.head.isPlaylist, object.isComplete, let total = object.total,
            let base = try? AbsoluteURL(stored.head.finalURL),
            let body = try? readBody(of: object, count: Int(total))
        else { return nil }
        let limits = daemon?.settings.playlistLimits ?? .standard
        let reading = PlaylistReading(
            limits: resource.session.limits(ofOrigins: limits),
            variables: variables(resource.session.id))
        let wasLive = stored.head.wasLive || live?.wasLive(resource.listKey) == true
        return (try? Playlist(body, base: base, reading)).map {
            PlaylistFacts($0.summary, wasLive: wasLive, mayBeCut: stored.head.mayBeCut)
        }
    }
}

// MARK: Words

extension WhyPlan {
    /// The name that the response will have in `Cache-Status` and the access log, as far as it is
    /// known before an origin is contacted.
    var outcome: String {
        if let endless {
            return (endless.stage == .endless ? Disposition.joinedLive : .live()).name
        }
        if plan != end { return end.disposition?.name ?? Self.failed }
        switch body {
        case .refuse?: return Self.failed
        case .fetchFirst? where object?.presentBytes == 0: return Disposition.miss.name
        case .fetchFirst?: return Disposition.partial.name
        case .send(let disposition)?: return disposition.name
        case .awaitFirst?, .awaitLast?, nil: break
        }
        switch end {
        // The list is served unchanged if the origins answer.
        case .learn(.originConfirmation): return servedWithWord.disposition?.name ?? Self.failed
        case .followSuccessor: return Disposition.miss.name
        default: return end.disposition?.name ?? Self.failed
        }
    }

    private static let failed = "failed"

    private var servedWithWord: RequestPlan {
        var facts = facts
        facts.originConfirmation = .lacksNothing
        return facts.plan
    }

    /// The plan in words.
    var text: String {
        switch (end, body) {
        case _ where endless?.stage == .endless:
            "join the live stream that is arriving for other players, at its edge"
        case _ where endless != nil:
            "join the body that is arriving for other players, at its first byte: whether it has "
                + "an end is not known yet"
        case (_, .refuse(let refusal)?), (.refuse(let refusal), _): text(of: refusal)
        case (_, .fetchFirst?), (.serve(.hit, _), .send(.partial)?):
            "answer from the store and fetch what is missing"
        case (_, .send(.collapsed)?):
            "answer from the store, and with what is arriving for another request"
        case (.learn, _):
            "answer from the store: whole if the origins of its missing parts answer, otherwise "
                + "reduced to what can be played"
        case (.serve(.staleWhileRevalidate, _), _):
            "answer from the store and revalidate in the background"
        case (.serve(.staleOnError, _), _), (.serveLater, _):
            "answer from the store; \(reasonOfFailure ?? "the origin is down")"
        case (.serve(.offline, _), _):
            "answer from the store, reduced to what can be played; \(silence)"
        case (.serve, _): "answer from the store alone"
        case (.revalidate, _): textOfRevalidation
        case (.fetch(let reason, _), _): reason.text + waitForPause + lackOfRoom
        case (.fetchOwnCopy, _): textOfOwnCopy
        case (.awaitReload, _):
            "ask the origin for the list, which it sends once it has advanced that far"
        case (.followSuccessor, _), (.findSuccessor, _):
            "answer from the URL that replaced it, since its token has expired"
        case (.fetchRest, _): "fetch the rest, which shows its type"
        case (.awaitReturn, _): "wait up to 15 s for the origin, which has only just fallen silent"
        }
    }

    private var lackOfRoom: String {
        // Smaller bodies than those that were refused may have room.
        context.store.statistics().isOutOfRoom ? "; it may not be stored, for want of room" : ""
    }

    private var textOfOwnCopy: String {
        if facts.resource.role == .key {
            return "fetch the session's own key, since another's credentials have opened this one"
        }
        guard facts.response?.facts.isMarkedByCookieAlone == true else {
            return "fetch the session's own copy, since it is made for one viewer"
        }
        return "fetch the session's own copy, since a cookie may have told the origin whose it is"
    }

    private var silence: String {
        facts.resource.policy == .offline ? "the policy is offline" : "an origin is down"
    }

    private var textOfRevalidation: String {
        let hasValidator =
            stored?.head.strongValidator != nil || stored?.head.fields.first(.etag) != nil
        return hasValidator
            ? "ask the origin whether it has changed; revalidated if not"
            : "fetch it again, since it has no validator"
    }

    private func text(of refusal: Refusal) -> String {
        switch refusal {
        case .notStored: "504, since the policy offline forbids to fetch"
        case .partNotStored: "504, since a part is missing and the policy is offline"
        case .partOfSilentOrigin:
            "\(statusOfSilence), since a part is missing and the origin does not answer"
        case .nothingKept, .nothingKeptOfSilentOrigin:
            "504, since nothing that it names is stored, and \(silence)"
        case .onlyIfCached: "504, since the request forbids to fetch"
        case .nameGivenAway: "404, since the origin has reused the name for another segment"
        case .unreadable: "an error, since the stored text cannot be read"
        case .failure:
            "\(statusOfFailure), "
                + "since \(reasonOfFailure ?? "the origin does not answer")"
        }
    }

    private var statusOfFailure: UInt16 {
        if refusal != nil { return HTTPStatus.forbidden.rawValue }
        return pause?.failure.status.rawValue ?? statusOfSilence
    }

    /// Why a request that is refused, or meets a pause, is not sent; nil if neither is the case.
    private var reasonOfFailure: String? {
        if let refusal { return refusal.message }
        guard let pause, let seconds = pause.failure.retryAfter else { return nil }
        return "the origin has asked for a pause (Retry-After), which ends in \(seconds) s"
    }

    private var waitForPause: String { reasonOfFailure.map { "; \($0)" } ?? "" }

    /// The status with which requests to the origin, which does not answer, fail now.
    private var statusOfSilence: UInt16 {
        let mark = context.daemon?.origins.health.mark(of: facts.resource.url.origin)
        return (mark?.status ?? .gatewayTimeout).rawValue
    }
}
