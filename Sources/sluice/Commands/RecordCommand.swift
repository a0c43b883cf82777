import ArgumentParser
import CommandSupport
import FoundationEssentials
import Glibc
import Routing

/// `sluice record`: records a live stream, which the daemon then serves as VOD.
struct RecordCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "record", abstract: "Record a live stream without a player.",
        discussion: """
            The daemon follows the stream and fetches every segment of the chosen variant, with its audio, \
            subtitles, keys and initialization sections. When the time is over, or the stream ends, the recording \
            plays from the store as a film and is pinned; `sluice ls` lists it.
            This command only shows the progress: the recording continues when it is interrupted, and after a \
            restart of the daemon. Stop one early with --stop; the recorded part is kept.
            --variant, --audio and --subtitles are repeatable.
            """)

    @Argument(help: "URL of the stream: the origin's or the daemon's.")
    var url: String?

    @Option(
        name: .customLong("for"),
        help: ArgumentHelp("Duration: 30m, 2h, 1h30m; at most 7d.", valueName: "duration"))
    var length: String?

    @Option(
        help: "Which variant streams: best, worst, all, or heights such as 360,720. Default: best.",
        completion: .list(["best", "worst", "all"]))
    var variant: [String] = []

    @Option(help: "Audio: default, none, all or languages such as en,de. Default: all.")
    var audio: [String] = []

    @Option(help: "Subtitles: default, none, all or languages such as en,de. Default: all.")
    var subtitles: [String] = []

    @Option(help: "Its name in listings.")
    var name: String?

    @OptionGroup var headers: OriginHeaders

    @Flag(help: "Start the recording and return immediately.")
    var detach = false

    @Flag(help: "List recordings, newest first.")
    var list = false

    @Option(help: ArgumentHelp("End a recording now and keep what was recorded.", valueName: "id"))
    var stop: String?

    @Option(
        name: .customLong("resume"),
        help: ArgumentHelp(
            "Resume a recording that was paused after crashes.", valueName: "id"))
    var resumed: String?

    @Option(
        help: ArgumentHelp(
            "Remove a recording that is finished, paused or being finished, and its media.",
            valueName: "id"))
    var forget: String?

    @Flag(help: "Print the daemon's JSON.")
    var json = false

    @OptionGroup var daemon: DaemonOptions

    func validate() throws {
        let actions = [url != nil, list, stop != nil, resumed != nil, forget != nil].filter { $0 }
            .count
        guard actions == 1 else {
            throw ValidationError(
                "give a URL to record, or one of --list, --stop, --resume and --forget")
        }
        if let url, ["list", "stop", "resume", "forget"].contains(url) {
            throw ValidationError("'\(url)' is no URL; did you mean --\(url)?")
        }
        guard url == nil || length != nil else {
            throw ValidationError("the duration is missing; give --for, such as --for 2h")
        }
        if let id = stop ?? resumed ?? forget,
            id.isEmpty || !id.allSatisfy({ $0.isHexDigit || $0 == "-" })
        {
            throw ValidationError("a recording is named by its id in --list, not '\(id)'")
        }
    }

    private var client: AdminClient { daemon.client() }

    func run() throws {
        if list { return try printList() }
        if let stop { return try end(stop) }
        if let resumed { return try change(resumed, "resume", "goes on:") }
        if let forget { return try change(forget, "forget", "removed") }
        let text = try client.send("POST", "/api/recordings?\(try query())")
        let started: RecordingReport = try decodeJSON(text)
        if detach {
            print(json ? text : "recording \(started.id)\n", terminator: "")
            return
        }
        if !json {
            print("recording \(started.id); it continues if this command is interrupted")
        }
        try watch(started.id)
    }

    private func query() throws -> String {
        var arguments = [("url", url ?? "")]
        if let length { arguments.append(("for", length)) }
        arguments += variant.map { ("variant", $0) }
        arguments += audio.map { ("audio", $0) }
        arguments += subtitles.map { ("subtitles", $0) }
        if let name { arguments.append(("name", name)) }
        arguments += try headers.fields().map { ("h_\($0.name)", $0.value) }
        return daemonQuery(arguments)
    }

    // MARK: Progress

    /// Prints the progress, until the recording is over.
    private func watch(_ id: String) throws {
        var progress = ProgressLine()
        while true {
            let text = try client.progress(
                "/api/recordings/\(id)",
                orElse:
                    "the recording is not lost: it continues when the daemon runs; `sluice record --list` shows it"
            )
            let report: RecordingReport = try decodeJSON(text)
            guard report.isOver else {
                progress.show(report.line, state: report.state + (report.reason.isEmpty ? "" : ":"))
                usleep(500_000)
                continue
            }
            progress.finish()
            if json { print(text, terminator: "") } else { printEnd(report) }
            if report.state == "failed" { throw ExitCode.failure }
            return
        }
    }

    private func printEnd(_ report: RecordingReport) {
        print(report.line)
        guard report.state == "done" else { return }
        if let link = report.link(at: client.base) { print("play it:  \(link)") }
    }

    private func printList() throws {
        let text = try client.send("GET", "/api/recordings")
        if json { return print(text, terminator: "") }
        let page: Page = try decodeJSON(text)
        if page.recordings.isEmpty { return print("no recordings") }
        for report in page.recordings {
            let place = report.node.map { "node \($0)  " } ?? ""
            print("\(report.id)  \(place)\(report.name): \(report.line)")
        }
    }

    private func end(_ id: String) throws {
        let text = try send(id, "stop")
        if json { return print(text, terminator: "") }
        let report: RecordingReport = try decodeJSON(text)
        guard report.wasOver == true else { return print("stopped \(id)") }
        let time = report.ended.map {
            " at " + Date(timeIntervalSince1970: Double($0)).formatted(.iso8601)
        }
        print("\(id) had already finished\(time ?? ""): \(report.line)")
    }

    private func change(_ id: String, _ verb: String, _ done: String) throws {
        let text = try send(id, verb)
        print(json ? text : "\(done) \(id)\n", terminator: "")
    }

    private func send(_ id: String, _ verb: String) throws -> String {
        try client.send("POST", "/api/recordings/\(id)/\(verb)")
    }

    private struct Page: Decodable {
        let recordings: [RecordingReport]
    }
}

