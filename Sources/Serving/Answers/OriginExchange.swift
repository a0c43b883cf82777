// One request for an origin's resource, from lookup to response: `RequestFacts.plan` decides, this
// type acts. `learn` looks up the facts that the plan depends on, `carryOut` performs it.
import Ahead
import CachePolicy
import HTTP
import HTTPServer
import Model
import Origin
import Playlists
import Posix
import Reactor
import Store
import TimeShifting
import URISyntax

/// One request and its response.
///
/// The properties marked `exclusivity(unchecked)` are read and replaced as a whole unless they say
/// otherwise, so that accesses cannot overlap.
///
/// Bound to its server loop.
final class OriginExchange {
    let core: ProxyCore
    let exchange: Exchange
    /// Changes when a playlist turns out to be specific to its viewer, and when an expired URL was
    /// replaced.
    @exclusivity(unchecked) var resource: Resource
    /// The resource that the request names.
    let asked: Resource
    /// The version of the key rules, read before `asked` was made by them: they may change while
    /// the request waits for a text.
    private let rules: UInt64
    /// True for a page of another site, which gets nothing that may come from a private host.
    let isForPage: Bool
    private(set) lazy var range = ByteRangeSpec.parse(request.fields)
    /// The playlists and JSON texts that are served.
    private(set) lazy var texts = ServedTexts(core, exchange, asked: asked.listKey)
    @exclusivity(unchecked) var progress = Progress()
    /// Changed by calls that do not re-enter.
    @exclusivity(unchecked) var awaited = AwaitedFetch()
    /// The last fetch, if it may be repeated; nil before, and for a revalidation.
    @exclusivity(unchecked) var lastFetch: FetchRequest?
    /// The window that is kept of the body, if that may have no end.
    var endless: EndlessBody?
    /// Fields of the response that were not stored.
    var onlyHere = Fields()
    /// The budget of this request for its origins, created on first use.
    var budget: OriginBudget {
        if let madeBudget { return madeBudget }
        let made = OriginBudget(tracedOn: exchange)
        madeBudget = made
        return made
    }
    /// The budget, once it was created.
    private var madeBudget: OriginBudget?
    /// True if a page of another site asks that has no consent, whatever the settings.
    ///
    /// Computed, since few requests meet what depends on it.
    var isOfForeignPage: Bool { ForeignPage.isSender(of: request, core.settings) }
    /// The request head; kept alive by the fetch's reply and the exchange's callbacks.
    var request: RequestHead { exchange.request }
    /// Sends the response.
    var responder: Responder {
        Responder(
            core: core, exchange: exchange, resource: resource, rules: rules, budget: madeBudget,
            isAsked: resource === asked, isForPage: isForPage)
    }

    init(
        core: ProxyCore, exchange: Exchange, resource: Resource, rules: UInt64, isForPage: Bool
    ) {
        self.core = core
        self.exchange = exchange
        self.rules = rules
        self.isForPage = isForPage
        self.resource = resource
        asked = resource
    }

    /// What was done and learned for the request so far; later decisions depend on it.
    struct Progress {
        /// The stored object that may be served if the origin fails.
        var fallback: StoredObject?
        /// The playlist that may be another viewer's, while the session's own copy is asked for.
        var shared: (resource: Resource, object: StoredObject)?
        /// True once the origin did not deliver the session's own copy of a playlist.
        var takesShared = false
        /// Why the stored response had to be revalidated.
        var staleReason: Freshness.StaleReason?
        var isPartlyStored = false
        /// The offline form of the playlist, once it was looked up.
        var offline: OfflineForm?
        /// True once the origins of what a list lacks were checked.
        var hasCheckedOrigins = false
        /// True once the end of what may be HLS JSON was waited for.
        var hasAwaitedText = false
        /// True once a stored text was discarded because the disk could not read it.
        var hasDiscardedText = false
        /// When the origin was last asked for the resource.
        var askedAt: Monotonic?
        /// How often the resource was searched for because its token had expired.
        var revivals = 0
        /// When the cookies were set that the resource was requested with once more.
        var cookiesUsed: Monotonic?
        /// True if the requested range may be fetched although something was: the first bytes, to
        /// learn the type, or a new version, by a revalidation.
        var mayAskAgain = false
        /// True if the last fetch was a revalidation, which asks for the whole.
        var hasRevalidated = false
        /// True once a fetch of the resource has failed: a parent did not help either.
        var hasFailed = false
        /// True once the fetch that was joined has brought a variant that the request does not
        /// select.
        var hasMetOtherVariant = false
        /// True once the return of the origin was waited for.
        var hasAwaitedReturn = false

