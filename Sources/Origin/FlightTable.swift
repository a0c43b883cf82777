// All flights, by what they fetch; lives on the upstream loop.
import CachePolicy
import HLS
import HTTP
import Logging
import Model
import Posix
import Reactor
import Routing
import Store
import Upstream
import URISyntax

/// Starts flights, lets requests join them, and knows the sessions' cookies.
final class FlightTable {
    let loop: EventLoop
    let client: UpstreamClient
    let store: ObjectStore
    let settings: ProxySettings
    let counters: Counters
    let readers: Readers
    let isShared: Bool
    let keys: KeyTable
    let playlistMemory: PlaylistMemory
    let live: LiveMemory
    let texts: TextWorker
    /// How far stored lists have come, by their generation.
    var positions = RecentMap<UInt64, LivePosition?>(capacity: 1_024)
    /// Wishes that are decided about when a list has been read elsewhere.
    var reading: [FetchID: TextWorker.Request] = [:]
    /// The one of them that is being decided about.
    var readFirst: Set<FetchID> = []
    let health: OriginHealth
    let lines: LineSpeeds
    /// Told of what was fetched and no player has asked for.
    let tellAhead: @Sendable (AheadFetch) -> Void
    let log: Logger
    /// Made with the first failure or request.
    private(set) lazy var probes = OriginProbes(health, table: self)
    private(set) lazy var inquiries = OriginInquiries(table: self)
    private(set) var flights: [ObjectKey: [Flight]] = [:]
    let ahead: AheadTable
    let concurrency: ConcurrencyDriver
    /// Writes large pieces; nil where the system had no room for another thread.
    let bodies = try? BodyWriter()
    private var buffersAreUsed = false
    private var bufferTimer: TimerID?
    private var flightOfFetch: [FetchID: Flight] = [:]
    /// Nil until a request has to be passed through.
    private(set) var openPassthroughs: PassthroughTable?
    /// What was given up after all attempts, and when.
    private var givenUp = RecentMap<ObjectKey, (at: Monotonic, isSpent: Bool)>(
        capacity: 1_024)
    /// Those that may end soon, since somebody left them.
    var leaving: [ObjectIdentifier: Flight] = [:]
    /// True while they are to be looked at again.
    var willGiveWay = false
    private var jars: [SessionID: CookieJar] = [:]
    private var jarOrder: [SessionID] = []

    /// The most sessions whose cookies are kept; the oldest go first.
    private static let mostJars = 4_096

    init(loop: EventLoop, client: UpstreamClient, core: FlightCore) {
        self.loop = loop
        self.client = client
        store = core.store
        settings = core.settings
        counters = core.counters
        readers = core.readers
        isShared = core.isShared
        keys = core.keys
        playlistMemory = core.playlistMemory
        live = core.live
        texts = core.texts
        health = core.health
        lines = core.lines
        tellAhead = core.tellAhead
        log = core.log
        ahead = AheadTable(gauge: core.ahead, loop: loop)
        concurrency = ConcurrencyDriver(
            core.settings.concurrency, loop: loop, client: client, report: core.concurrency)
        client.playbackWaits = { [weak self] in self?.giveWay() }
    }

    // MARK: Buffers

    /// A buffer to gather a round's bytes in: flights hold one only while they have bytes.
    func takeBuffer() -> [UInt8] {
        let capacity = Flight.gatherLimit + (16 << 10)
        buffersAreUsed = true
        watchBuffers()
        if let bodies { return bodies.takeBuffer(capacity: capacity) }
        var made: [UInt8] = []
        made.reserveCapacity(capacity)
        return made
    }

    /// Empties a buffer and takes it back; a few are kept, if they have room for a whole piece.
    func giveBack(_ buffer: inout [UInt8]) {
        guard let bodies, buffer.capacity >= Flight.gatherLimit else { return buffer = [] }
        bodies.giveBack(&buffer)
    }

    /// Lets go of the spare ones once none has been asked for during a fifth of a second.
    private func watchBuffers() {
        guard bufferTimer == nil else { return }
        bufferTimer = loop.schedule(after: .milliseconds(200)) { [weak self] _ in
            guard let self else { return }
            bufferTimer = nil
            guard buffersAreUsed else { return bodies?.dropBuffers() ?? () }
            buffersAreUsed = false
            watchBuffers()
        }
    }

