// All flights by cache key; lives on the upstream loop.
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

/// Starts flights, and lets requests join them.
final class FlightTable {
    let loop: EventLoop
    let client: UpstreamClient
    let services: FlightServices
    let positions: ListPositions
    /// Made with the first failure or request.
    private(set) lazy var probes = OriginProbes(services.origins.health, table: self)
    private(set) lazy var parentProbes = OriginProbes(
        services.origins.parents.health, table: self, watchesParents: true)
    private(set) lazy var inquiries = OriginInquiries(
        probes, connectTimeout: services.settings.timeouts.connect, table: self)
    private(set) lazy var parentInquiries = OriginInquiries(
        parentProbes, connectTimeout: min(Flight.parentConnect, services.settings.timeouts.connect),
        table: self)
    /// The second level; nil without one.
    let shared: SharedLevel?
    private(set) var flights: [ObjectKey: [Flight]] = [:]
    /// The flights that players need: few, while there may be thousands of ahead flights.
    private(set) var playerFlights: [ObjectIdentifier: Flight] = [:]
    /// The flights whose transfers have paused for readers; some may have been resumed since.
    private var pausedFlights: [ObjectIdentifier: Flight] = [:]
    let ahead: AheadTable
    let concurrency: ConcurrencyDriver
    let buffers: ReceiveBuffers
    private var flightOfFetch: [FetchID: Flight] = [:]
    /// The table of passed-through requests; nil until there is one.
    private(set) var openPassthroughs: PassthroughTable?
    var givenUp = GivenUpMemory()
    /// The generations of objects that were continued although a server had another validator for
    /// them: later requests compare their bytes at once, without If-Range.
    var mixedTags = RecentMap<UInt64, Bool>(capacity: 1_024)
    /// The origins whose first attempts are not given up early.
    var lateOrigins = LateOrigins()
    let gracePeriods: GracePeriods
    var halfClosed = HalfClosedReaders()
    let cookies: SessionCookies

    init(loop: EventLoop, client: UpstreamClient, services: FlightServices) {
        self.loop = loop
        self.client = client
        self.services = services
        let (origins, reports) = (services.origins, services.reports)
        positions = ListPositions(
            services.texts, limits: services.settings.playlistLimits, loop: loop)
        cookies = SessionCookies(origins.parents.jars, carried: origins.cookies, loop: loop)
        ahead = AheadTable(gauge: reports.ahead, loop: loop)
        buffers = ReceiveBuffers(loop: loop)
        concurrency = ConcurrencyDriver(
            services.settings.concurrency, loop: loop, client: client, report: reports.concurrency)
        shared = services.secondLevel.flatMap { level in
            SharedLevel(level, loop: loop, client: client, services: services)
        }
        gracePeriods = GracePeriods(
            services.settings.abandonGrace, loop: loop, client: client)
        // Not weak: the counts of objects to which there are weak references are kept beside them,
        // which makes each use of the table dearer. The client is used on the table's loop only.
        client.playbackWaits = { [unowned self] in makeRoomForPlayers() }
    }

    /// Ends what may end while a player waits for a slot or for the limit of a host: flights in
    /// their grace period, requests of half-closed players, and one paused transfer in each round,
    /// the one paused for longest; one at each host if the player waits for two.
    private func makeRoomForPlayers() {
        gracePeriods.cutShort()
        endHalfClosed()
        let paused = pausedFlights.values.compactMap { flight in
            flight.machine.pausedSince.map { (since: $0, flight: flight) }
        }
        let byAge = paused.filter(\.flight.mayEndPausedTransfer).sorted { $0.since < $1.since }
        for obstacle in client.obstacles(among: byAge.compactMap(\.flight.transfer)) {
            byAge.first { $0.flight.transfer === obstacle }?.flight.endPausedTransfer()
        }
    }

    /// Notes that a flight's transfer has paused for its readers.
    func notePause(of flight: Flight) {
        guard flight.isInTable else { return }
        pausedFlights[ObjectIdentifier(flight)] = flight
        // The end of the round reports whether a player waits already.
        client.scheduleRoundEnd()
    }

    // MARK: Requests

