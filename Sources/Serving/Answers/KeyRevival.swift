// Replaces playback URLs whose token has expired, and those of playlists that the origin has
// renamed: fetches the playlist that named them again and uses the URL that it now has in their
// place.
//
// In order: the origin answers 401, 403 or 410 for a child, for a playlist also 404 or 400 · its
// successor may be known from an earlier expiry in the same list · otherwise the list is looked for
// among those that the session has played, those that the store keeps for it, and the nearest one
// that the store has evicted · the list is fetched past the cache, once for all waiting requests ·
// each former child is paired with its successor · the request starts over at that URL. A playlist
// that none of them names is compared with those in the session's entry (`renamed`). If the origin
// has refused another URL, whose flight was shared, the request is sent at its own URL first. A list
// whose own token has expired is found through its parent list in the same way; once it is stored
// there, requests for its old URL begin there. A list of an earlier run that redirects, and is
// refused at its URL as the cache key has it, is asked for where the redirect led. A body that is
// stored in part goes on at the new URL: the response that the rest comes in is proven to continue
// it (decision 14).
import CachePolicy
import HLS
import HTTP
import HTTPServer
import Logging
import Model
import Origin
import Playlists
import Posix
import Reactor
import Store
import Synchronization
import Upstream
import URISyntax

extension AbsoluteURL {
    /// The URL without delivery directives, and the directives as they are written in it.
    fileprivate var splitDirectives: (url: AbsoluteURL, directives: [String]) {
        guard let query, query.contains("_HLS_") else { return (self, []) }
        let items = query.split(separator: "&", omittingEmptySubsequences: false).map(String.init)
        let directives = items.filter { $0.hasPrefix("_HLS_") }
        let kept = items.filter { !$0.hasPrefix("_HLS_") }.joined(separator: "&")
        let base = text.prefix { $0 != "?" }
        return (
            (try? AbsoluteURL(kept.isEmpty ? "\(base)" : "\(base)?\(kept)")) ?? self, directives
        )
    }

    fileprivate func adding(_ directives: [String]) -> AbsoluteURL {
        guard !directives.isEmpty else { return self }
        let mark = queryRange == nil ? "?" : "&"
        return (try? AbsoluteURL("\(text)\(mark)\(directives.joined(separator: "&"))")) ?? self
    }
}

/// One attempt of one request to find the current URL of its resource.
///
/// Bound to the loop of the request.
final class RevivalAttempt {
    private let core: ProxyCore
    private let loop: EventLoop
    /// The resource of the request.
    private let example: Resource
    private let budget: OriginBudget
    /// True for a page of another site, which gets nothing that may come from a private host.
    private let isForPage: Bool
    /// When the resource was requested that failed.
    private let askedAt: Monotonic
    /// When the cookies were set that the resource was requested with once more; nil before.
    private(set) var cookiesUsed: Monotonic?
    /// Withdraws what is waited for; nil while nothing is.
    private var withdraw: (() -> Void)?
    private var isCancelled = false
    /// The time after which another request's fetch of a playlist serves this request too.
    private var begunAt = Monotonic.now()
    private var beginnings = 1

    /// The most beginnings that accept another request's fetch; later ones fetch playlists
    /// themselves.
    private static let mostBeginnings = 3

    /// What came of a fetch past the cache.
    private enum Refresh {
        case list(StoredObject, Resource)
        /// Another request's fetch for the session has ended since this attempt began.
        case wasDone
        /// The origin does not know the URL any more, or wants a token or cookie that is missing.
        case refused
        case failed
    }

    /// - Parameters:
    ///   - example: the resource of the request.
    ///   - budget: the budget of the request.
    ///   - isForPage: whether a page of another site requests it.
    ///   - askedAt: when the resource was requested that failed.
    ///   - cookiesUsed: when the cookies were set that it was requested with once more; nil before.
    ///   - core: the parts of the daemon.
    ///   - loop: the loop of the request.
    init(
        for example: Resource, budget: OriginBudget, isForPage: Bool, askedAt: Monotonic,
        cookiesUsed: Monotonic?, core: ProxyCore, loop: EventLoop
    ) {
        self.core = core
        self.loop = loop
        self.example = example
        self.budget = budget
        self.isForPage = isForPage
        self.askedAt = askedAt
        self.cookiesUsed = cookiesUsed
    }

