import CachePolicy
import HLS
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
import Upstream

/// The fetches of an exchange, and their replies.
extension OriginExchange {
    // MARK: Fetches

    func fetch(_ wanted: FetchRequest) {
        let id = FetchID()
        let bound = LoopBound(self, to: exchange.loop)
        progress.askedAt = exchange.loop.now
        progress.hasRevalidated = wanted.revalidates
        // A failed revalidation is not repeated: the stored response may be served instead.
        lastFetch = wanted.revalidates ? nil : wanted
        var wanted = wanted
        wanted.budget = budget
        wanted.terms.isForPage = isForPage
        wanted.terms.cookiesSince = progress.cookiesUsed
        if resource.followsHTTP {
            wanted.terms.interim = { head in
                bound.enqueue { this, _ in this.exchange.sendInterim(head) }
            }
        }
        awaited.begin(id, on: exchange) { [core] in core.flights.cancel(id) }
        core.flights.fetch(wanted, id: id) { reply in
            bound.enqueue { this, _ in this.receive(reply, of: id) }
        }
        exchange.whenHalfClosed { [core] in
            core.flights.noteHalfClosed(id) {
                bound.enqueue { this, _ in this.exchange.endHalfClosed() }
            }
        }
    }

    /// Revalidates the stored response.
    func revalidate(_ decision: Decision, _ reason: Freshness.StaleReason) {
        guard let object = decision.object, let stored = decision.facts.response else { return }
        progress.fallback = object
        progress.staleReason = reason
        let isText = decision.playlist != nil
        // Another origin is down, and the list was found to be playable unchanged.
        if isText, decision.facts.hasDown, progress.offline == nil { progress.offline = .whole }
        var request = FetchRequest(
            resource: resource, wanted: .whole, for: .revalidation(of: object),
            repliesAt: isText ? .completion : .head,
            lane: resource.role?.isExpress == true || isText ? .express : .playback)
        if resource.followsHTTP {
            request.terms.staleServes = decision.facts.outlivesFailure(stored)
            if self.request.method == .head, !isText {
                request.terms.method = .head
                request.terms.isAlone = true
            }
        }
        fetch(request)
        let wait = decision.facts.reloadPatience(
            for: stored,
            isWatched: core.timeShift.list(resource.url, of: resource.session)
                .isWatched(at: exchange.loop.now))
        guard let wait else { return }
        awaited.limit(to: wait, on: exchange) { [weak self] id in
            self?.serveStored(insteadOf: id, after: wait)
        }
    }

    /// Serves the stored list where its origin keeps a player waiting; the fetch goes on for the
    /// requests that follow.
    private func serveStored(insteadOf id: FetchID, after wait: Interval) {
        guard awaited.end(id, on: exchange), exchange.isAlive else { return }
        let seconds = wait.nanoseconds / 1_000_000_000
        decide(
            decisionAfter(
                ProxyFailure(
                    .origin, .gatewayTimeout,
                    "\(resource.url.redacted): the origin has not answered for \(seconds) s",
                    allowsStale: true)))
    }

    /// Revalidates a response that is served meanwhile (RFC 5861 section 3).
    func renewBehind(_ object: StoredObject) {
        var request = FetchRequest(
            resource: resource, wanted: .whole, for: .revalidation(of: object),
            repliesAt: .completion, lane: .background)
        request.terms.isForPage = isForPage
        core.flights.fetch(request, id: FetchID()) { _ in }
    }

    /// Fetches what is not stored; under HTTP's rules with the client's conditions, for the origin
    /// to evaluate.
    func fetchMissing(
        _ part: MissingPart, _ reason: RequestPlan.FetchReason, _ decision: Decision
    ) {
        progress.willFetch(part)
        if progress.fallback == nil { progress.fallback = commonCopy }
        var lane = Lane.playback
        if case .span(let start, let end) = part.wanted {
            lane = Reader.lane(resource, from: start, to: end)
        }
        var missing = FetchRequest(
            resource: resource, wanted: part.wanted,
            repliesAt: resource.isNamedAsText ? .completion : .head, lane: lane)
        if resource.followsHTTP {
            if let reason = reason.staleReason { progress.staleReason = reason }
            addTerms(to: &missing, reason, decision.variants)
        } else {
            missing.terms.isAlone = reason == .notShared
        }
        fetch(missing)
    }

