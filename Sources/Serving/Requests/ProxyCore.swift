// Everything that requests on all loops share.
package import Ahead
package import Console
import HTTP
package import Library
package import Logging
package import Model
import Origin
import Playlists
package import Posix
package import Reactor
package import Routing
import SharedStore
package import Store
import Synchronization
import TimeShifting
import URISyntax
package import Upstream

/// The shared part of the proxy: immutable, or guarded by locks of its own.
package final class ProxyCore: Sendable {
    package let settings: ProxySettings
    package let store: ObjectStore
    package let counters: Counters
    package let log: Logger
    /// Recently logged failures.
    let repeats = LogRepeats()
    private let detail: Atomic<Bool>
    /// True if responses are logged; stored, since asking the log copies its handler.
    var logsAnswers: Bool { detail.load(ordering: .relaxed) }
    package let sessions: SessionTable
    /// Key rules and policies by origin.
    package let keys: KeyTable
    let flights: Flights
    /// True if others than the user of this machine can reach the daemon.
    package let isShared: Bool
    /// Nil if requests are not logged.
    package let accessLog: AccessLog?
    /// The daemon's events, for the console.
    package let events: EventFeed
    /// The console's page.
    let consoleFiles: ConsoleFiles
    /// The sign-in of the console; nil without an access token.
    let consoleSession: ConsoleSession?
    /// The settings as they were configured.
    package let settingsList = SettingsList()
    let readers: Readers
    /// The live streams that are one endless body.
    let endless = EndlessBodies()
    let signer: Signer?
    /// The cookies that links bring and take along; nil unless this is a node of a cluster.
    let cookies: CarriedCookies?
    /// The hosts and addresses of this daemon.
    package let addresses: OwnAddresses
    /// Maps URLs and handles to resources.
    let names: ResourceNames
    /// Resolves the daemon's own URLs.
    package let links: Links
    let playlistMemory: PlaylistMemory
    let unusableReports = UnusableReports()
    /// The origins that answer, and the parents and the store that stand in for the others.
    package let origins: OriginStates
    /// Makes offline forms of playlists.
    let offline: OfflineWorker
    /// Parses and rewrites long texts.
    let texts: TextWorker
    let live: LiveMemory
    let revival = Revival()
    /// The services for reading stored playlists.
    let sources: PlaylistSources
    /// Fetches and reads playlists that no player requested.
    let playlists: PlaylistReader
    let ahead = AheadGauge()
    let concurrency = ConcurrencyReport()
    let lines = LineSpeeds()
    /// The resources that origins asked not to be requested again yet.
    let refusals = RefusalMemory()
    /// The look-ahead thread.
    let aheadThread: LoopThread
    /// Reports player activity to look-ahead.
    let lookahead: LookaheadObserver
    let feedService: FeedService
    /// The services for look-ahead.
    package let aheadServices: AheadServices
    /// The origins that may be fetched from.
    package let onlyOrigins: OnlyOriginsInForce
    private let isStopping = Atomic<Bool>(false)
    /// Titles that may have crashed the daemon.
    package let crashes: CrashHistory
    let timeShift: TimeShiftTable
    /// The time shift thread: continues streams that are watched later, and records.
    let timeShiftThread: TimeShiftThread
    let rewritten: RewrittenBudget
    /// The long texts of responses that are kept for repeated request heads.
    let repeatedTexts: RewrittenBudget
    /// Starts the upstream loop; blocks until it runs.
    package init(
        settings: ProxySettings, store: ObjectStore, upstream: UpstreamConfiguration,
        isShared: Bool, log: Logger
    ) throws {
        self.settings = settings
        self.store = store
        self.log = log
        detail = Atomic(log.logLevel <= .debug)
        self.isShared = isShared
        onlyOrigins = upstream.onlyOrigins
        counters = Counters()
        origins = OriginStates(
            settings.parents,
            sharedStore: settings.sharedStore.map { SharedStoreReport($0.location) })
        readers = Readers()
        rewritten = RewrittenBudget(limit: settings.rewrittenBytes)
        repeatedTexts = RewrittenBudget(limit: settings.rewrittenBytes)
        let sealer =
            settings.clusterKeys.isEmpty
            ? nil : SessionSealer(keys: settings.clusterKeys, token: settings.token)
        sessions = SessionTable(store.state, sealer: sealer) {
            Set(store.pins().map { SessionID($0.title) })
        }
        keys = KeyTable(settings: settings.keys, database: store.state, counters: counters)
        keys.mountUsers.replace(settings.mounts)
        playlistMemory = PlaylistMemory(database: store.state)
        live = LiveMemory(database: store.state, counters: counters, now: .now())
        let counters = counters
        accessLog = try settings.accessLog.map {
            try AccessLog(path: $0, counters: counters, log: log)
        }
        events = EventFeed(isLogged: settings.accessLog != nil)
        consoleFiles = ConsoleFiles(player: ConsolePlayer(path: settings.consolePlayer)) {
            Gzip.compress($0)
        }
        consoleSession = settings.token.map(ConsoleSession.init(token:))
        cookies = sealer.map { CarriedCookies($0) }
        signer = settings.token.map { Signer(token: $0, isInFront: sealer != nil) }
        let aheadThread = try LoopThread(name: "ahead") { _ in }
        self.aheadThread = aheadThread
        crashes = CrashHistory(store.state, log: log)
        texts = try TextWorker(counters: counters)
        addresses = OwnAddresses(hostNames: settings.hostNames)
        names = ResourceNames(
            keys: keys, live: live, store: store, addresses: addresses, isShared: sealer != nil)
        sources = PlaylistSources(
            store: store, names: names, live: live, health: origins.health,
            parents: origins.parents, memory: playlistMemory, revival: revival,
            limits: settings.playlistLimits)
        offline = try OfflineWorker(sources)
        timeShiftThread = try TimeShiftThread()
        timeShift = TimeShiftTable(
            store: store, names: names, live: live, memory: playlistMemory, counters: counters,
            thread: timeShiftThread, settings: settings, log: log)
        links = Links(
            mounts: settings.mounts, basePath: settings.basePath, addresses: addresses,
            names: names, sessions: sessions, live: live, store: store, timeShift: timeShift,
            memory: playlistMemory, limits: settings.playlistLimits, signer: signer,
            token: settings.token, hasNodes: settings.sharedStore != nil || sealer != nil)
        let events = events
        let secondLevel = origins.sharedStore.flatMap { report in
            settings.sharedStore.map { shared in
                FlightServices.SecondLevel(
                    shared, report: report, orders: NodeOrders(shared, sealer: sealer),
                    changes: NodeChanges(store.state, log: log))
            }
        }
        flights = try Flights(
            FlightServices(
                store: store, settings: settings, counters: counters, readers: readers,
                endless: endless, isShared: isShared, keys: keys, playlistMemory: playlistMemory,
                live: live, texts: texts,
                origins: .init(
                    health: origins.health, parents: origins.parents, lines: lines,
                    refusals: refusals, cookies: cookies),
                reports: .init(
                    ahead: ahead, concurrency: concurrency,
                    aheadFetch: { events.publish($0) }),
                secondLevel: secondLevel, log: log),
            configuration: upstream)
        playlists = PlaylistReader(
            sources, flights: flights, addresses: addresses, isShared: isShared,
            thread: aheadThread)
        aheadServices = AheadServices(
            store: store, names: names, sessions: sessions, keys: keys, settings: settings,
            counters: counters, flights: flights, playlists: playlists,
            playlistMemory: playlistMemory, addresses: addresses, concurrency: concurrency,
            crashes: crashes, signer: signer, log: log,
            titleStart: { [links] in links.titleStart($0) },
            originURLOfNext: { [links] in links.originURL(ofNext: $0, after: $1, in: $2) })
        lookahead = LookaheadObserver(
            aheadServices, thread: aheadThread, runsAhead: settings.mayLookAhead(settings.keys))
        feedService = FeedService(lookahead, aheadServices)
    }

    /// Stops look-ahead, then the upstream loop with all transfers; blocks.
    package func stop() {
        crashes.endCleanly()
        timeShiftThread.stop()
        aheadThread.stopAndJoin()
        offline.stop()
        texts.stop()
        flights.stop()
    }

    /// True until the daemon is told to stop: then it still works, but load balancers should send it
    /// no further players.
    var isReady: Bool { !isStopping.load(ordering: .relaxed) }

    /// Makes `/api/health?ready` answer that the daemon is stopping; any thread may call it.
    package func endReadiness() { isStopping.store(true, ordering: .relaxed) }

    /// Counts and logs work that blocks a loop for too long.
    package var loopHoldObserver: LoopHold.Observer { counters.loopHoldObserver(log: log) }

    /// True if a key may be one of a live stream, which changes keys under one URL.
    ///
    /// What the session plays counts too, since copies for one session are in no list.
    func isOfLiveStream(_ key: Resource) -> Bool {
        playlistMemory.isLive(key.session.id) || live.isInWindow(key.nameKey)
    }

    /// The other caches that may have what is purged here.
    package var otherCaches: StoreAdministration.Others {
        StoreAdministration.Others(
            hasNodes: origins.sharedStore != nil, hasParents: !settings.parents.isEmpty)
    }

    /// Prepares a purge: requests to parents will rule out what they stored before it, and
    /// recordings pin what they need of other titles.
    ///
    /// No orders stand for a clear that spares pinned objects.
    ///
    /// - Returns: whether recordings have pinned.
    package func willPurge(_ orders: [PurgeOrder]) -> StoreAdministration.Pinning {
        // Purges by URL remove pinned objects too.
        let spares = orders.contains { if case .texts = $0.subject { false } else { true } }
        let pinning = spares || orders.isEmpty ? timeShiftThread.willPurge() : .done
        for order in orders {
            let subject: ParentPurges.Subject
            switch order.subject {
            case .texts(let texts): subject = .texts(texts)
            case .titles(let titles): subject = .titles(titles)
            case .host(let host): subject = .host(host)
            case .prefixes(let prefixes): subject = .prefixes(prefixes)
            // Says nothing of what the origin has.
            case .unusedSince: continue
            // Parents were told of the purge that left these.
            case .objects: continue
            }
            origins.parents.purges.add(subject, now: .now())
        }
        return pinning
    }

    /// Repeats purges and pins of other nodes here.
    ///
    /// Blocks, for two seconds at most, until the changes that were given while this node was away
    /// are made: without them it would serve what was purged.
    ///
    /// - Throws: if there is no descriptor to wait with.
    package func followChanges(with administration: AdministrationWorker) throws(SystemError) {
        guard origins.sharedStore != nil else { return }
        let hasCaughtUp = try ThreadSemaphore()
        flights.followChanges(
            { changes, done in
                let reply: @Sendable (AdministrationAnswer) -> Void = { answer in
                    switch answer {
                    case .failure(.conflict, _), .failure(.serviceUnavailable, _),
                        .failure(.insufficientStorage, _):
                        done(false)
                    case .failure, .value, .methodNotAllowed: done(true)
                    }
                }
                guard let first = changes.first, !first.isPurge else {
                    return administration.purge(changes.map { ($0.query, $0.given) }, reply)
                }
                administration.answer(.post, "\(first.path)?\(first.query)", reply)
            }, caughtUp: { hasCaughtUp.signal() })
        _ = hasCaughtUp.wait(atMost: .seconds(2 as Int64))
    }

    // MARK: Settings that may change at run time

    /// Adapts to a changed level of the log.
    package func followLogLevel() { detail.store(log.logLevel <= .debug, ordering: .relaxed) }

    /// Replaces mounts, key rules and policies for requests from now on.
    ///
    /// Any thread may call it; requests under way are not affected.
    package func replace(mounts: [Mount], keys replacement: KeySettings) {
        keys.mountUsers.replace(mounts)
        links.replace(mounts: mounts)
        // Whatever keeps keys looks them up anew.
        keys.replace(replacement)
        lookahead.runsAhead = settings.mayLookAhead(replacement)
    }

    /// Replaces the keys of the cluster for links from now on.
    ///
    /// - Parameter keys: the keys, the one that seals first; empty for none.
    /// - Returns: false if the daemon was started without any and shall have some, or the reverse,
    ///   which takes a restart.
    package func replace(clusterKeys keys: [ClusterKey]) -> Bool {
        guard let sealer = sessions.sealer else { return keys.isEmpty }
        sealer.replace(keys: keys)
        return !keys.isEmpty
    }

    /// Sets the addresses that the daemon is about to listen on, with port 0 if unknown, and
    /// restores feeds: a request for one comes after that.
    package func willListen(on listening: [SocketAddress]) {
        addresses.listen(on: listening)
        feedService.restore()
    }

    /// Sets the addresses that the daemon listens on; until then no `Host` is accepted.
    package func listen(on listening: [SocketAddress]) {
        addresses.listen(on: listening)
    }

    /// Starts maintaining extended windows, and resumes recordings of earlier runs.
    package func startTimeShift() {
        timeShiftThread.start(
            TimeShiftServices(
                store: store, names: names, sessions: sessions, playlistMemory: playlistMemory,
                cookies: origins.parents.jars, counters: counters, flights: flights,
                playlists: playlists, timeShift: timeShift, timeShiftThread: timeShiftThread,
                crashes: crashes, log: log, signer: signer, basePath: settings.basePath,
                originURL: { [links] in links.originURL($0) }))
    }

    /// The titles of the store.
    package var catalogue: TitleCatalogue {
        TitleCatalogue(
            store: store, sessions: sessions, keys: keys, limits: settings.playlistLimits,
            currentEpochs: { [live] in live.epochs(in: $0) })
    }
}
