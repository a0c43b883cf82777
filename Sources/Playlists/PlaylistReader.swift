// Playlists that the daemon reads for itself: for look-ahead, downloads and recordings. Uses the
// headers and cookies of a session, and the store while its copies are fresh.
package import CachePolicy
package import HLS
package import HTTP
package import Model
package import Origin
package import Reactor
import Store
package import Upstream
package import URISyntax

/// A playlist that the daemon has read for itself.
package struct FetchedPlaylist: Sendable {
    /// The resource as requested.
    package let resource: Resource
    /// The URL that it came from, after redirects.
    package let base: AbsoluteURL
    /// Parsed with its lines.
    package let list: Playlist
    /// The facts of the stored object that it was read from.
    package let facts: ObjectFacts
    /// True if the origin failed and this is a stale copy from the store.
    package var isStale = false
    /// Why it is not stored; nil if it is.
    package var notStored: Storability.NoStoreReason?

    /// A playlist to read.
    package struct Request: Sendable {
        package let url: AbsoluteURL
        package let session: Session
        /// The variables of the multivariant playlist that names it.
        package var variables: [String: String] = [:]
        /// Request fields forwarded in addition to the session's, such as a player's User-Agent.
        package var forwardedFields = Fields()
        package var lane = Lane.prefetch
        /// True if a fresh stored copy is used without contacting the origin.
        var takesFresh = true
        /// True if the cookies that its response sets are wanted too.
        var wantsCookies = false
        /// True if only a page of another site has a use for it: no redirect to a private host is
        /// followed.
        var isForPage = false
        /// True if only the origin's present version will do: if the origin fails, nothing stored
        /// takes its place.
        package var needsOrigin = false
        /// False if a new version is read without being stored: the stored one stays as it is.
        package var mayStore = true

        package init(
            url: AbsoluteURL, session: Session, variables: [String: String] = [:],
            forwardedFields: Fields = Fields(), lane: Lane = Lane.prefetch, takesFresh: Bool = true,
            wantsCookies: Bool = false, isForPage: Bool = false
        ) {
            self.url = url
            self.session = session
            self.variables = variables
            self.forwardedFields = forwardedFields
            self.lane = lane
            self.takesFresh = takesFresh
            self.wantsCookies = wantsCookies
            self.isForPage = isForPage
        }
    }
}

/// Reads playlists for the daemon itself, on a given thread.
///
/// Can be used from any thread.
package final class PlaylistReader: Sendable {
    fileprivate let sources: PlaylistSources
    fileprivate let flights: Flights
    fileprivate let addresses: OwnAddresses
    fileprivate let isShared: Bool
    private let thread: LoopThread

    /// - Parameters:
    ///   - sources: the stored playlists and the facts needed to read them.
    ///   - flights: fetches playlists that are not fresh.
    ///   - addresses: the daemon's own addresses, which must not be fetched from.
    ///   - isShared: true if others than the user of this machine can reach the daemon.
    ///   - thread: the thread that reads playlists.
    package init(
        _ sources: PlaylistSources, flights: Flights, addresses: OwnAddresses, isShared: Bool,
        thread: LoopThread
    ) {
        self.sources = sources
        self.flights = flights
        self.addresses = addresses
        self.isShared = isShared
        self.thread = thread
    }

    /// Reads a playlist.
    ///
    /// - Parameters:
    ///   - wanted: the playlist.
    ///   - reply: called once on the thread that reads playlists, unless the daemon stops first; it
    ///     must not block for long.
    package func read(
        _ wanted: FetchedPlaylist.Request,
        reply: @escaping @Sendable (Result<FetchedPlaylist, ProxyFailure>) -> Void
    ) {
        let isTaken = thread.handle.enqueue { [self] loop in
            OwnReading(wanted, reader: self, loop: loop, reply: reply).start()
        }
        if !isTaken {
            reply(.failure(ProxyFailure(.us, .serviceUnavailable, "the daemon is stopping")))
        }
    }
}

/// One reading, from the lookup in the store to its reply.
///
/// Confined to the thread that reads playlists.
private final class OwnReading {
    private let wanted: FetchedPlaylist.Request
    private let reader: PlaylistReader
    private let loop: EventLoop
    private let reply: @Sendable (Result<FetchedPlaylist, ProxyFailure>) -> Void
    private var resource: Resource
    private var fallback: FetchedPlaylist?
    /// True if the stored copy has ended or names live lists: it is used whatever the origin answers.
    private var outlastsRefusals = false
    /// A fresh copy that may be another viewer's, which is used if the origin does not send one.
    private var shared: FetchedPlaylist?
    private var asked = 0

    init(
        _ wanted: FetchedPlaylist.Request, reader: PlaylistReader, loop: EventLoop,
        reply: @escaping @Sendable (Result<FetchedPlaylist, ProxyFailure>) -> Void
    ) {
        self.wanted = wanted
        self.reader = reader
        self.loop = loop
        self.reply = reply
        let named = reader.sources.names.resource(
            wanted.url, wanted.session, role: .playlist, forwarding: wanted.forwardedFields)
        resource = wanted.mayStore ? named : named.changing { $0.mayStore = false }
    }