        /// Notes a fetch of what is not stored.
        ///
        /// It asks for the requested range, unless for the first bytes to learn the type: a second
        /// request for the range, which an earlier revalidation may have allowed, is of no use.
        mutating func willFetch(_ part: MissingPart) { mayAskAgain = part.learnsTypeFirst }

        /// Forgets what was learned about a resource that another one replaces.
        mutating func startOver() {
            fallback = nil
            shared = nil
            staleReason = nil
            isPartlyStored = false
            offline = nil
            hasCheckedOrigins = false
            hasFailed = false
        }
    }

    /// A decision in progress: its facts, and the values that they describe.
    struct Decision {
        var facts: RequestFacts
        var object: StoredObject?
        /// The stored text in its served form.
        var playlist: PreparedPlaylist?
        /// The failure to respond with if the plan passes one on.
        var failure: ProxyFailure?
        /// How the origin's reply was obtained.
        var outcome: FetchOutcome?
        /// The origin's status, if it was contacted.
        var status: HTTPStatus?
        /// Stored variants that the origin may select.
        var variants: VariantIndex?
        /// The URL that replaced an expired one.
        var successor: AbsoluteURL?

        var stored: ObjectFacts? { facts.response?.facts }

        /// Returns how a response of this decision was obtained.
        func provenance(_ disposition: Disposition, ttl: Int64?) -> Provenance {
            Provenance(
                disposition: disposition, ttl: ttl, status: status ?? failure?.originStatus,
                failed: failure.flatMap { failure in
                    failure.isUnasked
                        ? nil : failure.forwardReason ?? CacheStatus.ForwardReason.stale
                })
        }

        /// Takes the stored object and its facts.
        mutating func take(_ object: StoredObject, _ stored: ObjectFacts) {
            self.object = object
            facts.stored = .response(RequestFacts.Response(object, stored))
        }
    }

    /// Makes a decision that knows only the request and the circumstances.
    func newDecision() -> Decision {
        var facts = RequestFacts(resource, circumstances, request.method, range)
        facts.origin = originState
        facts.hasDown = mustReduce
        facts.hasFailed = progress.hasFailed
        facts.offline = progress.offline?.outcome
        facts.originConfirmation = progress.hasCheckedOrigins ? .askedBefore : nil
        return Decision(facts: facts)
    }

    /// The state of the resource's origin; up if a parent is asked in its place, until that was in
    /// vain.
    var originState: OriginHealth.State {
        progress.hasFailed
            ? core.origins.health.state(of: resource.url.origin) : core.origins.state(of: resource)
    }

    /// True if the playlist is reduced to what can be played, since an origin is down.
    var mustReduce: Bool {
        progress.hasFailed ? core.origins.hasDown : core.origins.mustReduce(resource)
    }

    /// The input of decisions besides the stored response.
    var circumstances: RequestCircumstances { core.circumstances(of: exchange) }

    /// Serves from the store if possible, otherwise fetches.
    func start() { decide(newDecision()) }

    /// Computes the plan, looking up facts as needed, and performs it; possibly after this returns.
    func decide(_ given: Decision) {
        var decision = given
        while true {
            let plan = decision.facts.plan
            guard case .learn(let fact) = plan else { return carryOut(plan, decision) }
            guard learn(fact, for: &decision) else { return }
        }
    }

    private func carryOut(_ plan: RequestPlan, _ decision: Decision) {
        switch plan {
        case .learn: break
        case .serve(let disposition, let ttl):
            serve(decision, decision.provenance(disposition, ttl: ttl))
        case .serveLater: serveLater(decision)
        case .revalidate(let reason): revalidate(decision, reason)
        case .fetch(let reason, let part): fetchMissing(part, reason, decision)
        case .fetchOwnCopy: startForSession(decision)
        case .awaitReload: awaitReload()
        case .followSuccessor: if let url = decision.successor { move(to: url) }
        case .findSuccessor: findSuccessor(decision)
        case .fetchRest: fetchRest(decision)
        case .awaitReturn: awaitReturn(decision)
        case .refuse(let refusal): refuse(refusal, decision.failure)
        }
    }

