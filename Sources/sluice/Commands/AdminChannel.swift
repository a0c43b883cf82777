// Access to the store: through the running daemon, or directly in the folder while none runs.
import Ahead
import CommandSupport
import DaemonService
import ArgumentParser
import FoundationEssentials
import Glibc
import HTTP
import Logging
import Posix
import Library
import Model
import Origin
import Serving
import Routing
import Store
import URISyntax
import Upstream

/// The options for reaching the daemon, or the folder in its place.
struct StoreOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The daemon's base URL; default by the settings of --config, else $SLUICE_DAEMON, else by settings in the environment, else http://127.0.0.1:9000. Given alone, no folder is opened.",
            valueName: "url"))
    var daemon: String?

    @Option(help: "Access token of the daemon, if it needs one; default $SLUICE_TOKEN.")
    var token: String?

    @Option(
        help: DaemonTrust.help,
        completion: .file())
    var daemonCa: String?

    /// The daemon that was named, by flag or environment.
    var namedDaemon: String? { daemon ?? DaemonOptions.environmentDaemon }

    @Option(
        help: ArgumentHelp(
            """
            Open this cache folder itself, which no daemon may have; with --daemon only if none \
            answers there. Default: the folder that `sluice serve` uses, if no daemon answers.
            """, valueName: "folder"),
        completion: .directory)
    var cacheDir: String?

    @Option(
        help: "JSON file with the daemon's settings, which name the cache folder.",
        completion: .file())
    var config: String?

    func validate() throws {
        if let daemon {
            try DaemonOptions.check(base: DaemonOptions.withScheme(daemon), from: "--daemon")
        }
    }

    /// Runs `body` with a channel, which is closed afterwards.
    ///
    /// - Throws: `ExitCode` after printing the error to standard error.
    func withChannel(_ body: (AdminChannel) throws -> Void) throws {
        let channel = try AdminChannel(self)
        defer { channel.close() }
        try body(channel)
    }

    /// Requests a report and prints it: the JSON as received, or as lines of text.
    ///
    /// - Throws: `ExitCode` after printing the error to standard error.
    func printReport<Report: Decodable>(
        _ target: String, asJSON: Bool, lines: (Report) -> [String]
    ) throws {
        var text = ""
        try withChannel { text = try $0.send(.get, target) }
        if asJSON {
            print(text, terminator: "")
            return
        }
        let report: Report = try decodeJSON(text)
        print(PrintableText.lines(lines(report).joined(separator: "\n")))
    }
}

/// Sends requests of the admin API, to the daemon or to the opened folder.
final class AdminChannel {
    private let options: StoreOptions
    private let client: AdminClient
    private var opened: OpenedStore?
    /// True once a daemon has answered: its folder is opened no more, since it may start again.
    private var wasAnswered = false

    /// - Throws: `ExitCode` after printing what is wrong with the configuration file, if one is named.
    init(_ options: StoreOptions) throws {
        self.options = options
        var configured: String?
        let isNamed = options.config == nil && options.namedDaemon != nil
        if options.daemon == nil, options.cacheDir == nil, !isNamed,
            options.config != nil || DaemonOptions.namesListener
        {
            // The folder that the settings name is that of the daemon with their port.
            configured = try readLocalBases(file: options.config).first
        }
        client = AdminClient(
            base: configured ?? options.namedDaemon ?? DaemonOptions.standard,
            token: options.token ?? DaemonOptions.environmentToken,
            authority: DaemonTrust.authority(options.daemonCa))
    }

    func close() { opened?.close() }

    /// True if this process has the folder open, so that background work ends with it.
    var isFolderOpen: Bool { opened != nil }

    /// Sends a request and returns the body of the response, usually JSON; blocks.
    ///
    /// - Throws: `ExitCode` after printing the error to standard error.
    func send(_ method: HTTPMethod, _ target: String) throws -> String {
        if let opened { return try opened.send(method, target) }
        // A folder that is named is opened whatever daemon the environment names.
        let mayAsk = options.cacheDir == nil || options.daemon != nil
        let mayOpen =
            options.cacheDir != nil
            || (options.daemon == nil && (options.config != nil || options.namedDaemon == nil))
        let deadline = Monotonic.now() + Self.longestStart
        while true {
            if mayAsk {
                switch client.ask(method.name, target) {
                case .answered(let text):
                    wasAnswered = true
                    return text
                case .refused where mayOpen && !wasAnswered: break
                case .failed(let failure), .refused(let failure):
                    printError(failure.message)
                    throw failure.code
                }
            }
            do {
                let store = try OpenedStore(options, wasAsked: mayAsk ? client.base : nil)
                opened = store
                return try store.send(method, target)
            } catch let held as OpenedStore.Held {
                // A daemon that has just opened the folder answers in a moment.
                guard mayAsk, held.isByDaemon, .now() < deadline else { throw held.told() }
                usleep(100_000)
            }
        }
    }

    /// How long a daemon that has the folder may take to answer.
    private static let longestStart = Interval.seconds(5 as Int64)

    /// Requests the progress of work that an earlier request has begun; blocks.
    ///
    /// - Parameters:
    ///   - target: the page of the work.
    ///   - lost: what became of the work if the daemon was restarted since, and what to do.
    /// - Returns: the answer, of work that runs or has ended.
    /// - Throws: `ExitCode` after printing the error to standard error.
    func progress(_ target: String, lost: String) throws -> String {
        let text = try send(.get, target)
        let work: Work = try decodeJSON(text)
        guard work.state != "none" else {
            printError("sluice: the daemon was restarted meanwhile; \(lost)")
            throw ExitCodes.unreachable
        }
        return text
    }

    private struct Work: Decodable {
        /// `none` from a daemon that has begun no such work.
        let state: String
    }
}

/// A cache folder that this process has opened while no daemon uses it.
private final class OpenedStore {
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