    /// Ends the attempt: nothing is called any more.
    func cancel() {
        isCancelled = true
        withdraw?()
        withdraw = nil
    }

    /// True if a failure may mean that the token of a resource from a list has expired, or that a
    /// playlist has another name now: names of playlists contain sessions of the origin's, which
    /// end, and change with the ladder.
    static func fits(_ failure: ProxyFailure, _ resource: Resource) -> Bool {
        guard let status = failure.originStatus?.rawValue, let role = resource.role,
            !resource.isMounted, resource.policy != .offline
        else { return false }
        switch status {
        case 401, 403, 410: return true
        case 404: return role == .playlist
        // To a blocking reload it means that it is too early (8216bis 6.2.5.2).
        case 400: return role == .playlist && resource.live.directives == nil
        default: return false
        }
    }

    /// True if a failure says nothing of a resource's URL: a request for another URL with the same
    /// cache key, whose flight was shared, was refused.
    static func isOfOtherURL(_ failure: ProxyFailure, than resource: Resource) -> Bool {
        // Whether a name exists does not depend on the token.
        guard failure.isOfToken, fits(failure, resource) else { return false }
        return failure.refusedURL.map { $0 != resource.url } ?? false
    }

    /// True if a failure may also mean that a cookie of the session has expired or is missing.
    static func mayLackCookie(_ failure: ProxyFailure) -> Bool {
        failure.originStatus.map { [401, 403].contains($0.rawValue) } ?? false
    }

    /// Finds the URL to request a resource at, and passes it to `done`, possibly before returning.
    ///
    /// It is the current URL of the resource; or the same URL if the session has other cookies now
    /// than when it was requested; or nil if it is not found.
    ///
    /// - Parameters:
    ///   - resource: what was refused.
    ///   - lacksCookie: whether it may have been refused for want of a cookie.
    ///   - depth: how many lists below this one were refused too.
    ///   - done: receives the URL.
    func find(
        _ resource: Resource, lacksCookie: Bool, depth: Int = 0,
        _ done: @escaping (AbsoluteURL?) -> Void
    ) {
        let (url, directives) = resource.url.splitDirectives
        if let known = core.revival.successor(of: url), known != url {
            return done(known.adding(directives))
        }
        let orSame: (AbsoluteURL?) -> Void = { [self] found in
            done(found ?? (lacksCookie && takesNewCookies(depth) ? resource.url : nil))
        }
        if lacksCookie, takesNewCookies(depth) { return done(resource.url) }
        look(for: resource, at: url) { [self] search, found in
            guard let found else { return orSame(nil) }
            if let url = found.successor, url != resource.url {
                return done(url.adding(directives))
            }
            let isFresh = core.revival.isFresh(found.list.key, now: .now())
            guard !isFresh || (lacksCookie && !core.revival.wasAsked(found.list, now: .now()))
            else {
                guard lacksCookie else { return done(nil) }
                return askParents(of: found.list, depth: depth + 1) { orSame(nil) }
            }
            refresh(found: found, depth: depth) { [self] refreshed in
                if case .wasDone = refreshed {
                    begunAt = .now()
                    beginnings += 1
                    return find(resource, lacksCookie: lacksCookie, depth: depth, done)
                }
                guard case .list(let object, let list) = refreshed else {
                    // Noted, so that the reloads of a playlist that is gone for good do not fetch
                    // its list each time.
                    if !lacksCookie { core.revival.noteRefresh(found.list.key, now: .now()) }
                    return orSame(nil)
                }
                make(
                    .succession(resource.key, session: resource.session.id), of: object,
                    { search.successor(in: object, list, after: found) }, orElse: { orSame(nil) }
                ) { [self] next in
                    if let next { return done(next.adding(directives)) }
                    guard lacksCookie else { return done(nil) }
                    askParents(of: found.list, depth: depth + 1) { orSame(nil) }
                }
            }
        }
    }

