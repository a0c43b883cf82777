import CommandSupport
import DaemonService
import ArgumentParser
import Glibc
import HTTP
import Posix
import URISyntax

/// `sluice download`: starts, watches and controls downloads of the daemon.
struct DownloadCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "download", abstract: "Download titles for playback without a network.",
        discussion: """
            The daemon fetches everything that the title needs, including keys and initialization sections, and \
            protects it from eviction. It continues when this command is interrupted, after a restart, and after a \
            network change; nothing is fetched twice. Several parts are fetched concurrently; their number is \
            adjusted during the download. Players have priority.
            """,
        subcommands: [
            DownloadAdd.self, DownloadList.self, DownloadPause.self, DownloadResume.self,
            DownloadRefresh.self, DownloadCancel.self,
        ],
        defaultSubcommand: DownloadAdd.self)
}

struct DownloadAdd: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add", abstract: "Download a title and show its progress (the default).",
        discussion: """
            Exits with 0 when every part is stored and was verified. A live stream cannot be downloaded: keep it \
            with `sluice record`. A URL that is not a playlist is downloaded as a file.
            --variant, --audio and --subtitles are repeatable.
            """)

    @Argument(help: "Entry URL of the stream: the origin's or the daemon's.")
    var url: String

    @Option(
        help: ArgumentHelp(
            "best, worst, all, or heights of the picture such as 360,720; default best.",
            valueName: "best|worst|HEIGHTS|all"),
        completion: .list(["best", "worst", "all"]))
    var variant: [String] = []

    @Option(
        help: "Languages of the audio such as en,de, all or none; default as a player would choose."
    )
    var audio: [String] = []

    @Option(
        help: "Languages of the subtitles such as en,de, all or none; default only forced ones.")
    var subtitles: [String] = []

    @Option(help: "Where to begin: 90, 1:30 or 1:02:03.")
    var from: String?

    @Option(help: "Where to end.")
    var to: String?

    @Option(help: "Maximum rate in bytes per second, such as 2MB; default no limit.")
    var rate: String?

    @OptionGroup var headers: OriginHeaders

    @Flag(help: "Start the download and return immediately.")
    var detach = false

    @Flag(help: "Show what would be fetched and its size, without downloading it.")
    var dryRun = false

    @Flag(help: "Print the download as JSON, once, at its end.")
    var json = false

    @OptionGroup var daemon: DaemonOptions

    func validate() throws {
        if dryRun, detach { throw ValidationError("--dry-run starts nothing to detach from") }
        _ = try arguments()
    }

    func run() throws {
        if dryRun { return try printDryRun() }
        let text = try daemon.client().send("POST", "/api/downloads?" + arguments())
        let download: DownloadLine = try decodeJSON(text)
        if detach {
            if json { print(text, terminator: "") } else { print("download \(download.id) begins") }
            return
        }
        try DownloadWatch(client: daemon.client(), json: json).follow(download)
    }

    private func printDryRun() throws {
        let text = try daemon.client().send("POST", "/api/downloads/dry-run?" + arguments())
        if json { return print(text, terminator: "") }
        let plan: DryRunLine = try decodeJSON(text)
        print(plan.text)
        if let encryption = plan.encryption {
            printError("sluice: the title is \(encryption.text)")
        }
    }

    private func arguments() throws -> String {
        var pairs = [("url", url)]
        pairs += variant.map { ("variant", $0) }
        pairs += audio.map { ("audio", $0) }
        pairs += subtitles.map { ("subtitles", $0) }
        if let from { pairs.append(("from", from)) }
        if let to { pairs.append(("to", to)) }
        if let rate {
            guard let bytes = ByteSize.bytes(rate) else {
                throw ValidationError(
                    "--rate is bytes per second such as 2MB, not '\(rate)'; \(ByteSize.units)"
                )
            }
            pairs.append(("rate", String(bytes)))
        }
        pairs += try headers.fields().map { ("h_\($0.name)", $0.value) }
        return daemonQuery(pairs)
    }
}

/// Shows one download until it ends.
struct DownloadWatch {
    let client: AdminClient
    let json: Bool

    /// - Parameter ordered: the answer to the order.
    /// - Throws: `ExitCode` if the download fails, or another order changes what it fetches, after
    ///   printing the reason.
    func follow(_ ordered: DownloadLine) throws {
        var progress = ProgressLine()
        var isWarned = false
        while true {
            let text = try client.progress(
                "/api/downloads/\(ordered.id)",
                orElse:
                    "the download is not lost: it continues when the daemon runs; `sluice download list` shows it"
            )
            let download: DownloadLine = try decodeJSON(text)
            if let choice = download.choice, let former = ordered.choice, choice != former {
                progress.finish()
                printError(
                    "sluice: another order has changed this download to \(choice), from \(former); order it again for the latter"
                )
                throw ExitCode.failure
            }
            if let encryption = download.encryption, !isWarned {
                isWarned = true
                progress.finish()
                printError("sluice: the title is \(encryption.text)")
            }
            guard ["complete", "failed", "paused"].contains(download.state) else {
                progress.show(download.progress, state: download.state)
                usleep(200_000)
                continue
            }
            progress.finish()
            if json { print(text, terminator: "") }
            return try end(download)
        }
    }

