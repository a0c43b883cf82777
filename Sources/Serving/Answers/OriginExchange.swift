// One request for an origin's resource, from lookup to answer. The file to open for "why was this
// a miss?": `start` looks up and decides, `hear` takes the flights' reply, `serve` answers.
import Ahead
import CachePolicy
import HLS
import HTTP
import HTTPServer
import Logging
import Model
import Origin
import Playlists
import Reactor
import Store
import Upstream
import URISyntax

/// Conducts one exchange.
///
/// The properties marked `exclusivity(unchecked)` are read and replaced as a whole, so that accesses
/// cannot overlap.
///
/// Bound to its server loop.
final class OriginExchange {
    let core: ProxyCore
    let exchange: Exchange
    /// Changes once where a playlist turns out to be its viewer's own.
    @exclusivity(unchecked) var resource: Resource
    /// What the request itself asks for.
    let asked: Resource
    private(set) lazy var range = ByteRangeSpec.parse(request.fields)
    @exclusivity(unchecked) private(set) var pendingFetch: FetchID?
    /// What is stored and may serve if the origin does not work.
    @exclusivity(unchecked) var fallback: StoredObject?
    @exclusivity(unchecked) var staleReason: Freshness.StaleReason?
    @exclusivity(unchecked) var isPartlyStored = false
    /// What the playlist is without the network, once that was asked for.
    var offline: OfflineForm?
    /// Whether the origins of what a list lacks were asked if they answer.
    var hasOriginsWord = false
    /// What look-ahead learns of a playlist, where one was rewritten for this exchange, with the
    /// generation of its object.
    var drawn: (generation: UInt64, list: DrawnList)?
    /// The long text that was made last for this exchange.
    var prepared: Prepared?
    /// Whether the end of what may be JSON of HLS has been waited for.
    var hasAwaitedText = false
    /// How often the resource was looked for because its token had died.
    var revivals = 0
    /// True where the first bytes are fetched to learn the type, before the range that is wanted.
    var asksForTypeFirst = false
    /// Waits for a byte that decides what the answer is.
    var waitingReader: Reader?
    /// Fields of the answer that were not kept.
    var onlyHere = Fields()
    /// What this request may still cost its origins.
    var budget: OriginBudget {
        if let spent { return spent }
        let made = OriginBudget(now: exchange.loop.now)
        spent = made
        return made
    }
    /// That budget, once an origin was asked.
    private(set) var spent: OriginBudget?
    /// Kept alive by the fetch's reply and the exchange's callbacks.
    var request: RequestHead { exchange.request }

    init(core: ProxyCore, exchange: Exchange, resource: Resource) {
        self.core = core
        self.exchange = exchange
        self.resource = resource
        asked = resource
    }

    // MARK: Look up and decide

    /// Answers from the store if that may be, else asks the flights.
    func start() {
        guard resource.kind == nil else { return startUnderRules() }
        if resource.live.delivery != nil, resource.policy != .offline { return startDelivery() }
        guard let object = core.store.lookup(resource.key), let facts = ObjectFacts.of(object)
        else {
            return fetchMissing()
        }
        learnLength(of: object)
        if mustBeJudged(object, facts) {
            return judge(object, facts) { [self] in start() }
        }
        if case .text = judgeEntry(object, facts) { becomeText() }
        switch resource.use(of: object, facts) {
        case .text: startText(object, facts)
        case .unusable: fetchMissing()
        case .media: decide(object, facts, playlist: nil)
        }
    }

    func startText(_ object: StoredObject, _ facts: ObjectFacts) {
        guard object.isComplete else { return fetchMissing() }
        if isAnothers(facts), resource.policy != .offline { return startForSession(object) }
        if takesOfflineForm(facts) { return startOffline(object, facts) }
        prepare(object, facts) { [self] outcome in
            switch outcome {
            case .success(let prepared): decide(object, facts, playlist: prepared)
            case .failure(let failure):
                // It was readable once, or it would not be kept: the limits have changed, or what
                // its parent list said is forgotten. A newer one takes its place, if there is one.
                if resource.policy == .offline { return fail(failure) }
                fetchMissing()
            }
        }
    }

    /// Starts over under a key of the session's own.
    ///
    /// What others were given may serve when the origin is gone, if there are no others.
    private func startForSession(_ shared: StoredObject) {
        if !core.isShared { fallback = shared }
        resource = resource.kept(for: resource.session)
        start()
    }

    /// What decisions are made from beside the stored response.
    private var circumstances: Asked {
        Asked(fields: request.fields, now: exchange.loop.wallNow, isShared: core.isShared)
    }

    func question(_ facts: ObjectFacts, _ playlist: PreparedPlaylist?) -> Freshness.Question {
        resource.question(facts, playlist?.facts, circumstances)
    }

    func freshnessQuestion(_ facts: ObjectFacts, _ playlist: PreparedPlaylist?)
        -> Freshness.Question
    {
        var question = resource.freshnessQuestion(facts, playlist?.facts, circumstances)
        // Live streams change keys under one URL: HTTP decides how long one holds.
        if resource.role == .key, question.policy == .media,
            core.playlistMemory.isLive(resource.session.id)
        {
            question.policy = .rfc
        }
        return question
    }

