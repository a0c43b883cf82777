// Wires the parts together and runs them from start to stop.
import Ahead
import CommandSupport
import ArgumentParser
import Console
import Glibc
import HTTPServer
package import Logging
import Posix
import Library
import Model
import Serving
import Reactor
import Store
import Synchronization
import Upstream

/// The running daemon.
///
/// Life cycle: `start`, `run` until a signal, then drained and closed.
package final class Daemon {
    private let configuration: DaemonConfiguration
    private let log: Logger
    private let store: ObjectStore
    private let core: ProxyCore
    private let administration: AdministrationWorker
    private let pictures: TitlePictures?
    private let downloads: DownloadService
    private let history: HistoryKeeper
    private let server: HTTPServer

    /// Starts everything; blocks until the sockets listen.
    ///
    /// - Throws: `ExitCode` after printing the error to standard error.
    package init(_ configuration: DaemonConfiguration, log: Logger) throws {
        var configuration = configuration
        try ProcessLimits.fitDescriptors(&configuration, log)
        Self.warn(of: configuration, log)
        try ProcessLimits.checkFileSize(log)
        self.configuration = configuration
        self.log = log
        store = try Self.openStore(configuration, log)
        if configuration.proxy.sharedStore != nil { try configuration.nameNode() }
        let sessions = configuration.cacheFolder + "/tls-sessions"
        if configuration.keepsTLSTickets {
            configuration.upstream.sessionFile = sessions
        } else {
            // Without consent any more, stored sessions are deleted.
            unlink(sessions)
        }
        do {
            core = try ProxyCore(
                settings: configuration.proxy, store: store, upstream: configuration.upstream,
                isShared: configuration.isShared, log: log)
        } catch {
            printError("sluice: \(error)")
            throw ExitCode.failure
        }
        do throws(SystemError) {
            pictures = try Self.pictures(configuration, core)
            let titles = StoreAdministration(
                catalogue: core.catalogue, hasPictures: pictures != nil,
                others: core.otherCaches, origin: core.links.titleStart, willPurge: core.willPurge)
            administration = try AdministrationWorker(titles)
            let downloads = try DownloadService(
                services: core.aheadServices, rules: configuration.downloads)
            titles.follow { downloads.note(removedFrom: $0) }
            store.followLosses { downloads.lookForLosses() }
            self.downloads = downloads
            history = try HistoryKeeper(
                folder: configuration.cacheFolder, counters: core.counters,
                health: core.origins.health)
            // Before players can ask: they would get what was purged while this node was away.
            try core.followChanges(with: administration)
        } catch {
            printError("sluice: \(error)")
            throw ExitCode.failure
        }
        // An inherited socket may have pending requests, which need these addresses.
        core.willListen(on: configuration.listeningPlaces)
        core.settingsList.replace(configuration.settings)
        server = try Self.listen(
            configuration, core, (administration, pictures, downloads, history))
        core.listen(on: server.boundAddresses)
        core.startTimeShift()
    }

    /// Warns of settings that do nothing, or not what they say.
    private static func warn(of configuration: DaemonConfiguration, _ log: Logger) {
        for (name, value) in configuration.formerSettings.sorted(by: { $0.key < $1.key }) {
            log.warning(
                "\(name) is no longer a setting, and '\(value)' is ignored; remove it from the configuration"
            )
        }
        let rules = configuration.downloads
        if rules.quietHours != nil || rules.dailyBytes != nil, let fault = ZoneVariable.fault {
            log.warning("\(fault)")
        }
    }

    /// Opens the cache folder.
    ///
    /// - Throws: `ExitCode` after printing to standard error why it cannot be used.
    private static func openStore(
        _ configuration: DaemonConfiguration, _ log: Logger
    ) throws -> ObjectStore {
        if let owner = FolderOwner(keepingRootOutOf: configuration.cacheFolder) {
            printError("sluice: \(owner.refusal(of: configuration.cacheFolder))")
            throw ExitCodes.cacheFolder
        }
        var settings = configuration.store
        // A listing that began before this start ends sooner.
        settings.lockWait = .seconds(5 as Int64)
        do throws(StoreError) {
            return try ObjectStore(
                folder: configuration.cacheFolder, configuration: settings, log: log)
        } catch {
            printError("sluice: \(error)")
            switch error {
            case .inUse:
                printError(
                    "sluice: stop what uses it, or choose another folder with --cache-dir")
            case .unusable(_, let reason) where reason.code == EROFS:
                printError(
                    "sluice: mount its file system for writing, or allow the service to write there with ReadWritePaths="
                )
            case .unusable(let folder, let reason) where reason.code == EACCES:
                printError("sluice: \(FolderOwner.advice(withoutAccessTo: folder))")
            case .index(let folder, _), .state(let folder, _):
                // SQLite says of a file of another user only that it cannot open it.
                if let advice = FolderOwner.advice(aboutFilesIn: folder) {
                    printError("sluice: \(advice)")
                }
            case .newerFormat, .newerIndex, .newerState:
                // Service managers try again after the other code, which would not help.
                throw ExitCodes.configuration
            case .unusable, .foreignFolder: break
            }
            throw ExitCodes.cacheFolder
        }
    }

    private static func listen(
        _ configuration: DaemonConfiguration, _ core: ProxyCore,
        _ services: (
            titles: AdministrationWorker, pictures: TitlePictures?, downloads: DownloadService,
            history: HistoryKeeper
        )
    ) throws -> HTTPServer {
        let running = RunningServer()
        let status = StatusSource(
            version: sluiceVersion, startedAt: .now(), administration: services.titles,
            pictures: services.pictures, downloads: services.downloads, history: services.history,
            connections: { running.connections },
            handshakes: { running.handshakes })
        do throws(SystemError) {
            let server = try HTTPServer(
                addresses: configuration.addresses, inherited: configuration.inherited,
                secure: configuration.secure,
                isMultipath: configuration.multipath.listens,
                loops: configuration.loops, limits: configuration.limits,
                onHold: core.loopHoldObserver,
                onCrowd: crowdObserver(configuration.limits.connections, core.log)
            ) { _ in CachingProxy(core: core, status: status) }
            running.follow(server)
            return server
        } catch {
            services.titles.stop()
            services.downloads.stop()
            core.stop()
            services.pictures?.stop()
            services.history.stop()
            core.store.close()
            printError("sluice: cannot listen: \(error)")
            if error.code == EADDRINUSE {
                printError(
                    "sluice: another process has the port; stop it or choose another with --port")
                throw ExitCodes.portTaken
            }
            throw ExitCode.failure
        }
    }

    /// Returns what logs that all places for player connections are taken, and the end of that.
    private static func crowdObserver(_ limit: Int, _ log: Logger) -> CrowdReport.Observer {
        { report in
            switch report {
            case .began:
                log.warning(
                    """
                    all \(limit) player connections (max-connections) are in use: idle ones are \
                    closed for new ones, which get 503 where none is idle
                    """)
            case .ended(let counts):
                log.notice(
                    """
                    max-connections is no longer reached: \(counts.closed) idle connections were \
                    closed for new ones, and \(counts.refused) new ones refused
                    """)
            }
        }
    }

    /// Starts the thread for pictures of titles; nil while they are off.
    private static func pictures(
        _ configuration: DaemonConfiguration, _ core: ProxyCore
    ) throws(SystemError) -> TitlePictures? {
        guard configuration.makesPictures else { return nil }
        if findProgram("ffmpeg") == nil {
            core.log.warning(
                "title-pictures is on, but no ffmpeg is found in PATH; install it, or set it to off"
            )
        }
        let log = core.log
        return try TitlePictures(core.catalogue, findProgram: { findProgram("ffmpeg") }) {
            switch $0 {
            case .sandbox: log.notice("ffmpeg makes pictures in a sandbox")
            case .noSandbox:
                log.warning(
                    "ffmpeg makes pictures with the rights of the daemon; install bubblewrap to confine it"
                )
            case .brokenSandbox:
                log.warning(
                    """
                    ffmpeg makes pictures with the rights of the daemon: bubblewrap does not work \
                    here, since unprivileged user namespaces are denied
                    """)
            }
        }
    }

    /// Reports that the daemon is ready, and runs until SIGTERM or SIGINT has stopped it; blocks.
    ///
    /// SIGHUP reloads the configuration; the settings of `ServeOptions.reloadedNames` change then.
    ///
    /// - Parameters:
    ///   - read: reads the configuration again.
    ///   - setLogLevel: called with the log level of each configuration read.
    /// - Throws: `SystemError` if a descriptor cannot be made.
    package func run(
        rereading read: @escaping ConfigurationReload.Read,
        setLogLevel: @escaping (Logger.Level) -> Void
    ) throws {
        for address in server.boundAddresses {
            let isSecure = server.boundSecureAddresses.contains(address)
            print("sluice ready \(isSecure ? "https" : "http")://\(address)")
        }
        fflush(nil)
        ServiceManager.notify("READY=1\nSTATUS=Listening")
        core.prepareForPlayers()
        administration.removeUnused(for: configuration.maxUnused, counters: core.counters)
        let handle = try LoopHandle()
        let loop = try EventLoop(handle: handle)
        let parts = ConfigurationReload.Parts(
            core: core, server: server, administration: administration, downloads: downloads,
            log: log, read: read, setLogLevel: setLogLevel)
        let reload = ConfigurationReload(parts, running: configuration)
        var isStopping = false
        let signals = try SignalSource([SIGTERM, SIGINT, SIGHUP], on: loop) {
            [server, log, core] signal, loop in
            if signal == SIGHUP {
                core.accessLog?.reopen()
                reload.start(on: loop)
                return
            }
            if isStopping {
                // A second signal: do not wait for players.
                loop.stop()
                return
            }
            isStopping = true
            let waits = reload.endWaits
            log.notice("stopping", metadata: ["signal": "\(signal)"])
            ServiceManager.notifyStopping(
                seconds: waits.drainDelay.inSeconds + waits.drain.inSeconds)
            core.crashes.endCleanly()
            core.endReadiness()
            let drain = {
                core.events.close()
                server.drain(within: waits.drain) { handle.enqueue { $0.stop() } }
            }
            guard waits.drainDelay > .zero else { return drain() }
            loop.schedule(after: waits.drainDelay) { _ in drain() }
        }
        // Two thirds of the resident memory at that time is code that ran only once, at start.
        loop.schedule(after: .seconds(1 as Int64)) { _ in giveBackCode() }
        withExtendedLifetime(signals) { loop.run() }
        server.stop()
        ServiceManager.notifyStopStep()
        store.makeRoomForStop()
        // Before downloads, which are told what a purge has removed.
        administration.stop()
        downloads.stop()
        ServiceManager.notifyStopStep()
        core.stop()
        pictures?.stop()
        history.stop()
        ServiceManager.notifyStopStep()
        // What must be kept comes before what may be lost.
        store.close()
        core.accessLog?.close()
        log.notice("stopped")
    }
}

/// The figures of the server, available once it runs.
private final class RunningServer: Sendable {
    private let server = Mutex<HTTPServer?>(nil)

    var connections: Int { server.withLock { $0?.connectionCount ?? 0 } }
    var handshakes: HandshakeFigures { server.withLock { $0?.handshakes ?? HandshakeFigures() } }

    func follow(_ running: HTTPServer) {
        server.withLock { $0 = running }
    }
}
