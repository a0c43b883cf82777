import Ahead
import ArgumentParser
import CommandSupport
import DaemonService
import Glibc
import HTTP
import Library
import Logging
import Model
import Origin
import Posix
import Routing
import Serving
import Store
import URISyntax
import Upstream

/// A cache folder that this process has opened while no daemon uses it.
final class OpenedStore {
    /// The folder is in use.
    struct Held: Error {
        /// The error, with the process that has the folder.
        let reason: String
        let isByDaemon: Bool

        /// Prints the error to standard error.
        ///
        /// - Returns: the error to throw.
        func told() -> ExitCode {
            printError("sluice: \(reason)")
            printError(
                isByDaemon
                    ? "sluice: name that daemon with --daemon URL"
                    : "sluice: wait until that has ended; if it is a daemon, name it with --daemon URL"
            )
            return ExitCodes.cacheFolder
        }
    }

    /// Makes sure that there is a store that this user may open.
    ///
    /// - Parameters:
    ///   - folder: the cache folder.
    ///   - asked: "no daemon answers ..., and ", if one was asked; else empty.
    /// - Throws: `ExitCode` after printing the error to standard error.
    private static func checkStore(_ folder: String, asked: String) throws {
        do throws(SystemError) {
            _ = try openFile(folder + "/format", flags: 0)
        } catch {
            guard error.code != ENOENT, error.code != ENOTDIR else {
                printError(
                    "sluice: \(asked)there is no store in \(folder); name the daemon with --daemon, or the folder with --cache-dir or --config"
                )
                throw asked.isEmpty ? ExitCodes.cacheFolder : ExitCodes.unreachable
            }
            var found = stat()
            var advice = ""
            if stat(folder, &found) == 0, found.st_uid != geteuid() {
                let user = FolderOwner(found.st_uid).argument
                advice = "; run this as its owner, for example with sudo -u \(user)"
            }
            printError(
                "sluice: \(asked)the store in \(folder) cannot be opened: \(error)\(advice)")
            throw ExitCodes.cacheFolder
        }
    }

    private let store: ObjectStore
    private let administration: StoreAdministration
    private let why: WhyAnswers
    /// Saves purges and pins for the other nodes; nil without a shared store.
    private let changes: NodeChanges?

    init(_ options: StoreOptions, wasAsked daemon: String?) throws {
        let configuration = try readConfiguration(
            scalars: options.cacheDir.map { ["cache-dir": $0] } ?? [:], lists: [:],
            file: options.config)
        let folder = configuration.cacheFolder
        try Self.checkStore(
            folder, asked: daemon.map { "no daemon answers at \($0), and " } ?? "")
        if let owner = FolderOwner(keepingRootOutOf: folder) {
            printError("sluice: \(owner.refusal(of: folder))")
            throw ExitCodes.cacheFolder
        }
        // Only the daemon knows the limits in force: nothing is evicted here.
        var settings = configuration.store
        settings.budgetBytes = max(settings.budgetBytes, 1_000_000_000_000_000)
        settings.minFreeBytes = 0
        settings.holder = .command
        // Other commands have it for a moment.
        settings.lockWait = .seconds(5 as Int64)
        var log = Logger(label: "sluice") { _ in LineLog() }
        log.logLevel = .error
        do throws(StoreError) {
            store = try ObjectStore(folder: folder, configuration: settings, log: log)
        } catch {
            if case .inUse(_, let holder) = error {
                throw Held(reason: "\(error)", isByDaemon: holder?.kind == .daemon)
            }
            printError("sluice: \(error)")
            throw ExitCodes.cacheFolder
        }
        changes =
            configuration.proxy.sharedStore == nil ? nil : NodeChanges(store.state, log: log)
        Self.waitForIndex(store)
        let sessions = SessionTable(store.state)
        let keys = KeyTable(
            settings: configuration.proxy.keys, database: store.state, counters: Counters())
        keys.mountUsers.replace(configuration.proxy.mounts)
        let basePath = configuration.proxy.basePath
        // Except in links, other names count on the daemon's ports only: an origin may have them.
        let addresses = OwnAddresses(hostNames: configuration.proxy.hostNames)
        addresses.listen(on: configuration.listeningPlaces)
        let isOwn: @Sendable (AbsoluteURL) -> Bool = {
            Self.isOnThisMachine($0) || addresses.contains($0)
        }
        let hasNodes = changes != nil || !configuration.proxy.clusterKeys.isEmpty
        let mayLink: @Sendable (AbsoluteURL) -> Bool = {
            hasNodes || isOwn($0) || addresses.containsHost(of: $0)
        }
        administration = StoreAdministration(
            catalogue: TitleCatalogue(store: store, sessions: sessions, keys: keys),
            allowance: configuration.store,
            others: StoreAdministration.Others(hasNodes: changes != nil),
            origin: {
                Self.titleStart($0, basePath: basePath, isOwn: isOwn, mayLink: mayLink, sessions)
            })
        var context = WhyContext(store: store, keys: keys, sessions: sessions)
        context.isShared = configuration.isShared
        context.mountKind = configuration.proxy.mountKind
        context.isOwn = isOwn
        context.guessesOwn = true
        let router = Router(mounts: configuration.proxy.mounts, basePath: basePath)
        context.router = { router }
        let onlyOrigins = configuration.upstream.onlyOrigins.current
        context.refusal = { onlyOrigins.refusal(of: $0) }
        why = WhyAnswers(context)
        administration.follow { [store] in DownloadLosses.note(removedFrom: $0, of: store) }
    }