    func start() {
        guard !reader.addresses.contains(wanted.url) else {
            return fail(
                ProxyFailure(.client, .loopDetected, "the URL leads back to this daemon"))
        }
        guard let (object, facts) = stored() else { return ask(about: nil) }
        guard let found = try? read(object, facts).get() else { return ask(about: nil) }
        let playlist = reader.sources.names.facts(found.list.summary, of: resource, facts)
        outlastsRefusals = playlist.mayBeReplaced
        let question = resource.freshnessQuestion(facts, playlist, circumstances)
        var isStale = false
        if case .stale(let reason) = Freshness.decide(question) {
            isStale = reason != .ended || !reader.sources.store.isPinned(object)
        }
        if !isStale, wanted.takesFresh || resource.policy == .offline {
            return reply(.success(found))
        }
        if !wanted.needsOrigin,
            Freshness.mayServeStale(resource.question(facts, playlist, circumstances))
        {
            fallback = found
        }
        ask(about: object)
    }

    private var circumstances: RequestCircumstances {
        RequestCircumstances(
            fields: Fields(), now: loop.wallNow, steadyNow: loop.now, isShared: reader.isShared)
    }

    /// Returns the stored copy that this session may use.
    private func stored() -> (StoredObject, ObjectFacts)? {
        for candidate in [resource, resource.kept(for: wanted.session)] {
            guard let object = reader.sources.store.peek(candidate.key),
                let facts = ObjectFacts.of(object),
                facts.head.isPlaylist, object.isComplete
            else { continue }
            resource = candidate
            if candidate.isKept(for: wanted.session) { return (object, facts) }
            guard !facts.isPerViewer else { continue }
            guard resource.policy != .offline, facts.mayBelong(toOtherThan: wanted.session, object)
            else { return (object, facts) }
            shared = try? read(object, facts).get()
            resource = resource.kept(for: wanted.session)
        }
        return nil
    }

    // MARK: Fetching

    private func ask(about object: StoredObject?) {
        guard resource.policy != .offline else {
            return fail(
                ProxyFailure(
                    .us, .gatewayTimeout,
                    "\(resource.url.redacted) is not stored, and the policy is offline"))
        }
        asked += 1
        // A 304 need not set the cookies that the response did.
        var request = FetchRequest(
            resource: resource, wanted: .whole,
            for: object == nil ? .content : .revalidation(of: wanted.wantsCookies ? nil : object),
            repliesAt: .completion, lane: wanted.lane)
        request.terms.wantsCookies = wanted.wantsCookies
        request.terms.isForPage = wanted.isForPage
        request.terms.refreshes = wanted.needsOrigin
        request.isAhead = true
        let bound = LoopBound(self, to: loop)
        reader.flights.fetch(request, id: FetchID()) { reply in
            bound.enqueue { reading, _ in reading.receive(reply) }
        }
    }

    private func receive(_ reply: FetchReply) {
        switch reply {
        case .object(let object, let outcome):
            receive(object, outcome)
        case .notModified(let object):
            receive(object, FetchOutcome(isCollapsed: false, status: .notModified, notStored: nil))
        case .head:
            fail(ProxyFailure(.origin, .badGateway, "\(wanted.url.redacted): no usable answer"))
        case .failure(let failure):
            guard failure.allowsStale || outlastsRefusals, var fallback else {
                return fail(failure)
            }
            fallback.isStale = true
            self.reply(.success(fallback))
        }
    }

    private func receive(_ object: StoredObject, _ outcome: FetchOutcome) {
        guard let facts = ObjectFacts.of(object), facts.head.isPlaylist else {
            return fail(
                ProxyFailure(.origin, .badGateway, "\(wanted.url.redacted): no playlist came"))
        }
        if outcome.isCollapsed, !resource.isKept(for: wanted.session), asked < 2,
            facts.isPerViewer || facts.mayBelong(toOtherThan: wanted.session, object)
        {
            // The shared response belongs to another viewer alone.
            resource = resource.kept(for: wanted.session)
            return ask(about: nil)
        }
        let notStored = object.didFailToStore ? .noRoom : outcome.notStored
        reply(
            read(object, facts).map { list in
                var list = list
                list.notStored = notStored
                return list
            })
    }

    private func fail(_ failure: ProxyFailure) {
        let shared = wanted.needsOrigin ? nil : shared
        reply(shared.map { .success($0) } ?? .failure(failure))
    }

    // MARK: Reading

    private func read(
        _ object: StoredObject, _ facts: ObjectFacts
    ) -> Result<FetchedPlaylist, ProxyFailure> {
        let body: [UInt8]
        let base: AbsoluteURL
        do {
            body = try readBody(of: object, count: Int(object.total ?? 0))
            base = try resource.withUserinfo(AbsoluteURL(facts.head.finalURL))
        } catch {
            return .failure(
                ProxyFailure(
                    .us, .internalServerError, "a stored playlist could not be read: \(error)"))
        }
        let reading = PlaylistReading(
            limits: wanted.session.limits(ofOrigins: reader.sources.limits),
            variables: wanted.variables, keepsLines: true)
        do throws(PlaylistError) {
            let list = try Playlist(body, base: base, reading)
            try reader.sources.names.noteNames(
                in: (body, base), of: resource, object, options: reading)
            return .success(
                FetchedPlaylist(resource: resource, base: base, list: list, facts: facts))
        } catch {
            return .failure(
                ProxyFailure(
                    .origin, .badGateway, "\(wanted.url.redacted): \(error.description)"))
        }
    }
}
