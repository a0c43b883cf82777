// Everything that requests share, whichever loop they run on.
package import Library
package import Model
import CachePolicy
import HLS
import HTTP
package import Logging
package import Posix
package import Reactor
package import Routing
package import Store
import Synchronization
package import Upstream
import URISyntax

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
    package let flights: Flights
    /// True when others than the user of this machine can reach the daemon.
    package let isShared: Bool
    /// Nil where requests are not logged.
    package let accessLog: AccessLog?
    let readers: Readers
    let signer: Signer?
    /// Replaced as a whole; a request that was routed before goes on as it began.
    private let routes: Mutex<Router>
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
    let ahead = AheadGauge()
    let concurrency = ConcurrencyReport()
    let lines = LineSpeeds()
    /// Where playlists are read that no player asked for.
    let aheadThread: LoopThread
    /// Tells what runs ahead of players what these do.
    let lookahead: LookaheadObserver
    let feedService = FeedService()
    /// What may have brought the daemon down.
    package let crashes: CrashHistory
    let timeShift: TimeShiftTable
    /// Goes on with what is watched later, and records.
    package let keeper: TimeShiftThread
    /// Names this run of the daemon in requests to origins, so that one that comes back is known.
    let loopMark: String
    let rewritten: RewrittenBudget
    /// What leads to this daemon.
    private struct Own {
        var hosts: Set<String> = []
        var authorities: Set<String> = []
        /// Of the authorities: hardly a URL has one of them, and no text need be made of the others.
        var ports: [UInt16] = []
    }

    private let own = Mutex(Own())

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
        sessions = SessionTable(store: store)
        keys = KeyTable(settings: settings.keys, store: store, counters: counters)
        live = LiveMemory(store: store, counters: counters, now: .now())
        let counters = counters
        accessLog = try settings.accessLog.map { try AccessLog(path: $0, counters: counters) }
        signer = settings.token.map(Signer.init(token:))
        routes = Mutex(Router(mounts: settings.mounts))
        let aheadThread = try LoopThread(name: "ahead") { _ in }
        self.aheadThread = aheadThread
        lookahead = LookaheadObserver(
            thread: aheadThread, runsAhead: settings.mayLookAhead(settings.keys))
        timeShift = TimeShiftTable(folder: store.folderPath, log: log)
        crashes = CrashHistory(folder: store.folderPath, log: log)
        keeper = try TimeShiftThread()
        offline = try OfflineWorker()
        texts = try TextWorker(counters: counters)
        loopMark = "sluice-" + String(UInt64.random(in: .min ... .max), radix: 36)
        flights = try Flights(
            core: FlightCore(
                store: store, settings: settings, counters: counters, readers: readers,
                isShared: isShared, keys: keys, playlistMemory: playlistMemory,
                live: live, texts: texts, health: health,
                log: log, ahead: ahead,
                concurrency: concurrency, lines: lines),
            configuration: upstream)
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

    /// Reads request targets by the mounts of this moment.
    var router: Router { routes.withLock { $0 } }

    /// Puts other mounts, key rules and policies in force for the requests that come from now on.
    ///
    /// Any thread may call it; nothing under way is disturbed.
    package func replace(mounts: [Mount], keys replacement: KeySettings) {
        let router = Router(mounts: mounts)
        routes.withLock { $0 = router }
        keys.replace(replacement)
        lookahead.runsAhead = settings.mayLookAhead(replacement)
    }

    // MARK: Who we are

    /// Tells the proxy the addresses that it listens on; until then no `Host` is ours.
    package func listen(on addresses: [SocketAddress]) {
        var hosts = settings.hostNames.union(["localhost", "127.0.0.1", "[::1]"])
        for address in addresses {
            hosts.insert(address.bytes.count == 16 ? "[\(address.host)]" : address.host)
        }
        var authorities: Set<String> = []
        for address in addresses {
            for host in hosts { authorities.insert("\(host):\(address.port)") }
        }
        let ports = addresses.map(\.port)
        own.withLock { $0 = Own(hosts: hosts, authorities: authorities, ports: ports) }
        feedService.restore(self)
    }

    /// Whether a Host value is one that this daemon is known by.
    ///
    /// Others mean that a name was bent to our address by somebody else (DNS rebinding). Any port
    /// counts, since a tunnel or another proxy may stand before us, and nobody can bend these names.
    func isOwn(host: String) -> Bool {
        let host = HTTP.ASCII.lowercased(host)
        var name = host[...]
        if let colon = host.lastIndex(of: ":"), !host[colon...].contains("]") {
            name = host[..<colon]
        }
        return own.withLock { $0.hosts.contains(String(name)) }
    }

    /// Whether a URL leads back to this daemon.
    func isOwn(_ url: AbsoluteURL) -> Bool {
        guard own.withLock({ $0.ports.contains(url.port) }) else { return false }
        let host =
            url.hasIPv6Host && !url.asciiHost.hasPrefix("[") ? "[\(url.asciiHost)]" : url.asciiHost
        return own.withLock { $0.authorities.contains("\(host):\(url.port)") }
    }

    // MARK: Links

    /// The key of a resource's name: shared by all sessions, except where credentials may make a
    /// playlist its viewer's own; user information in a URL counts by its digest.
    func cacheKey(
        _ url: AbsoluteURL, session: Session, role: ResourceRole?, isMounted: Bool = false
    ) -> CacheKey {
        keys.cacheKey(of: url, session: session, role: role, isMounted: isMounted)
    }

    /// The CDN-Loop field of a request to an origin (RFC 8586): that of the player's request, if
    /// it is a proxy itself, and us.
    func cdnLoop(after request: RequestHead) -> String {
        let before = request.fields.combined(.cdnLoop).map { $0 + ", " } ?? ""
        return before + loopMark
    }

    /// Whether a request is one of our own that came back to us over others.
    func isLooped(_ request: RequestHead) -> Bool {
        request.fields.combined(.cdnLoop)?.contains(loopMark) ?? false
    }

    /// The handle of a URL in a session; long URLs go to the persistent table.
    func handle(
        for url: AbsoluteURL, session: SessionID, epoch: Epoch = .first
    ) -> Handle {
        guard url.bytes.count > Handle.longestURL else {
            return Handle(session: session, target: .url(url), epoch: epoch)
        }
        let name = Array(SHA256Digest.of(url.bytes).prefix(16))
        store.saveLongURL(id: name, url: url.text)
        return Handle(session: session, target: .name(name), epoch: epoch)
    }

    /// The URL of a handle; nil for a short form that the table does not know (any more), and for
    /// that of a live list, which names no URL.
    func url(of handle: Handle) -> AbsoluteURL? {
        switch handle.target {
        case .url(let url): url
        case .name(let name): store.longURL(id: name).flatMap { try? AbsoluteURL($0) }
        case .list: nil
        }
    }
}
