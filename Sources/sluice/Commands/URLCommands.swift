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

    @Option(
        help: ArgumentHelp(
            "A request header for the origin; may be given several times.", valueName: "Name: value"
        ))
    var header: [String] = []

    @Option(
        help: ArgumentHelp(
            "How far back a live stream can be watched, such as 90m or 2h; at most 24h.",
            valueName: "duration"))
    var dvr: String?

    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        if let dvr, WindowLength.seconds(dvr) == nil {
            throw ValidationError("--dvr is a length of time up to 24h, such as 90m, 2h or 3600")
        }
        let split = PlayerHeaders.split(Array(url.utf8))
        if let fault = split.flatMap({ PlayerHeaders.fault(of: $0.headers) }) {
            throw ValidationError(fault)
        }
        let headers = split?.headers ?? []
        let url = Self.encoded(split.map { String(decoding: $0.url, as: UTF8.self) } ?? url)
        do {
            _ = try AbsoluteURL(url)
        } catch {
            throw ValidationError("not usable: \(error)")
        }
        let base = daemon.base, token = daemon.token ?? DaemonOptions.environmentToken
        if header.isEmpty, headers.isEmpty, token == nil {
            print("\(base)/\(dvr.map { "dvr=\($0)/" } ?? "")\(url)")
            return
        }
        var query = "url=\(PercentCoding.queryComponent(url))"
        for line in header {
            let (name, value) = try HeaderArgument.entryItem(line)
            query += "&\(name)=\(PercentCoding.queryComponent(value))"
        }
        for header in headers {
            query += "&h_\(header.name)=\(PercentCoding.queryComponent(header.value))"
        }
        if let dvr { query += "&dvr=\(dvr)" }
        if let token { query += "&token=\(PercentCoding.queryComponent(token))" }
        print("\(base)/proxy?\(query)")
    }

    /// Returns the URL in a form for a request line: after the authority, blanks and other
    /// characters that URLs cannot contain are percent-encoded; escapes stay unchanged.
    private static func encoded(_ text: String) -> String {
        guard let start = text.firstRange(of: "://")?.upperBound,
            let path = text[start...].firstIndex(where: { "/?#".contains($0) })
        else { return text }
        var bytes = Array(text[..<path].utf8)
        for byte in text[path...].utf8 {
            // Not URI characters (RFC 3986 appendix A); brackets are common in queries and do work.
            if byte <= 0x20 || byte >= 0x7F || "\"<>\\^`{|}".utf8.contains(byte) {
                PercentCoding.append(byte, to: &bytes)
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}

struct DecodeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "decode", abstract: "Print the origin URL behind each of our URLs.",
        discussion: """
            Without arguments, URLs are read from standard input, one a line. The URL of a segment of
            a live playlist tells the origin's in its query.
            """)

    @Argument(help: "URLs of the daemon, or their paths.")
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
