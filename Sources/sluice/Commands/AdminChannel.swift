// Access to the store: through the running daemon, or directly in the folder while none runs.
import ArgumentParser
import CommandSupport
import DaemonService
import Glibc
import HTTP
import Posix

/// The options for reaching the daemon, or the folder in its place.
struct StoreOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The daemon's base URL; default by the settings of --config, else $SLUICE_DAEMON, else by settings in the environment, else http://127.0.0.1:9000. Given alone, no folder is opened.",
            valueName: "url"))
    var daemon: String?

    @OptionGroup var access: DaemonAccess

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
        client = options.access.client(
            at: configured ?? options.namedDaemon ?? DaemonOptions.standard)
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