    func decide(_ object: StoredObject, _ facts: ObjectFacts, playlist: PreparedPlaylist?) {
        switch freshness(facts, playlist) {
        case .fresh(let ttl):
            serveUnasked(object, facts, playlist, .init(disposition: .hit, ttl: ttl))
        case .staleWhileRevalidate(let ttl):
            renewBehind(object)
            serve(
                object, facts, playlist: playlist,
                as: .init(disposition: .staleWhileRevalidate, ttl: ttl))
        case .stale(let reason) where reason != .epoch && mayServeUnasked(facts, playlist):
            serveUnasked(object, facts, playlist, .init(disposition: .staleOnError, ttl: -1))
        case .stale(let reason):
            fallback = object
            staleReason = reason
            var request = FetchRequest(
                resource: resource, wanted: .whole, object: object, revalidates: true,
                delivery: playlist == nil ? .head : .completion,
                lane: resource.role?.isExpress == true || playlist != nil ? .express : .playback)
            if resource.kind != nil {
                request.terms.staleServes = Freshness.mayServeStale(question(facts, playlist))
                if self.request.method == .head, playlist == nil {
                    request.terms.method = .head
                    request.terms.isAlone = true
                }
            }
            fetch(request)
        }
    }

    /// How fresh a response is that was served before in answer to the same request; nil where it
    /// would not be served now as it was then.
    func freshnessAgain(
        _ object: StoredObject, _ facts: ObjectFacts, _ playlist: PreparedPlaylist?
    ) -> Freshness? {
        if let playlist {
            guard !takesOfflineForm(facts), !needsOriginsWord(facts, playlist),
                !core.isShiftLong(resource), form(of: object, facts) == playlist.form
            else { return nil }
        }
        return freshness(facts, playlist)
    }

    private func freshness(_ facts: ObjectFacts, _ playlist: PreparedPlaylist?) -> Freshness {
        if playlist == nil, isOfFormerEpoch(facts) { return .stale(.epoch) }
        if playlist == nil, resource.holdsWhileKept { return .fresh(seconds: nil) }
        return Freshness.decide(freshnessQuestion(facts, playlist))
    }

    /// Asks the origin about a response that is served meanwhile (RFC 5861 section 3).
    private func renewBehind(_ object: StoredObject) {
        let request = FetchRequest(
            resource: resource, wanted: .whole, object: object, revalidates: true,
            delivery: .completion, lane: .background)
        core.flights.fetch(request, id: FetchID()) { _ in }
    }

    func fetchMissing() {
        if startAtSuccessor() { return }
        guard resource.policy != .offline else { return failOffline() }
        if isGivenAway { return failGivenAway() }
        guard resource.kind == nil else { return fetchMissing(isAlone: false) }
        fetch(missingRequest)
    }

    func failOffline() {
        fail(
            ProxyFailure(
                .us, .gatewayTimeout,
                "\(resource.url.redacted) is not stored, and the policy offline forbids to fetch it"
            ))
    }

    /// The fetch for what is not stored.
    var missingRequest: FetchRequest {
        let wanted = wantedOfMissing
        var lane = Lane.playback
        if case .span(let start, let end) = wanted {
            lane = Reader.lane(resource, from: start, to: end)
        }
        return FetchRequest(
            resource: resource, wanted: wanted, delivery: isText ? .completion : .head, lane: lane)
    }

    /// Whether the place says that the body is read and rewritten here, so that it must be whole.
    private var isText: Bool { resource.role == .playlist || resource.role == .json }

    /// What to ask an origin for when nothing is stored.
    ///
    /// Text is always asked for whole.
    var wantedOfMissing: Wanted {
        guard !isText else { return .whole }
        // What may turn out to be a playlist is told from media by its first bytes.
        let isOpen = resource.role == nil && resource.decodesContent
        let first = Int64(PlaylistDetector.prefixLength)
        if request.method == .head {
            return resource.kind == nil ? .span(start: 0, end: isOpen ? first : 2) : .whole
        }
        guard case .ranges(let specs) = range, specs.count == 1,
            Preconditions.useRange(
                request.fields, validators: Validators()) || !request.fields.contains(.ifRange)
        else { return .whole }
        if isOpen { return openRange(specs[0], first) }
        switch specs[0] {
        case .bounded(let first, let last):
            return .span(start: first, end: last >= Wanted.openEnd ? nil : last + 1)
        case .from(0): return .whole
        case .from(let first): return .span(start: first, end: nil)
        case .suffix(let length): return length > 0 ? .suffix(length) : .whole
        }
    }

    /// The beginning of a body whose type is open, as far as it is asked for, and enough of it to
    /// judge it by; the range that was asked for follows once the type is known.
    private func openRange(_ spec: ByteRangeSpec, _ first: Int64) -> Wanted {
        switch spec {
        case .from(0): return .whole
        case .bounded(0, let last) where last >= Wanted.openEnd: return .whole
        case .bounded(0, let last): return .span(start: 0, end: max(first, last + 1))
        case .suffix(0): return .whole
        default:
            asksForTypeFirst = true
            return .span(start: 0, end: first)
        }
    }