    private func end(_ download: DownloadLine) throws {
        switch download.state {
        case "complete":
            guard !json else { return }
            print(
                "\(download.name) is complete: \(partCount(download.pieces)), \(OutputFormat.size(download.bytes)), all in the store"
            )
        case "failed":
            printError("sluice: the download failed: \(download.reason ?? "")")
            if download.piecesDone > 0, download.encryption == nil {
                printError(
                    "downloaded bytes are kept; `sluice download resume \(download.id)` tries the rest again"
                )
            }
            throw ExitCode.failure
        default:
            printError(
                "sluice: the download was paused; `sluice download resume \(download.id)` continues"
            )
            throw ExitCode.failure
        }
    }
}

struct DownloadList: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List downloads and their progress.")

    @Flag(help: "Print them as JSON.")
    var json = false

    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        let text = try daemon.client().send("GET", "/api/downloads")
        if json { return print(text, terminator: "") }
        let page: Page = try decodeJSON(text)
        for download in page.downloads {
            let streams = download.streams.joined(separator: ", ")
            let about = streams.isEmpty ? download.name : "\(download.name) (\(streams))"
            print("\(download.id)  \(download.bar)  \(about)")
            let status =
                download.refreshing.map { "complete, being refreshed (\($0))" }
                ?? download.reason.map { "\(download.state): \($0)" } ?? download.figures
            let place = download.node.map { "node \($0)  " } ?? ""
            print("              \(place)\(status)")
        }
        if page.downloads.isEmpty { return print("there are no downloads") }
        let now = page.concurrency
        let each = now.hostLimit.map { $0 > 0 ? ", \($0) from a host" : "" } ?? ""
        let single = (now.hostLimits ?? [:]).sorted { $0.key < $1.key }
            .map { ", \($0.value) from \($0.key)" }.joined()
        let limits = "\(now.downloadsLimit) transfers at once\(each)\(single)"
        print("at most \(limits) (\(now.plan)): \(now.reason)")
    }

    private struct Page: Decodable {
        let downloads: [DownloadLine]
        let concurrency: Concurrency
    }

    private struct Concurrency: Decodable {
        let plan: String
        let downloadsLimit: Int
        /// 0 for no limit; nil from a daemon of before 0.5.0.
        let hostLimit: Int?
        /// The limits of single hosts; nil from a daemon of before 0.5.0.
        let hostLimits: [String: Int]?
        let reason: String
    }
}

/// The download that a command refers to.
struct DownloadTarget: ParsableArguments {
    @Argument(help: "The download's number in `sluice download list`.")
    var id: String

    @OptionGroup var daemon: DaemonOptions

    /// Sends a verb to the daemon and returns the download's new state.
    func tell(_ verb: String) throws -> DownloadLine {
        let name = PercentCoding.queryComponent(id)
        return try decodeJSON(try daemon.client().send("POST", "/api/downloads/\(name)/\(verb)"))
    }
}

struct DownloadPause: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pause", abstract: "Pause a download; downloaded bytes are kept.",
        discussion: "The refresh of a complete download ends; the stored version stays as it is.")

    @OptionGroup var target: DownloadTarget

    func run() throws {
        let download = try target.tell("pause")
        // No other node tells of refreshes, nor ends one.
        guard download.state != "complete" || download.refreshed == nil else {
            return print("the refresh of \(download.name) has ended; the stored version stays")
        }
        print("\(download.name) is paused")
    }
}

struct DownloadResume: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "resume",
        abstract: "Resume a download that is paused, has failed, or has lost parts.")

    @Flag(help: "Wait for its end and show its progress.")
    var watch = false

    @OptionGroup var target: DownloadTarget

    func run() throws {
        let download = try target.tell("resume")
        guard watch else { return print("\(download.name) goes on") }
        try DownloadWatch(client: target.daemon.client(), json: false).follow(download)
    }
}

struct DownloadRefresh: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "refresh", abstract: "Bring a complete download up to date.",
        discussion: """
            The origin is asked for the title's playlists again; what they name and the store lacks is fetched. Parts \
            of a changed playlist that are stored are revalidated, and so is a download that is one file. The old \
            version stays complete and playable until the new one is whole, and if the refresh fails.
            """)

    @Flag(help: "Wait for its end; exits with 1 if it fails.")
    var watch = false

    @OptionGroup var target: DownloadTarget

    func run() throws {
        let ordered = try target.tell("refresh")
        guard watch else { return print("\(ordered.name) is being refreshed") }
        let client = target.daemon.client()
        var progress = ProgressLine()
        while true {
            let download: DownloadLine = try decodeJSON(
                client.progress(
                    "/api/downloads/\(ordered.id)",
                    orElse: "a restart ends a refresh; the title is kept as it was"))
            if let state = download.refreshing {
                progress.show("refresh: \(state)", state: state)
                usleep(200_000)
                continue
            }
            progress.finish()
            return try end(download, after: ordered)
        }
    }

    private func end(_ download: DownloadLine, after ordered: DownloadLine) throws {
        if download.state == "complete", download.reason == nil,
            download.refreshed != ordered.refreshed
        {
            return print(
                "\(download.name) is up to date: \(partCount(download.pieces)), \(OutputFormat.size(download.bytes))"
            )
        }
        printError("sluice: the refresh failed: \(download.reason ?? "it was interrupted")")
        throw ExitCode.failure
    }
}

struct DownloadCancel: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cancel", abstract: "Forget a download.",
        discussion: """
            Downloaded bytes stay in the cache like anything that was played, until their room is needed; `sluice \
            purge` removes them immediately.
            """)

    @OptionGroup var target: DownloadTarget

    func run() throws {
        print("\(try target.tell("cancel").name) is no longer downloaded")
    }
}
