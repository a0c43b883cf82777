import CommandSupport
import ArgumentParser
import HTTP
import Routing
import URISyntax

/// `sluice url` and `sluice decode`: convert between URLs of origins and of the daemon, without a
/// daemon.
struct URLCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "url", abstract: "Print the URL that plays a URL through the daemon.")

    @Argument(
        help:
            "The URL of a playlist or media file: http or https; headers may follow as in Kodi, URL|Name=value&Name=value."
    )
    var url: String

    @OptionGroup var headers: OriginHeaders

    @Option(
        help: ArgumentHelp(
            "Length of the time-shift window, such as 90m or 2h; at most 24h.",
            valueName: "duration"))
    var dvr: String?

    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        if let dvr, WindowLength.seconds(dvr) == nil {
            throw ValidationError("--dvr is a length of time up to 24h, such as 90m, 2h or 3600")
        }
        let given = try GivenURL(url, fields: headers.fields())
        let url = given.text
        let base = daemon.base, token = daemon.token ?? DaemonOptions.environmentToken
        if given.headers.isEmpty, token == nil {
            print("\(base)/\(dvr.map { "dvr=\($0)/" } ?? "")\(url)")
        } else {
            print(given.entry(at: base, dvr: dvr, token: token))
        }
    }
}

struct DecodeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "decode",
        abstract: "Print the origin's URL of each link that the daemon wrote.",
        discussion: """
            Without arguments, URLs are read from standard input, one a line. The URL of a segment of
            a live playlist tells the origin's in its query.
            """)

    @Argument(help: "Links of the daemon, or their paths.")
    var urls: [String] = []

    func run() throws {
        var isGood = true
        if urls.isEmpty {
            while let line = readLine() {
                if !line.isEmpty { isGood = decode(line) && isGood }
            }
        } else {
            for url in urls { isGood = decode(url) && isGood }
        }
        if !isGood { throw ExitCode.failure }
    }

    private func decode(_ text: String) -> Bool {
        let target =
            (try? AbsoluteURL(text))?.pathAndQuery ?? (text.hasPrefix("/") ? text : "/" + text)
        switch Router(mounts: []).route(RequestHead(method: .get, target: target)) {
        case .entry(let entry):
            print(entry.url.text)
            return true
        case .rewritten(let link):
            guard let handle = link.unchecked else { break }
            switch handle.target {
            case .url(let url):
                print(url.text)
                return true
            case .name:
                printError(
                    "a long URL's short form: only the daemon knows what it stands for: \(target)")
                return false
            case .list:
                let place = link.place.map { "\($0)" } ?? "something"
                printError(
                    "\(place) of a live playlist; only the query, which is missing, tells its URL: "
                        + target)
                return false
            }
        default: break
        }
        printError("not a URL of ours: \(text)")
        return false
    }
}