/// A recording in the API's form.
private struct RecordingReport: Decodable {
    let id: String
    let name: String
    let state: String
    let reason: String
    /// Seconds since 1970.
    let ended: Int64?
    let wasOver: Bool?
    let seconds: Double
    let segments: Int
    let lost: Int
    let bytes: Int64
    /// Nil if another daemon has it.
    let play: String?
    /// The daemon that holds it; nil without a shared store.
    let node: String?

    var isOver: Bool { state == "done" || state == "failed" }

    /// The URL that plays it; nil if that is another daemon's.
    ///
    /// `play` begins with the base path of the daemon, which a proxy in front removes. A base URL with
    /// a path is that proxy's; of one without a path, only the path at the proxy is known.
    func link(at base: String) -> String? {
        guard let play else { return nil }
        // At the daemon itself: `/p/<handle>/<name>`.
        let parts = play.split(separator: "/", omittingEmptySubsequences: false).suffix(3)
        let own = "/" + parts.joined(separator: "/")
        let hasPath = base.split(separator: "/").count > 2
        guard own != play, !hasPath else { return base + own }
        return "\(play) at the proxy in front of the daemon"
    }

    /// The state as text: state, length, segments, size, losses, and the reason.
    var line: String {
        var text =
            "\(state)  \(OutputFormat.length(seconds)), \(segments) segments, \(OutputFormat.size(bytes))"
        if lost > 0 { text += ", \(lost) lost" }
        return reason.isEmpty ? text : text + ": " + reason
    }
}