    /// When a fetch last changed the session's cookies, if that was after the resource was
    /// requested; or just before, since the request may have joined an earlier one.
    private var newCookies: Monotonic? {
        let since = min(askedAt, Monotonic.now() - Revival.pause)
        let change = core.revival.newCookies(of: example.session.id, since: since)
        return change == cookiesUsed ? nil : change
    }

    /// True if the request was not sent with the session's new cookies.
    ///
    /// It will, or at a depth one of the lists that name it, which does not use them up.
    private func takesNewCookies(_ depth: Int) -> Bool {
        guard let newCookies else { return false }
        if depth == 0 { cookiesUsed = newCookies }
        return true
    }

    /// Looks for the playlist that names a resource.
    private func look(
        for resource: Resource, at url: AbsoluteURL,
        _ then: @escaping (RevivalSearch, RevivalSearch.Found?) -> Void
    ) {
        let search = RevivalSearch(
            sources: core.sources, example: example, session: resource.session, url: url,
            role: resource.role ?? .media)
        // Up to 64 lists are parsed, however long they are.
        make(
            .revival(resource.key, session: resource.session.id), of: nil, { search.look() },
            orElse: { then(search, nil) }, { then(search, $0) })
    }

    /// Fetches the playlists above one past the cache until one of them changes the cookies of the
    /// session; at most two, and none that was fetched for the session just now.
    private func askParents(of list: Resource, depth: Int, _ done: @escaping () -> Void) {
        guard newCookies == nil, depth <= 2 else { return done() }
        look(for: list, at: list.url.splitDirectives.url) { [self] _, found in
            guard let found, found.isExact else { return done() }
            let parent = found.list
            guard !core.revival.wasAsked(parent, now: .now()) else {
                return askParents(of: parent, depth: depth + 1, done)
            }
            // A parent that is refused too is not searched for: its list names its child as before.
            refresh(found: found, depth: 2) { [self] _ in
                askParents(of: parent, depth: depth + 1, done)
            }
        }
    }

    /// Fetches the list that was found past the cache; if it is refused, where a redirect led.
    private func refresh(
        found: RevivalSearch.Found, depth: Int, _ done: @escaping (Refresh) -> Void
    ) {
        refresh(found.list, depth: depth) { [self] refreshed in
            guard case .refused = refreshed, let answered = found.answered else {
                return done(refreshed)
            }
            // The fetch that just failed has the same key, and must not count for this one.
            refresh(answered, depth: depth, isShared: false, done)
        }
    }

    /// Fetches a list past the cache; concurrent requests share one fetch, unless told otherwise.
    private func refresh(
        _ list: Resource, depth: Int, isShared: Bool = true, _ done: @escaping (Refresh) -> Void
    ) {
        // A player of the same session may have it from a private host.
        if isForPage, core.settings.mayBePrivate(list.url.asciiHost) {
            return done(.failed)
        }
        var request = FetchRequest(
            resource: list, wanted: .whole, for: .revalidation(of: nil), repliesAt: .completion,
            lane: .express)
        request.terms.wantsCookies = true
        let (revival, begunAt) = (core.revival, begunAt)
        let mayShare = isShared && beginnings <= Self.mostBeginnings
        ask(
            request, unless: { mayShare && revival.wasAsked(list, since: begunAt) },
            noting: { reply in
                var bringsCookies = false
                if case .object(_, let outcome) = reply { bringsCookies = outcome.bringsCookies }
                revival.noteRefresh(list, bringsCookies: bringsCookies, now: .now())
            }
        ) { [self] reply in
            switch reply {
            case nil: done(.wasDone)
            case .object(let object, _)?: done(.list(object, list))
            case .failure(let failure)?:
                guard Self.fits(failure, list) else { return done(.failed) }
                guard depth < 2 else { return done(.refused) }
                find(list, lacksCookie: Self.mayLackCookie(failure), depth: depth + 1) {
                    [self] url in
                    guard let url else { return done(.refused) }
                    refresh(core.names.resource(list, movedTo: url), depth: depth + 1, done)
                }
            default: done(.failed)
            }
        }
    }

