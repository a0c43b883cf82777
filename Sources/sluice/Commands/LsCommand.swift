import ArgumentParser
import CommandSupport
import HTTP
import Library
import Model
import Serving
import URISyntax

/// `sluice ls`: the stored titles.
struct LsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ls",
        abstract: "List stored titles, last played first.",
        discussion: """
            A title is everything that belongs to one entry URL. For each: its number, name and kind (vod, live, \
            file, or parts if the entry is not stored), the stored share, its size on the disk, when it was last \
            played, and whether it is pinned. Below it is a line for each variant stream and rendition of which \
            something is stored; a partly stored segment counts by its bytes. 100 % means that it plays to its end \
            without the network. Sizes are in powers of 1000.
            """)

    @Argument(
        help: ArgumentHelp(
            "Show one title with all its variants: its number, or its entry URL.",
            valueName: "title"))
    var title: String?

    @Flag(help: "Print the entry URL of each title, without query values.")
    var urls = false

    @Option(help: "Maximum number of titles, last played first.")
    var limit: Int?

    @Option(
        help: ArgumentHelp(
            "Print only titles whose name or URL contains this text, ignoring case.",
            valueName: "text"))
    var match: String?

    @Flag(help: "Print JSON; times in seconds since 1970, durations in seconds, sizes in bytes.")
    var json = false

    @OptionGroup var store: StoreOptions

    func validate() throws {
        if let limit, limit < 1 { throw ValidationError("--limit is at least 1") }
    }

    func run() throws {
        try store.withChannel { channel in
            if let title {
                let text = try channel.send(
                    .get, "/api/titles/\(PercentCoding.queryComponent(title))")
                if json { return print(text, terminator: "") }
                let line: TitleLine = try decodeJSON(text)
                return print(TitleTable([line], showsAll: true).text)
            }
            let pages = try readPages(channel)
            if json { return print(try merged(pages)) }
            let kept = try pages.flatMap { try (decodeJSON($0) as TitlePage).titles }
            let titles = Array(kept.filter(fits).prefix(limit ?? .max))
            guard !titles.isEmpty else {
                return print(kept.isEmpty ? "nothing is kept" : "no title fits")
            }
            print(TitleTable(titles, showsAll: false, showsURLs: urls).text)
        }
    }

    private func fits(_ title: TitleLine) -> Bool { fits([title.name, title.url ?? ""]) }

    private func fits(_ texts: [String]) -> Bool {
        guard let match else { return true }
        let wanted = match.lowercased()
        return texts.contains { $0.lowercased().contains(wanted) }
    }

    private func readPages(_ channel: AdminChannel) throws -> [String] {
        var pages: [String] = []
        var next: String?
        // With a filter, all titles must be read.
        var left = match == nil ? limit ?? .max : .max
        repeat {
            let after = next.map { "&after=\(PercentCoding.queryComponent($0))" } ?? ""
            let text = try channel.send(.get, "/api/titles?limit=\(min(200, left))\(after)")
            let page: TitlePage = try decodeJSON(text)
            pages.append(text)
            next = page.next
            left -= min(left, page.titles.count)
        } while next != nil && left > 0
        return pages
    }

    /// Returns the matching titles of all pages, as the daemon wrote them.
    private func merged(_ pages: [String]) throws -> String {
        let titles = try pages.flatMap { page -> [JSONValue] in
            try JSONValue(parsing: Array(page.utf8))["titles"]?.asList ?? []
        }
        let fitting = titles.filter { title in
            fits(["name", "url"].map { title[$0]?.asText ?? "" })
        }
        return JSONValue.object([.init("titles", .list(Array(fitting.prefix(limit ?? .max))))])
            .encoded
    }
}

/// A page of `/api/titles`.
struct TitlePage: Decodable {
    let titles: [TitleLine]
    let next: String?
}

/// A title in the API's form.
struct TitleLine: Decodable {
    struct Variant: Decodable {
        let kind: String
        let label: String
        let percent: Int
        let keptSeconds: Double
        let seconds: Double?
    }

    let id: String
    let name: String
    let url: String?
    let kind: String
    let pinned: Bool
    let percent: Int
    let keptSeconds: Double
    let seconds: Double?
    let bytes: Int64
    let sharedBytes: Int64
    let lastPlayed: Int64?
    let variants: [Variant]
    let encryption: EncryptionLine?
}

/// The encryption of a title whose keys cannot be stored, in the API's form.
struct EncryptionLine: Decodable {
    let text: String
}