    /// Fetches the first byte and what follows it, up to the end of the hole.
    func fetchFirst(of object: StoredObject, _ start: Int64, _ stop: Int64?) {
        // The origin would refuse the old URL once more.
        if progress.askedAt == nil, let url = core.successor(of: resource) { return move(to: url) }
        progress.isPartlyStored = object.presentBytes > 0
        // If this fails, the stored part is no answer: it would lead here again.
        progress.fallback = nil
        let wasGiven = progress.askedAt != nil
        fetch(
            FetchRequest(
                resource: resource, wanted: .span(start: start, end: stop),
                for: .hole(of: object), repliesAt: .head,
                lane: Reader.lane(resource, from: start, to: stop)))
        // This request does not become a reader of the object that an earlier fetch gave it. Unless
        // told so, that fetch could run to its end if this loop was too late for the check after
        // its reply.
        if wasGiven { core.flights.readerLeft(object) }
    }

    /// Fetches the rest of what may be an HLS JSON text.
    func fetchRest(_ decision: Decision) {
        progress.hasAwaitedText = true
        fetch(
            FetchRequest(
                resource: resource, wanted: .whole,
                for: decision.object.map { FetchRequest.Purpose.hole(of: $0) } ?? .content,
                repliesAt: .completion, lane: .express))
    }

    /// Fetches a list that the origin delivers once it has advanced far enough, or a delta update.
    func awaitReload() {
        var request = FetchRequest(
            resource: resource, wanted: .whole, repliesAt: .completion, lane: .express)
        request.terms.hasDirectives = true
        progress.fallback = core.store.lookup(resource.listKey)
        fetch(request)
    }

    /// Repeats the fetch that failed, which now waits for the return of the origin.
    func awaitReturn(_ decision: Decision) {
        guard var request = lastFetch else { return refuse(.failure, decision.failure) }
        progress.hasAwaitedReturn = true
        request.terms.awaitsReturn = true
        fetch(request)
    }

    /// True if the last fetch may be repeated once the origin that failed is back.
    private func mayAwaitReturn(after failure: ProxyFailure) -> Bool {
        guard !progress.hasAwaitedReturn, request.method == .get, let lastFetch,
            resource.mayAwaitReturn(from: lastFetch.wanted.start)
        else { return false }
        return core.origins.isAwaited(
            resource, at: failure.redirectedOrigin, now: exchange.loop.now)
    }

    // MARK: Replies

    private func receive(_ reply: FetchReply, of id: FetchID) {
        guard awaited.end(id, on: exchange), exchange.isAlive else {
            if case .object(let object, _) = reply { core.flights.readerLeft(object) }
            return
        }
        switch reply {
        case .object(let object, let outcome): receive(object, outcome)
        case .notModified(let object): receiveNotModified(object)
        case .head(let head, _) where request.method == .head && resource.isPlaylist(by: head):
            fetchText()
        case .head(let head, let length): answer(head, length: length)
        case .failure(let failure) where wasSharedRefusal(failure): fetchAtOwnURL()
        case .failure where progress.shared != nil && progress.fallback == nil: takeShared()
        case .failure(let failure):
            var decision = decisionAfter(failure)
            decision.facts.failure?.maySearch =
                progress.revivals < 2 && RevivalAttempt.fits(failure, resource)
            decision.facts.failure?.isOfReload = resource.live.directives != nil
            decide(decision)
        }
    }

    /// True if the last fetch shared a flight that was refused at another URL, and may be repeated.
    private func wasSharedRefusal(_ failure: ProxyFailure) -> Bool {
        guard let lastFetch, !lastFetch.terms.needsOwnURL else { return false }
        return RevivalAttempt.isOfOtherURL(failure, than: lastFetch.resource)
    }

    /// Repeats the last fetch without sharing a flight for another URL.
    private func fetchAtOwnURL() {
        guard var request = lastFetch else { return }
        request.terms.needsOwnURL = true
        fetch(request)
    }