    /// Fetches something other than the request's own resource.
    ///
    /// - Parameters:
    ///   - request: what is fetched.
    ///   - isNeedless: asked on the upstream loop right before the fetch, which it prevents.
    ///   - note: called with the reply on the upstream loop, before any later `isNeedless`.
    ///   - then: receives the reply; nil if there was no need.
    private func ask(
        _ request: FetchRequest, unless isNeedless: @escaping @Sendable () -> Bool,
        noting note: @escaping @Sendable (FetchReply) -> Void,
        _ then: @escaping (FetchReply?) -> Void
    ) {
        let id = FetchID()
        let bound = LoopBound((self, then), to: loop)
        withdraw = { [core] in core.flights.cancel(id) }
        var request = request
        request.budget = budget
        request.terms.isForPage = isForPage
        core.flights.fetch(request, id: id, unless: isNeedless) { reply in
            if let reply { note(reply) }
            bound.enqueue { pair, _ in
                guard !pair.0.isCancelled else { return }
                pair.0.withdraw = nil
                pair.1(reply)
            }
        }
    }

    /// Has a thread for long texts make a value.
    ///
    /// - Parameters:
    ///   - product: the kind of value.
    ///   - object: the text; nil if it must be searched for.
    ///   - make: makes the value; blocks.
    ///   - orElse: called at once, and nothing else, if too many texts wait.
    ///   - then: receives the value.
    private func make<Value: Sendable>(
        _ product: TextWorker.Key.Product, of object: StoredObject?,
        _ make: @escaping @Sendable () -> Value, orElse: () -> Void,
        _ then: @escaping (Value) -> Void
    ) {
        let key = TextWorker.Key(generation: object?.generation ?? 0, product: product)
        let bound = LoopBound((self, then), to: loop)
        let request = core.texts.make(key, bytes: Int(object?.total ?? 0), make) { value in
            bound.enqueue { pair, _ in
                guard !pair.0.isCancelled else { return }
                pair.0.withdraw = nil
                pair.1(value)
            }
        }
        guard let request else { return orElse() }
        withdraw = { [core] in core.texts.cancel(request) }
    }
}

extension ProxyCore {
    /// Records that a session plays a playlist.
    ///
    /// What a playlist of a mount names follows the rules of playback, so the playlist is fetched
    /// again by them too: without the cookies and credentials of the client that it was sent to,
    /// since other clients of the mount have the same session.
    func rememberPlayed(_ list: Resource) {
        guard list.isMounted else { return revival.remember(list) }
        var fields = Fields()
        if let agent = list.forwardedFields.first(.userAgent) { fields.append(.userAgent, agent) }
        revival.remember(
            names.resource(list.url, list.session, role: .playlist, forwarding: fields))
    }

    /// Returns the URL that replaced the resource's, with its directives; nil unless its token is
    /// known to have expired.
    func successor(of resource: Resource) -> AbsoluteURL? {
        guard resource.role != nil, !resource.isMounted else { return nil }
        let isMarked = resource.live.directives != nil || resource.live.playQuery != nil
        let dead = isMarked ? resource.url.withoutDirectives : resource.url
        guard let url = revival.successor(of: dead), url != dead else { return nil }
        return isMarked ? url.adding(resource.url.splitDirectives.directives) : url
    }

    /// Returns a resource as its rest is fetched at the URL that replaced its own: under the key
    /// that it is stored under.
    func resource(_ stored: Resource, fetchedAt url: AbsoluteURL) -> Resource {
        names.resource(stored, movedTo: url).changing {
            $0.cacheKey = stored.cacheKey
            $0.live = stored.live
        }
    }

    /// Counts and logs that a refused resource is requested at another URL, or with new cookies.
    fileprivate func noteRevived(at url: AbsoluteURL, insteadOf refused: AbsoluteURL) {
        counters.add(.revived)
        log.info(
            url == refused
                ? "a refused resource is requested again with new cookies"
                : "a refused resource was found at its new URL",
            metadata: ["url": "\(url.redacted)"])
    }