    // MARK: Wishes

    /// Joins a flight that serves the request, or starts one.
    func fetch(
        _ request: FetchRequest, id: FetchID, reply: @escaping @Sendable (FetchReply) -> Void
    ) {
        if let list = currentList(for: request) {
            if reads(list, firstFor: request, id: id, reply: reply) { return }
            if answers(list, request) {
                let outcome = FetchOutcome(
                    isCollapsed: true, wasStored: true, status: list.facts.head.status,
                    notStored: nil)
                return reply(.object(list.object, outcome))
            }
        }
        let key = request.resource.key
        if request.lane >= .prefetch { concurrency.wake() }
        if !request.terms.isAlone, let object = stored(for: request),
            let facts = ObjectFacts.of(object)
        {
            let outcome = FetchOutcome(isCollapsed: true, status: facts.head.status, notStored: nil)
            return reply(.object(object, outcome))
        }
        let known = flights[key]?.first { $0.covers(request) }
        var pause: Interval?
        if known == nil {
            switch probes.turn(of: request) {
            case .now: break
            case .later(let time): pause = time
            case .refused(let failure): return reply(.failure(failure))
            }
        }
        let flight = known ?? Flight(request, table: self)
        request.budget?.follow(flight.trace)
        let waiter = Flight.Waiter(
            id: id, delivery: request.delivery, isCollapsed: known != nil,
            start: request.wanted.start, wantsWhole: request.wanted == .whole,
            budget: request.budget, reply: reply)
        flightOfFetch[id] = flight
        if known == nil { flights[key, default: []].append(flight) }
        flight.add(waiter, lane: request.lane)
        if known == nil {
            flight.start(after: pause)
        } else if !request.isAhead {
            flight.takeForPlayback(request.lane)
        }
    }

    /// What came in while the request was on its way here from another thread: asking for it again
    /// would fetch the same bytes twice.
    private func stored(for request: FetchRequest) -> StoredObject? {
        let resource = request.resource
        guard !request.revalidates, !request.terms.isDelivery,
            case .span(let start, _) = request.wanted
        else { return nil }
        guard let object = request.object ?? (resource.mayStore ? store.lookup(resource.key) : nil),
            !object.isDiscarded, let facts = ObjectFacts.of(object)
        else { return nil }
        if request.object == nil, facts.head.isPlaylist || !resource.holdsWhileKept {
            // The store may have failed to open what is stale when the request looked.
            let age = loop.wallNow - facts.head.responseTime
            guard age >= .zero, age < Self.longestWay else { return nil }
        }
        if request.object == nil, !object.isComplete {
            // Nobody could say that the rest belongs to it (RFC 9111 section 3.4).
            let isOpen = object.isFilling(from: start) || facts.head.strongValidator != nil
            if resource.kind != nil, !isOpen { return nil }
            if facts.head.isPlaylist || resource.role == .playlist { return nil }
            if resource.decodesContent, object.total == nil { return nil }
        }
        if resource.role == .playlist, !facts.head.isPlaylist { return nil }
        if request.delivery == .completion, !object.isComplete { return nil }
        guard case .hole = object.state(at: start) else { return object }
        return nil
    }

    /// How long a request may be on its way from a server loop.
    private static let longestWay = Interval.seconds(2 as Int64)

    /// Those that run now.
    var allFlights: some Sequence<Flight> { flights.values.lazy.joined() }

    /// Those that fetch a key's resource.
    func flights(of key: ObjectKey) -> [Flight] { flights[key] ?? [] }

    /// The one that a request waits for.
    func flight(of id: FetchID) -> Flight? { flightOfFetch[id] }

    /// Forgets a request that was answered.
    func forget(_ id: FetchID) {
        flightOfFetch[id] = nil
    }

    /// Takes a request back.
    func cancel(_ id: FetchID) {
        if let waiting = reading.removeValue(forKey: id) { texts.cancel(waiting) }
        flightOfFetch.removeValue(forKey: id)?.remove(id)
    }

    /// Forgets a flight that has ended.
    func remove(_ flight: Flight) {
        let key = flight.resource.key
        // A flight that failed with its body whole is removed twice.
        if flight.machine.isAhead, flights[key]?.contains(where: { $0 === flight }) == true {
            tellAhead(AheadFetch(flight, now: loop.now))
        }
        leaving[ObjectIdentifier(flight)] = nil
        flights[key]?.removeAll { $0 === flight }
        if flights[key]?.isEmpty == true { flights[key] = nil }
        ahead.setNeedsSettle(self)
    }