    /// Starts over with the playlist that may be another viewer's: what was played once plays again
    /// without its origin.
    private func takeShared() {
        guard let shared = progress.shared else { return }
        resource = shared.resource
        progress.startOver()
        progress.takesShared = true
        start()
    }

    private func receiveNotModified(_ object: StoredObject) {
        guard let facts = ObjectFacts.of(object) else {
            var decision = newDecision()
            decision.facts.stored = .nothing
            return decide(decision)
        }
        if resource.followsHTTP { resource = resource.stored(as: object) }
        var decision = newDecision()
        decision.take(object, facts)
        decision.status = .notModified
        allowRequestForRange(of: facts)
        decision.facts.reply = RequestFacts.Reply(
            isRevalidated: true, staleReason: progress.staleReason)
        decide(decision)
    }

    /// Allows a request for the range after a revalidation, which asks for the whole.
    ///
    /// Under HTTP's rules, bytes far from those at hand come in a response of their own unless
    /// there is a strong validator, and are no rest of a body whose head was sent (RFC 9111 section
    /// 3.4).
    private func allowRequestForRange(of facts: ObjectFacts) {
        guard resource.kind != nil, progress.hasRevalidated else { return }
        if facts.head.strongValidator == nil { progress.mayAskAgain = true }
    }

    private func receive(_ object: StoredObject, _ outcome: FetchOutcome) {
        guard let facts = ObjectFacts.of(object) else {
            return responder.fail(
                ProxyFailure(
                    .us, .internalServerError,
                    "the daemon cannot read the head of a response that it has just received"))
        }
        var decision = newDecision()
        decision.take(object, facts)
        decision.outcome = outcome
        decision.status = outcome.status
        endless = outcome.endless
        allowRequestForRange(of: facts)
        decision.facts.reply = RequestFacts.Reply(
            isCollapsed: outcome.isCollapsed, wasStored: outcome.wasStored,
            wasPartlyStored: progress.isPartlyStored, hasAwaitedText: progress.hasAwaitedText,
            staleReason: progress.staleReason, notStored: outcome.notStored)
        if resource.followsHTTP, !outcome.isCollapsed { adopt(object, outcome, for: &decision) }
        decide(decision)
    }

    /// Returns the decision after the origin has failed: a stored response may be served within its
    /// limits.
    func decisionAfter(_ failure: ProxyFailure) -> Decision {
        progress.hasFailed = true
        var decision = newDecision()
        decision.failure = failure
        decision.failure?.forwardReason = progress.staleReason?.forwardReason
        // A list that has ended, or names live ones, is kept whatever the origin answers by now.
        decision.facts.failure = RequestFacts.Failure(
            allowsStale: failure.allowsStale || progress.staleReason == .ended,
            mayAwaitReturn: mayAwaitReturn(after: failure))
        decision.facts.stored = .nothing
        let fallback = progress.fallback.flatMap { object in
            ObjectFacts.of(object).map { (object, $0) }
        }
        let isLacking = fallback.map { lacksAsked($0.0, in: decision) } ?? true
        if failure.allowsStale, isLacking, let (object, facts) = foundFormer(for: &decision) {
            decision.take(object, facts)
        } else if let (object, facts) = fallback {
            decision.take(object, facts)
        }
        if let status = failure.originStatus, [.notFound, .gone].contains(status),
            let stored = decision.stored
        {
            decision.facts.failure?.keepsMeaning = keepsMeaning(stored)
        }
        return decision
    }

    /// True if what was revalidated is still what its name means, although the origin has nothing
    /// under the name.
    private func keepsMeaning(_ stored: ObjectFacts) -> Bool {
        guard let reason = progress.staleReason else { return false }
        guard resource.role == .key else {
            return reason == .epoch && core.live.keepsMeaning(stored, resource)
        }
        let name = ObjectKey(
            core.names.keys.cacheKey(of: resource.url, session: resource.session, role: .key))
        return core.live.keepsKey(stored, resource, named: name, at: exchange.loop.now)
    }
}
