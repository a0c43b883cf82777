import ArgumentParser
import CommandSupport
import HLS
import HTTP
import Model
import Numbers
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

    @Option(
        help: ArgumentHelp(
            "The largest height of the variants that the player is offered, such as 720.",
            valueName: "pixels"))
    var height: String?

    @Option(
        help: ArgumentHelp(
            "The largest BANDWIDTH of the variants that the player is offered, such as 2500000.",
            valueName: "bits-per-second"))
    var bandwidth: String?

    @OptionGroup var daemon: DaemonOptions

    func validate() throws {
        if let dvr, WindowLength.seconds(dvr) == nil {
            throw ValidationError("--dvr is a duration up to 24h, such as 90m, 2h or 3600")
        }
        for (name, value) in [("height", height), ("bandwidth", bandwidth)] {
            guard let value, VariantLimit.number(value) == nil else { continue }
            throw ValidationError("--\(name) is a whole number from 1 to 2147483648")
        }
        _ = try given
    }

    /// The origin's URL; of one that leads through a daemon already, the one in it.
    private var given: GivenURL {
        get throws {
            let given = try GivenURL(url, fields: headers.fields())
            return try given.behindDaemon(at: daemon.base) ?? given
        }
    }

    func run() throws {
        let given = try given
        let url = given.text
        let base = daemon.base, token = daemon.access.givenToken
        let arguments = arguments(besides: given)
        if given.headers.isEmpty, token == nil {
            print("\(base)/\(arguments.map { "\($0.name)=\($0.value)/" }.joined())\(url)")
        } else {
            print(given.entry(at: base, arguments, token: token))
        }
    }

    /// The arguments of the entry: those given as options, and for the others what the URL had.
    private func arguments(besides given: GivenURL) -> [(name: String, value: String)] {
        var limit = given.limit
        if let height { limit.height = VariantLimit.number(height) }
        if let bandwidth { limit.bandwidth = VariantLimit.number(bandwidth) }
        var arguments: [(name: String, value: String)] = []
        if let window = dvr ?? given.window.map({ WindowLength.text($0) }) {
            arguments.append((name: "dvr", value: window))
        }
        for (name, value) in limit.arguments {
            arguments.append((name: name, value: "\(value)"))
        }
        return arguments
    }
}

struct DecodeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "decode",
        abstract: "Print the origin's URL of each link that the daemon wrote.",
        discussion: """
            Without arguments, URLs are read from standard input, one per line. The URL of a segment of \
            a live playlist contains the origin's in its query.

            With --cluster-key, the properties that a link of a cluster carries of its session are \
            printed below it, one per line, without secrets.
            """)

    @Argument(help: "Links of the daemon, or their paths.")
    var urls: [String] = []

    @Option(
        help: ArgumentHelp(
            "The nodes' file of keys, to show what a link carries of its session.",
            valueName: "FILE"),
        completion: .file())
    var clusterKey: String?

    func run() throws {
        var sealer: SessionSealer?
        if let clusterKey {
            do throws(ClusterKeyFile.Fault) {
                let keys = try ClusterKeyFile(path: clusterKey).keys
                sealer = SessionSealer(keys: keys, token: nil)
            } catch {
                throw commandFailure("\(error)")
            }
        }
        func decode(_ text: String) -> Bool { self.decode(text, sealer) }
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

    private func decode(_ text: String, _ sealer: SessionSealer?) -> Bool {
        let target =
            (try? AbsoluteURL(text))?.pathAndQuery ?? (text.hasPrefix("/") ? text : "/" + text)
        // Players have links of a proxy in front with its base path, which is not known here.
        for target in Router.targets(of: target) {
            if let isGood = decode(target: target, sealer) { return isGood }
        }
        printError("sluice: not a link of this daemon: \(text)")
        return false
    }

    /// Decodes what a request without a base path asks for; nil if that is no link.
    private func decode(target: String, _ sealer: SessionSealer?) -> Bool? {
        switch Router(mounts: []).route(RequestHead(method: .get, target: target)) {
        case .entry(let entry):
            print(entry.url.text)
            return true
        case .rewritten(let link):
            guard let handle = link.unchecked else { break }
            if let url = link.uncheckedURL {
                print(url.text)
                return show(link, handle.session, sealer)
            }
            switch handle.target {
            case .url, .packed: break
            case .name:
                printError(
                    "sluice: a long URL's short form, and only its daemon knows what it stands for: \(target)"
                )
                return false
            case .list:
                let place = link.place.map { "\($0)" } ?? "something"
                printError(
                    "sluice: \(place) of a live playlist, whose URL is in the query; give the link with its query: "
                        + target)
                return false
            }
        default: break
        }
        return nil
    }

    /// Prints what a link carries of its session; returns false if that cannot be opened.
    private func show(
        _ link: RewrittenLink, _ session: SessionID, _ sealer: SessionSealer?
    ) -> Bool {
        guard let sealer, let text = link.sealed else { return true }
        do throws(SealFault) {
            let (content, seal) = try sealer.open(text, of: session)
            print("  key: \(String(UInt64(seal.keyID), radix: 16, width: 8))")
            if let window = content.window { print("  dvr: \(window)s") }
            for (name, value) in content.limit.arguments { print("  \(name): \(value)") }
            for (name, value) in content.fields {
                print("  \(name): \(Self.isPublic(name) ? value : "***")")
            }
            for name in content.variables.keys.sorted() { print("  variable \(name): ***") }
            return true
        } catch {
            switch error {
            case .malformed:
                printError("sluice: the link's sealed session cannot be read; is the link whole?")
            case .unknownKey(let name):
                printError("sluice: the link is sealed with the key \(name), which the file lacks")
            case .forged:
                printError("sluice: the link's sealed session is of another link, or forged")
            }
            return false
        }
    }

    /// True for headers that tell nothing of a viewer.
    private static func isPublic(_ name: String) -> Bool {
        ["user-agent", "accept", "accept-language", "origin"].contains(ASCII.lowercased(name))
    }
}