    private func serve(_ decision: Decision, _ how: Provenance) {
        guard let object = decision.object, let stored = decision.stored else { return }
        if hides(stored.head) { return responder.fail(.hiddenFromPages) }
        if how.disposition == .staleWhileRevalidate { renewBehind(object) }
        if how.disposition == .staleOnError, decision.facts.origin > .up { noteMissing() }
        guard let playlist = decision.playlist else { return serve(object, stored, how) }
        serve(playlist, of: object, stored, how)
    }

    /// True if a page asks for what may come from a private host: a player's request may have
    /// followed a redirect there.
    ///
    /// A longer window may have what such a request brought earlier.
    func hides(_ head: StoredHead) -> Bool {
        guard isForPage else { return false }
        if core.settings.mayBePrivate(finalURL: head.finalURL) { return true }
        guard resource.session.isShifted, !resource.followsHTTP else { return false }
        return core.timeShift.known(resource.url, of: resource.session)?.mayBePrivate ?? false
    }

    /// Serves an object's content.
    private func serve(_ object: StoredObject, _ stored: ObjectFacts, _ how: Provenance) {
        var response = StoredResponse(responder, (object, stored), range: range, how) {
            [self] lack in
            switch lack {
            case .refused(let refusal): refuse(refusal)
            case .firstByte(let object, let start, let stop): fetchFirst(of: object, start, stop)
            }
        }
        response.endless = endless
        response.onlyHere = onlyHere
        response.mayAskAgain = progress.mayAskAgain
        progress.mayAskAgain = false
        response.send()
    }

    /// Serves a text in its rewritten form.
    private func serve(
        _ playlist: PreparedPlaylist, of object: StoredObject, _ stored: ObjectFacts,
        _ how: Provenance
    ) {
        if how.status == .ok, let shared = progress.shared?.object, shared !== object {
            ObjectFacts.of(shared)?.noteMade(shared, object)
        }
        core.lookahead.list(
            resource, object, texts.sketch(of: object), exchange, isForPage: isForPage)
        TextResponse(
            responder: responder, playlist: playlist, text: servable(object, stored), how: how
        ).send(texts)
    }

    /// Serves the old list in place of one that the origin did not deliver, but only when a player
    /// would reload: players request the next list as soon as they have this one.
    private func serveLater(_ decision: Decision) {
        guard let object = decision.object, let stored = decision.stored,
            let list = decision.playlist
        else { return }
        if hides(stored.head) { return responder.fail(.hiddenFromPages) }
        let bound = LoopBound(self, to: exchange.loop)
        let obtained = decision.provenance(.staleOnError, ttl: nil)
        exchange.loop.schedule(after: list.facts.reuse) { _ in
            bound.enqueue { this, _ in
                guard this.exchange.isAlive else { return }
                let question = this.resource.question(stored, list.facts, this.circumstances)
                var how = obtained
                how.ttl = Freshness.remaining(question)
                this.serve(list, of: object, stored, how)
            }
        }
    }

    /// Starts over under a key of this session alone.
    ///
    /// A copy of another session may be served if the origin fails, and the daemon has one user
    /// only or a cookie alone speaks for it being another viewer's; a page of another site gets it
    /// in the latter case only.
    private func startForSession(_ decision: Decision) {
        if let object = decision.object, let stored = decision.stored,
            stored.isMarkedByCookieAlone
        {
            progress.shared = (resource, object)
        } else if isOfForeignPage {
            progress.fallback = nil
        } else if !core.isShared {
            progress.fallback = decision.object
        }
        resource = resource.ownCopy
        start()
        // The fetch that brought the other copy gets no reader for this request.
        if decision.facts.reply != nil, let object = decision.object, !object.isComplete {
            core.flights.readerLeft(object)
        }
    }

    func refuse(_ refusal: Refusal, _ known: ProxyFailure? = nil) {
        let mark =
            refusal.fault == .origin ? core.origins.health.mark(of: resource.url.origin) : nil
        if refusal == .partOfSilentOrigin { noteMissing() }
        var failure = refusal.failure(
            of: resource.url, mark, known: known,
            isOfRecording: core.timeShiftThread.isOver(resource.session),
            paused: core.timeShiftThread.pausedRecording(resource.session), now: exchange.loop.now)
        failure.forwardReason =
            progress.staleReason?.forwardReason ?? (progress.isPartlyStored ? .partial : nil)
        responder.fail(failure)
    }

    /// Keeps an origin that does not answer under probing, since something is requested from it.
    func noteMissing() { core.origins.health.want(resource.url.origin, now: exchange.loop.now) }
}