    /// Joins a flight that serves the request, or starts one.
    func fetch(
        _ request: FetchRequest, id: FetchID, reply: @escaping @Sendable (FetchReply) -> Void
    ) {
        if let list = currentList(for: request) {
            let isPutOff = positions.reads(list.object, before: id) { [self] in
                fetch(request, id: id, reply: reply)
                settleHalfClosed(id)
            }
            if isPutOff { return }
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
        // Before the second level too, which has what other nodes fetched.
        if let error = client.configuration.onlyOrigins.current.refusal(
            of: request.resource.url.origin)
        {
            return reply(
                .failure(ProxyFailure(error, subject: request.resource.url.redacted)))
        }
        let known = flights[key]?.first { $0.covers(request) }
        var pause: Interval?
        var refusal: ProxyFailure?
        if known == nil {
            switch turn(of: request) {
            case .now: break
            case .later(let time): pause = time
            case .refused(let failure):
                guard asksSharedLevel(for: request) else { return reply(.failure(failure)) }
                refusal = failure
            }
        }
        let flight = known ?? Flight(request, table: self)
        if let refusal { flight.refusalOfOrigin = refusal }
        if request.terms.keepsEmpty { flight.terms.keepsEmpty = true }
        if request.terms.refreshes { flight.terms.refreshes = true }
        if request.terms.goesFirst { flight.goFirst() }
        if request.terms.fillsWindow { flight.fillWindow() }
        request.budget?.follow(flight.trace)
        let waiter = FlightWaiter(
            id: id, repliesAt: request.repliesAt, isCollapsed: known != nil,
            wanted: request.wanted, needsPlaylist: request.needsPlaylist, budget: request.budget,
            reply: reply)
        flightOfFetch[id] = flight
        if known == nil {
            flights[key, default: []].append(flight)
            flight.isInTable = true
            noteForPlayers(flight)
        }
        flight.add(waiter, lane: request.lane)
        if known == nil {
            flight.start(after: pause)
        } else if !request.isAhead {
            flight.takeForPlayback(request.lane)
        }
        // It may have joined a flight that is paused for other fetches.
        if request.isAhead { ahead.scheduleRoundEnd(self, of: flight) }
    }

    /// Notes a flight that players need, from its beginning or by now.
    func noteForPlayers(_ flight: Flight) {
        guard flight.isInTable, !flight.machine.isAhead else { return }
        playerFlights[ObjectIdentifier(flight)] = flight
    }

    private func turn(of request: FetchRequest) -> OriginProbes.Turn {
        let turn = services.origins.refusals.turn(
            of: request, patience: services.settings.patience, now: loop.now)
        if case .now = turn { return probes.turn(of: request) }
        return turn
    }

    /// Returns an object that was stored while the request was on its way from another thread:
    /// another request would fetch the same bytes twice.
    private func stored(for request: FetchRequest) -> StoredObject? {
        let resource = request.resource
        // What was to be renewed behind a stale response may have been replaced already.
        if request.revalidates, request.lane == .background, let former = request.object,
            former.isStorable, !former.isCurrent, let current = services.store.peek(former.key),
            current.isComplete
        {
            return current
        }
        guard !request.revalidates, !request.terms.hasDirectives, resource.live.playQuery == nil,
            case .span(let start, _) = request.wanted
        else { return nil }
        let known =
            request.object ?? (resource.mayStore ? services.store.lookupListed(resource) : nil)
        guard let object = known, !object.isDiscarded, let facts = ObjectFacts.of(object)
        else { return nil }
        if request.object == nil, facts.head.isPlaylist || !resource.holdsWhileKept {
            // The store may have failed to open a stale object when the request looked it up.
            let age = loop.wallNow - facts.head.responseTime
            guard age >= .zero, age < Self.longestWay else { return nil }
        }
        if request.object == nil, !object.isComplete {
            // Nothing would prove that the rest belongs to it (RFC 9111 section 3.4).
            let isOpen = object.isFilling(from: start) || facts.head.strongValidator != nil
            if resource.followsHTTP, !isOpen { return nil }
            if facts.head.isPlaylist || resource.role == .playlist { return nil }
            if resource.decodesContent, object.total == nil { return nil }
        }
        if resource.role == .playlist, !facts.head.isPlaylist { return nil }
        if request.repliesAt == .completion, !object.isComplete { return nil }
        guard case .hole = object.state(at: start) else { return object }
        return nil
    }

    /// The longest time that a request may be on its way from a server loop.
    private static let longestWay = Interval.seconds(2 as Int64)

    /// The running flights.
    var allFlights: some Sequence<Flight> { flights.values.lazy.joined() }

    /// Returns the flights that fetch a key's resource.
    func flights(of key: ObjectKey) -> [Flight] { flights[key] ?? [] }

    /// Returns the flight that a request waits for.
    func flight(of id: FetchID) -> Flight? { flightOfFetch[id] }

    /// Removes a request that was answered.
    func forget(_ id: FetchID) {
        flightOfFetch[id] = nil
        halfClosed.remove(id)
    }

    func cancel(_ id: FetchID) {
        positions.cancel(id)
        halfClosed.remove(id)
        flightOfFetch.removeValue(forKey: id)?.remove(id)
    }

    func remove(_ flight: Flight) {
        let key = flight.resource.key
        // A flight that failed with its body complete is removed twice.
        if flight.machine.isAhead, flights[key]?.contains(where: { $0 === flight }) == true {
            services.reports.aheadFetch(AheadFetch(flight, now: loop.now))
        }
        gracePeriods.end(of: flight)
        flight.endTrial(isGood: nil)
        flight.isInTable = false
        playerFlights[ObjectIdentifier(flight)] = nil
        pausedFlights[ObjectIdentifier(flight)] = nil
        flights[key]?.removeAll { $0 === flight }
        if flights[key]?.isEmpty == true { flights[key] = nil }
        ahead.scheduleRoundEnd(self)
    }

    /// Checks, after a grace period, whether an object's flights are still needed.
    func readerLeft(_ key: ObjectKey, generation: UInt64) {
        let flights = flights(of: key)
        // A flight with waiters is needed, and is checked when the last of them leaves. Thousands
        // of flights may wait for a slot, one for each range of a body.
        for flight in flights where !flight.hasWaiters { gracePeriods.begin(flight) }
        guard !flights.contains(where: { $0.object?.generation == generation }) else { return }
        // Under HTTP's rules an object has the key of its variant, and its flight that of the URL.
        for flight in allFlights where flight.object?.generation == generation {
            gracePeriods.begin(flight)
        }
    }

    /// Reports that the viewer of a session has moved to another item: its flights end as soon as
    /// they have no reader.
    func viewerMovedOn(fromSession number: UInt64) {
        for flight in allFlights where flight.resource.session.id.number == number {
            flight.machine.viewerMovedOn = true
            gracePeriods.check(flight)
        }
    }

    /// Keeps what is fetched under these keys, in any variant, from being stored.
    func invalidate(_ keys: Set<CacheKey>) {
        for flight in flights.values.joined()
        where keys.contains(flight.resource.cacheKey.primary) {
            flight.invalidate()
        }
    }

    /// Returns the known object that a response belongs to: the flight's own, one that another
    /// flight of the key fills, or the stored one; nil if none matches.
    ///
    /// Without `mayJoin` it is the flight's own or none.
    func object(
        for flight: Flight, matching head: StoredHead, _ placement: Placement, mayJoin: Bool
    ) -> StoredObject? {
        // A flight whose fill is of another network was refused.
        if flight.machine.isPlaylist { return flight.hasFill ? flight.object : nil }
        guard !flight.machine.isConditional else { return nil }
        if placement.isProvenRest, let object = flight.object, !object.isDiscarded,
            isOfOneNetwork(object, head)
        {
            return object
        }
        let key = flight.resource.key
        // What must not be stored must not be shared beyond its flight either.
        let siblings = (flights[key] ?? []).compactMap { other in
            flight.resource.isOneQuestion(with: other.resource) ? other.object : nil
        }.filter { $0.isStorable && !$0.isDiscarded && !$0.isRemoved }
        let candidates =
            mayJoin
            ? [flight.object, siblings.first, services.store.lookupListed(flight.resource)]
            : [flight.object]
        return candidates.lazy.compactMap { $0 }.first { candidate in
            !candidate.isDiscarded && isOfOneNetwork(candidate, head)
                && (flight.resource.live.growth != nil
                    || ObjectFacts.isSame(candidate, as: head, total: placement.total)
                    || FlightRivals(of: flight).isProvenLater(candidate, head, placement))
        }
    }

    // MARK: Pass-through

    /// Returns the table of passed-through requests, created on first use.
    func passthroughs() throws(UpstreamError) -> PassthroughTable {
        if let openPassthroughs { return openPassthroughs }
        let made = try PassthroughTable(loop: loop, like: client, counters: services.counters)
        openPassthroughs = made
        return made
    }

    func shutdown() {
        probes.shutdown()
        if !services.settings.parents.isEmpty {
            parentProbes.shutdown()
            parentInquiries.shutdown()
        }
        inquiries.shutdown()
        shared?.shutdown()
        client.shutdown()
        openPassthroughs?.client.shutdown()
    }
}