    // MARK: Ask and hear

    func fetch(_ wanted: FetchRequest) {
        let id = FetchID()
        pendingFetch = id
        let bound = LoopBound(self, to: exchange.loop)
        var wanted = wanted
        wanted.budget = budget
        if resource.kind != nil {
            wanted.terms.interim = { head in
                bound.enqueue { this, _ in this.exchange.sendInterim(head) }
            }
        }
        exchange.onCancel = { [core] in core.flights.cancel(id) }
        core.flights.fetch(wanted, id: id) { reply in
            bound.enqueue { this, _ in this.hear(reply) }
        }
    }

    private func hear(_ reply: FetchReply) {
        pendingFetch = nil
        exchange.onCancel = nil
        guard exchange.isAlive else {
            if case .object(let object, _) = reply { core.flights.readerLeft(object.key) }
            return
        }
        switch reply {
        case .object(let object, let outcome):
            hear(object, outcome)
        case .notModified(let object):
            guard let facts = ObjectFacts.of(object) else { return fetchMissing() }
            if resource.kind != nil { resource = resource.stored(as: object) }
            let how = Serving(disposition: .revalidated, status: .notModified)
            guard isRewritten(facts) else { return serve(object, facts, playlist: nil, as: how) }
            prepare(object, facts) { [self] outcome in
                switch outcome {
                case .success(let playlist): serve(object, facts, playlist: playlist, as: how)
                case .failure(let failure): fail(failure)
                }
            }
        case .head(let head, let length):
            answer(head, length: length)
        case .failure(let failure):
            if !revive(after: failure) { serveFormerList(instead: failure) }
        }
    }

    func isRewritten(_ facts: ObjectFacts) -> Bool {
        facts.head.isPlaylist || resource.role == .json
    }

    private func hear(_ object: StoredObject, _ outcome: FetchOutcome) {
        guard let facts = ObjectFacts.of(object) else {
            return fail(ProxyFailure(.us, .internalServerError, "a head could not be read back"))
        }
        if resource.kind != nil {
            guard !outcome.isCollapsed || mayShare(object, facts, outcome) else {
                return fetchMissing(isAlone: true)
            }
            if outcome.notStored == nil { resource = resource.stored(as: object) }
            onlyHere = outcome.onlyHere
        }
        if outcome.isCollapsed, isAnothers(facts) { return startForSession(object) }
        if mustBeJudged(object, facts) {
            return judge(object, facts) { [self] in hear(object, outcome) }
        }
        switch judgeEntry(object, facts) {
        case .text: becomeText()
        case .open where range == .none && request.method == .get && !hasAwaitedText:
            hasAwaitedText = true
            return fetch(
                FetchRequest(
                    resource: resource, wanted: .whole, object: object, delivery: .completion,
                    lane: .express))
        case .open, .other: break
        }
        var disposition = outcome.isCollapsed ? Disposition.collapsed : .miss
        if outcome.wasStored { disposition = .hit }
        if isPartlyStored { disposition = .partial }
        if let staleReason, !outcome.wasStored { disposition = .refreshed(staleReason) }
        if let reason = outcome.notStored { disposition = .bypass(reason) }
        let how = Serving(disposition: disposition, status: outcome.status)
        guard isRewritten(facts) else {
            return serve(object, facts, playlist: nil, as: how)
        }
        prepare(object, facts) { [self] outcome in
            switch outcome {
            case .success(let playlist): serve(object, facts, playlist: playlist, as: how)
            case .failure(let failure):
                core.store.remove(resource.key)
                serveStale(instead: failure)
            }
        }
    }

    /// The origin did not work: what is stored may serve, within its bounds.
    func serveStale(instead failure: ProxyFailure) {
        guard failure.allowsStale, let fallback, let facts = ObjectFacts.of(fallback) else {
            return fail(failure)
        }
        guard isRewritten(facts) else {
            return serveStale(fallback, facts, playlist: nil, instead: failure)
        }
        prepare(fallback, facts) { [self] outcome in
            guard case .success(let made) = outcome else { return fail(failure) }
            serveStale(fallback, facts, playlist: made, instead: failure)
        }
    }

    private func serveStale(
        _ fallback: StoredObject, _ facts: ObjectFacts, playlist: PreparedPlaylist?,
        instead failure: ProxyFailure
    ) {
        if isOriginDown, takesOfflineForm(facts) { return startOffline(fallback, facts) }
        // A longer window is worth watching, however long its origin is gone.
        let isShifted = playlist.map { $0.form.timeShift != 0 } ?? false
        guard isShifted || Freshness.mayServeStale(question(facts, playlist)) else {
            return takesOfflineForm(facts) ? startOffline(fallback, facts) : fail(failure)
        }
        serveUnasked(fallback, facts, playlist, .init(disposition: .staleOnError, ttl: -1))
    }
}

extension OriginExchange {
    /// A text that was made for an exchange, and what it was made of.
    struct Prepared {
        let generation: UInt64
        let resource: Resource
        let cut: OfflineText?
        let playlist: PreparedPlaylist
    }
}