    /// Lets nothing be kept of what is fetched under these keys, in any variant.
    func invalidate(_ keys: Set<CacheKey>) {
        for flight in flights.values.joined()
        where keys.contains(flight.resource.cacheKey.primary) {
            flight.invalidate()
        }
    }

    /// The object that a response belongs to, if it is one that is known: the flight's own, one
    /// that another flight of the key fills, or the stored one.
    func object(
        for flight: Flight, matching head: StoredHead, _ placement: Placement
    ) -> StoredObject? {
        if flight.machine.isPlaylist { return flight.hasFill ? flight.object : nil }
        guard !flight.machine.job.revalidates else { return nil }
        if placement.isProvenRest, let object = flight.object, !object.isDiscarded { return object }
        let key = flight.resource.key
        // What may not be stored is not shared beyond its own flight either.
        let siblings = (flights[key] ?? []).compactMap(\.object).filter {
            $0.isStorable && !$0.isDiscarded
        }
        let candidates = [flight.object, siblings.first, store.lookup(key)]
        return candidates.lazy.compactMap { $0 }.first { candidate in
            !candidate.isDiscarded
                && (flight.resource.live.growth != nil
                    || ObjectFacts.isSame(candidate, as: head, total: placement.total)
                    || flight.isProvenLater(candidate, head, placement))
        }
    }

    // MARK: What failed lately

    /// So long a resource whose attempts have all failed is tried once for each player request.
    private static let failureMemory = Interval.seconds(5 as Int64)

    /// Notes that all attempts for a resource have failed, or that a request has spent its budget.
    func noteGivenUp(_ key: ObjectKey, isSpent: Bool = false) { givenUp[key] = (loop.now, isSpent) }

    /// Whether all attempts for a resource failed a moment ago.
    ///
    /// A spent budget is one request's: those that were under way then have their own.
    func gaveUpLately(on key: ObjectKey, for budget: OriginBudget?) -> Bool {
        guard let (time, isSpent) = givenUp[key], loop.now - time < Self.failureMemory else {
            return false
        }
        return !isSpent || budget.map { $0.begunAt > time } ?? true
    }

    /// Notes that a resource was fetched.
    func forgetGivenUp(_ key: ObjectKey) { givenUp[key] = nil }

    // MARK: Requests that are passed through

    /// Their table, made when it is first needed.
    func passthroughs() throws(UpstreamError) -> PassthroughTable {
        if let openPassthroughs { return openPassthroughs }
        let made = try PassthroughTable(
            loop: loop, like: client, counters: counters)
        openPassthroughs = made
        return made
    }

    /// Ends all transfers.
    func shutdown() {
        probes.shutdown()
        inquiries.shutdown()
        client.shutdown()
        openPassthroughs?.client.shutdown()
    }

    // MARK: Cookies

    /// Takes in what a hop set.
    func take(_ cookies: [ReceivedCookie], of session: Session) {
        guard !cookies.isEmpty else { return }
        if jars[session.id] == nil {
            jarOrder.append(session.id)
            if jarOrder.count > Self.mostJars { jars[jarOrder.removeFirst()] = nil }
        }
        for cookie in cookies {
            jars[session.id, default: CookieJar()].receive(
                cookie.value, from: cookie.url, now: loop.wallNow)
        }
    }

    /// The Cookie field for a request of a session: those given at entry, then the jar's.
    ///
    /// - Parameters:
    ///   - url: What is about to be asked for.
    ///   - session: Whose request it is.
    ///   - isRedirected: True where a redirect led to another origin: what was given for the
    ///     playlist's own origins is not for that one (RFC 9110 section 15.4).
    /// - Returns: The field's value; nil for no cookie.
    func cookieField(
        for url: AbsoluteURL, session: Session, isRedirected: Bool = false
    ) -> String? {
        let given = isRedirected ? nil : session.fields.first(.cookie)
        let kept = jars[session.id]?.field(for: url, now: loop.wallNow)
        let both = [given, kept].compactMap { $0 }
        return both.isEmpty ? nil : both.joined(separator: "; ")
    }
}
