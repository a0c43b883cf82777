// Everything that requests share, whichever loop they run on.
package import Ahead
package import Console
package import Library
package import Logging
package import Model
import Origin
import Playlists
package import Posix
package import Reactor
package import Routing
package import Store
import Synchronization
import TimeShifting
package import Upstream

/// The shared part of the proxy: immutable, or guarded inside.
package final class ProxyCore: Sendable {
    package let settings: ProxySettings
    package let store: ObjectStore
    package let counters: Counters
    package let log: Logger
    /// Failures that were logged lately.
    let repeats = LogRepeats()
    /// Whether answers are logged; asked here, since asking the log copies its handler.
    let logsAnswers: Bool
    package let sessions: SessionTable
    /// Key rules and policies by origin.
    package let keys: KeyTable
    let flights: Flights
    /// True when others than the user of this machine can reach the daemon.
    package let isShared: Bool
    /// Nil where requests are not logged.
    package let accessLog: AccessLog?
    /// What the daemon does, for the console.
    package let events: EventFeed
    /// The console's page.
    let consoleFiles: ConsoleFiles
    /// Who is signed in to the console; nil without an access token.
    let consoleSession: ConsoleSession?
    /// The settings as they were given.
    package let settingsList = SettingsList()
    let readers: Readers
    let signer: Signer?
    /// What leads to this daemon.
    package let addresses: OwnAddresses
    /// What URLs and handles mean.
    let names: ResourceNames
    /// Reads URLs of ours.
    package let links: Links
    let playlistMemory = PlaylistMemory()
    let unusableReports = UnusableReports()
    /// Which origins do not answer just now.
    let health = OriginHealth()
    /// Makes playlists that are true without the network.
    let offline: OfflineWorker
    /// Reads and rewrites long texts.
    let texts: TextWorker
    let live: LiveMemory
    let revival = Revival()
    /// What reading stored playlists takes.
    let sources: PlaylistSources
    /// Reads playlists that no player asked for.
    let playlists: PlaylistReader
    let ahead = AheadGauge()
    let concurrency = ConcurrencyReport()
    let lines = LineSpeeds()
    /// Where what runs ahead of players is planned.
    let aheadThread: LoopThread
    /// Tells what runs ahead of players what these do.
    let lookahead: LookaheadObserver
    let feedService: FeedService
    /// What running ahead of players takes.
    package let aheadServices: AheadServices
    /// What may have brought the daemon down.
    package let crashes: CrashHistory
    let timeShift: TimeShiftTable
    /// Goes on with what is watched later, and records.
    let keeper: TimeShiftThread
    let rewritten: RewrittenBudget
    /// Starts the upstream loop; blocks until it runs.
    package init(
        settings: ProxySettings, store: ObjectStore, upstream: UpstreamConfiguration,
        isShared: Bool, log: Logger
    ) throws {
        self.settings = settings
        self.store = store
        self.log = log
        logsAnswers = log.logLevel <= .debug
        self.isShared = isShared
        counters = Counters()
        readers = Readers()
        rewritten = RewrittenBudget(limit: settings.rewrittenBytes)
        sessions = SessionTable(store.state)
        keys = KeyTable(settings: settings.keys, database: store.state, counters: counters)
        live = LiveMemory(database: store.state, counters: counters, now: .now())
        let counters = counters
        accessLog = try settings.accessLog.map { try AccessLog(path: $0, counters: counters) }
        events = EventFeed(isLogged: settings.accessLog != nil)
        consoleFiles = ConsoleFiles(player: ConsolePlayer(path: settings.consolePlayer)) {
            Gzip.compress($0)
        }
        consoleSession = settings.token.map(ConsoleSession.init(token:))
        signer = settings.token.map { Signer(token: $0) }
        let aheadThread = try LoopThread(name: "ahead") { _ in }
        self.aheadThread = aheadThread
        crashes = CrashHistory(store.state, log: log)
        texts = try TextWorker(counters: counters)
        addresses = OwnAddresses(hostNames: settings.hostNames)
        names = ResourceNames(keys: keys, live: live, store: store, addresses: addresses)
        sources = PlaylistSources(
            store: store, names: names, live: live, health: health, memory: playlistMemory,
            revival: revival, limits: settings.playlistLimits)
        offline = try OfflineWorker(sources)
        keeper = try TimeShiftThread()
        timeShift = TimeShiftTable(
            store: store, names: names, live: live, memory: playlistMemory, counters: counters,
            thread: keeper, log: log)
        links = Links(
            mounts: settings.mounts, addresses: addresses, names: names, sessions: sessions,
            live: live, store: store, timeShift: timeShift, memory: playlistMemory,
            limits: settings.playlistLimits, signer: signer)
        let events = events
        flights = try Flights(
            core: FlightCore(
                store: store, settings: settings, counters: counters, readers: readers,
                isShared: isShared, keys: keys, playlistMemory: playlistMemory,
                live: live, texts: texts, health: health,
                log: log, ahead: ahead,
                concurrency: concurrency, lines: lines, tellAhead: { events.tell($0) }),
            configuration: upstream)
        playlists = PlaylistReader(
            sources, flights: flights, addresses: addresses, isShared: isShared,
            thread: aheadThread)
        aheadServices = AheadServices(
            store: store, names: names, sessions: sessions, keys: keys, settings: settings,
            counters: counters, flights: flights, playlists: playlists,
            playlistMemory: playlistMemory, addresses: addresses, concurrency: concurrency,
            crashes: crashes, signer: signer, log: log,
            originURL: { [links] in links.originURL($0) },
            originURLOfNext: { [links] in links.originURL(ofNext: $0, after: $1) })
        lookahead = LookaheadObserver(
            aheadServices, thread: aheadThread, runsAhead: settings.mayLookAhead(settings.keys))
        feedService = FeedService(lookahead, aheadServices)
    }

    /// Ends what runs ahead of players, then the upstream loop with all transfers; blocks.
    package func stop() {
        crashes.endCleanly()
        keeper.stop()
        aheadThread.stopAndJoin()
        offline.stop()
        texts.stop()
        flights.stop()
    }

    /// Counts and logs work that holds a loop for too long.
    package var loopHoldObserver: LoopHold.Observer { counters.loopHoldObserver(log: log) }

    // MARK: Settings that may change while we run

    /// Puts other mounts, key rules and policies in force for the requests that come from now on.
    ///
    /// Any thread may call it; nothing under way is disturbed.
    package func replace(mounts: [Mount], keys replacement: KeySettings) {
        links.replace(mounts: mounts)
        keys.replace(replacement)
        lookahead.runsAhead = settings.mayLookAhead(replacement)
    }

    /// Tells the proxy the addresses that it is about to listen on, with port 0 where it is not known.
    package func willListen(on listening: [SocketAddress]) {
        addresses.listen(on: listening)
    }

    /// Tells the proxy the addresses that it listens on; until it knows them no `Host` is ours.
    package func listen(on listening: [SocketAddress]) {
        addresses.listen(on: listening)
        feedService.restore()
    }

    /// Begins to look after longer windows; recordings of former runs are taken up.
    package func startTimeShift() {
        keeper.start(
            TimeShiftServices(
                store: store, names: names, sessions: sessions, playlistMemory: playlistMemory,
                counters: counters, flights: flights, playlists: playlists, timeShift: timeShift,
                keeper: keeper, crashes: crashes, log: log, signer: signer,
                basePath: settings.basePath, originURL: { [links] in links.originURL($0) }))
    }

    /// The titles of the store.
    package var catalogue: TitleCatalogue {
        TitleCatalogue(
            store: store, sessions: sessions, keys: keys, limits: settings.playlistLimits)
    }
}
