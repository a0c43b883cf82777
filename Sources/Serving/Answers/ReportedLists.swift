// Which list a rendition report means, where multivariant playlists give their lists a query.
import HLS
import Model
import URISyntax

/// The lists that the rendition reports of one list mean.
///
/// A multivariant playlist may give its lists a query, such as a token, that reports lack. Players
/// take such a report for a list whose URL begins with that of the report, but no link begins with
/// another. So a report gets the link of the list that it means: its own URL with the query of the
/// list that it stands in, provided that a multivariant playlist has named that.
struct ReportedLists {
    /// The most reports of a list that are looked up: each costs as much as the query is long.
    private static let mostReports = 64

    private let list: Resource
    private let memory: PlaylistMemory
    /// The query of the list, with its `?`; empty without one.
    private lazy var query: [UInt8] = {
        let url = list.listURL
        return url.queryRange.map { [0x3F] + Array(url.bytes[$0]) } ?? []
    }()
    private var lookups = 0

    init(in list: Resource, _ memory: PlaylistMemory) {
        self.list = list
        self.memory = memory
    }

    /// Returns the URL of the list that a report means; nil if that is the report's own.
    mutating func url(of report: ResourceReference) -> AbsoluteURL? {
        let named = report.url
        guard named.queryRange == nil, lookups < Self.mostReports else { return nil }
        lookups += 1
        guard !query.isEmpty, let url = try? AbsoluteURL(bytes: named.bytes + query),
            memory.parent(of: url, in: list.session.id) != nil
        else { return nil }
        return url
    }
}