    /// True if a URL is likely one of a daemon on this machine.
    private static func isOnThisMachine(_ url: AbsoluteURL) -> Bool {
        ["localhost", "127.0.0.1", "::1", "[::1]"].contains(url.asciiHost)
    }

    /// Waits until a lost index is rebuilt from the objects; blocks for that long.
    private static func waitForIndex(_ store: ObjectStore) {
        let deadline = Monotonic.now() + .seconds(600 as Int64)
        while !store.statistics().isReconciled, .now() < deadline { usleep(2_000) }
    }

    /// Returns where the titles start that a text names: an origin's URL, an entry if `isOwn` is
    /// true of it, or a link if `mayLink` is; nil for one whose target only the daemon knows.
    private static func titleStart(
        _ text: String, basePath: String, isOwn: (AbsoluteURL) -> Bool,
        mayLink: (AbsoluteURL) -> Bool, _ sessions: SessionTable
    ) -> TitleStart? {
        guard let url = try? AbsoluteURL(text) else { return nil }
        switch Router(mounts: [], basePath: basePath).route(given: url) {
        case .entry(let entry) where isOwn(url): return TitleStart(entry)
        case .rewritten(let link) where link.isReadable && mayLink(url):
            guard let target = link.uncheckedURL, let handle = link.unchecked else { return nil }
            return TitleStart(target, in: sessions.session(handle.session))
        default: return TitleStart(Entry(url: url))
        }
    }

    func send(_ method: HTTPMethod, _ target: String) throws -> String {
        let isAboutKeys = WhyAnswers.answers(String(target.prefix { $0 != "?" }))
        let request = RequestHead(method: method, target: target)
        let queries = method == .post ? queriesForNodes(request) : []
        let answer =
            isAboutKeys
            ? why.answer(method, target, now: .now()) : administration.answer(method, target)
        if case .value = answer { tellNodes(request.path, queries) }
        switch answer {
        case .value(_, let value): return value.encoded + "\n"
        case .failure(let status, let reason):
            printError("sluice: \(reason)")
            throw ExitCodes.refusal(Int(status.rawValue))
        case .methodNotAllowed(_, let reason):
            printError("sluice: \(reason)")
            throw ExitCode.failure
        }
    }

    /// The queries by which the other nodes are to repeat a change; none without a shared store.
    private func queriesForNodes(_ request: RequestHead) -> [String] {
        guard changes != nil, let query = request.query else { return [] }
        return administration.queriesForNodes(request.path, query)
    }

    /// Saves an accepted purge, pin or unpin for the next start of a daemon, which tells the other
    /// nodes, and would else repeat what they did before.
    private func tellNodes(_ path: String, _ queries: [String]) {
        for query in queries { changes?.saved(path: path, query: query, now: .now()) }
    }

    func close() {
        administration.stop()
        store.close()
    }
}