    /// True if a playlist is stored at the URL that replaced its own.
    func isStoredList(_ list: Resource, movedTo url: AbsoluteURL?) -> Bool {
        guard list.role == .playlist, let url else { return false }
        return store.peek(names.resource(list, movedTo: url).listKey) != nil
    }
}

extension OriginExchange {
    /// Looks for the URL that replaced an expired one, and starts over there if it is found.
    func findSuccessor(_ decision: Decision) {
        progress.revivals += 1
        let lacksCookie = decision.failure.map(RevivalAttempt.mayLackCookie) ?? false
        let attempt = RevivalAttempt(
            for: resource, budget: budget, isForPage: isForPage,
            askedAt: progress.askedAt ?? .now(), cookiesUsed: progress.cookiesUsed, core: core,
            loop: exchange.loop)
        exchange.onCancel = { attempt.cancel() }
        attempt.find(resource, lacksCookie: lacksCookie) { [self] url in
            exchange.onCancel = nil
            progress.cookiesUsed = attempt.cookiesUsed
            guard exchange.isAlive else { return }
            guard let url else {
                var decision = decision
                decision.facts.failure?.maySearch = false
                decision.facts.failure?.isOfReload = false
                return decide(decision)
            }
            core.noteRevived(at: url, insteadOf: resource.url)
            move(to: url)
        }
    }

    /// Starts over at the URL that replaced an expired one.
    func move(to url: AbsoluteURL) {
        if isForPage, core.settings.mayBePrivate(url.asciiHost) {
            return responder.fail(.hiddenFromPages)
        }
        resource = core.names.resource(resource, movedTo: url)
        progress.startOver()
        start()
    }
}

/// The rest of a body whose URL has expired.
extension Reader {
    /// The most searches between two bytes of a body.
    private static let mostSearches = 2

    /// True if an error may mean that the token of the rest has expired, and its URL was not
    /// searched for too often.
    func maySearch(after error: any Error) -> Bool {
        guard endless?.stage ?? .file == .file, let failure = Self.refusal(error),
            RevivalAttempt.fits(failure, source)
        else { return false }
        return searches.offset != offset || searches.count < Self.mostSearches
    }

    /// True if an error is the refusal of another viewer's URL.
    func isOfOtherURL(_ error: any Error) -> Bool {
        guard let failure = Self.refusal(error) else { return false }
        return RevivalAttempt.isOfOtherURL(failure, than: source)
    }

    /// Returns the refusal of the origin that an error stands for; nil for any other error.
    private static func refusal(_ error: any Error) -> ProxyFailure? {
        switch error {
        case let failure as ProxyFailure: failure
        case FillEnd.refused(let failure): failure
        default: nil
        }
    }

    /// Looks for the URL that replaced the expired one of the rest, and goes on there if it is
    /// found; the response breaks off otherwise.
    func findSuccessor(after error: any Error) {
        searches = (offset, searches.offset == offset ? searches.count + 1 : 1)
        let budget = self.budget ?? OriginBudget(now: loop.now)
        self.budget = budget
        let attempt = RevivalAttempt(
            for: source, budget: budget, isForPage: isForPage, askedAt: askedAt ?? loop.now,
            cookiesUsed: cookiesUsed, core: core, loop: loop)
        search = attempt
        let lacksCookie = Self.refusal(error).map(RevivalAttempt.mayLackCookie) ?? false
        attempt.find(source, lacksCookie: lacksCookie) { [self] url in
            search = nil
            cookiesUsed = attempt.cookiesUsed
            guard !isOver else { return }
            let refused = source.url
            if let url, url == refused || fetchesRest(at: url) {
                core.noteRevived(at: url, insteadOf: refused)
                return waitAnew()
            }
            // Another flight may have brought the bytes, or be about to.
            if case .hole(let hole) = object.state(at: offset), isFar(hole) {
                return endBroken(because: error)
            }
            waitAnew()
        }
    }

    /// Fetches the rest at another URL from now on; returns false if the page that reads it must
    /// not get what is there.
    func fetchesRest(at url: AbsoluteURL) -> Bool {
        if isForPage, core.settings.mayBePrivate(url.asciiHost) { return false }
        source = core.resource(source, fetchedAt: url)
        return true
    }
}
