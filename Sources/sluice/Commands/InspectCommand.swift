import ArgumentParser
import CommandSupport
import HLS
import URISyntax

/// `sluice inspect`: the contents and violations of a playlist and of those that it names.
struct InspectCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "inspect",
        abstract:
            "Print a playlist and the playlists it references as a tree, with every violation of RFC 8216bis.",
        discussion: """
            Reads playlists only, no segments and no keys. Exit codes: 0 all read, and no MUST of the RFC is \
            violated; 1 the first playlist, or one that it names, could not be read; 2 a MUST is violated. With \
            --no-strict only the first playlist has to be read.
            """)

    @Argument(
        help:
            "A URL (http or https) or a file; headers may follow a URL as in Kodi, URL|Name=value&Name=value.",
        completion: .file())
    var target: String

    @OptionGroup var headers: OriginHeaders

    @Option(help: "Base URL of a playlist file; by default relative URIs are files in its folder.")
    var base: String?

    @Option(help: "Maximum number of playlists to read.")
    var limit = 100

    @Flag(help: "Print JSON.")
    var json = false

    @Flag(help: "Print every segment too.")
    var segments = false

    @Flag(
        name: .customLong("full-urls"),
        help: "Print complete URLs; by default query values are omitted.")
    var fullURLs = false

    @Flag(
        inversion: .prefixedNo,
        help:
            "Exit with 2 if a MUST of the RFC is violated, with 1 if a named playlist could not be read."
    )
    var strict = true

    func validate() throws {
        guard 1...10_000 ~= limit else { throw ValidationError("--limit is from 1 to 10000") }
        _ = try start()
    }

    func run() throws {
        let (url, loader) = try start()
        var tree = InspectTree(loader: loader, limit: limit)
        let root = tree.read(url)
        let isWhole = fullURLs
        let shown: (AbsoluteURL) -> String = { loader.name(isWhole ? $0.text : $0.redacted) }
        if json {
            print(try InspectJSON(shown: shown, listsSegments: segments).text(root))
        } else {
            var report = InspectReport(shown: shown, listsSegments: segments)
            report.add(root)
            print(report.lines.joined(separator: "\n"))
        }
        if tree.isCut { printError("sluice: only the first \(limit) playlists were read") }
        if case .failure = root.result { throw ExitCode.failure }
        guard strict else { return }
        if tree.mustCount > 0 { throw ExitCodes.violations }
        if root.children.contains(where: \.isUnread) { throw ExitCode.failure }
    }

    /// Returns the URL to start from, and the loader for URLs and files.
    private func start() throws -> (AbsoluteURL, InspectLoader) {
        if target.contains("://") {
            let given = try GivenURL(target)
            return (given.url, InspectLoader(fields: headers.lines + given.lines))
        }
        guard let file = InspectLoader.absolutePath(target) else {
            throw ValidationError(
                "'\(target)' is no file, and a URL begins with http:// or https://")
        }
        do throws(URIError) {
            if let base {
                let url = try AbsoluteURL(base)
                return (url, InspectLoader(fields: headers.lines, files: [url.text: file]))
            }
            let url = try InspectLoader.url(ofFile: file)
            return (url, InspectLoader(fields: headers.lines, readsFiles: true))
        } catch {
            let what = base == nil ? "the path of the file" : "--base"
            throw ValidationError("\(what) is not usable as a URL: \(error)")
        }
    }
}
