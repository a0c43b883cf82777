// A virtual viewer of a feed: swipes by a pattern, plays each item through a daemon, and counts how
// often a loading indicator would have been shown.
import CommandSupport
import Glibc
import Posix

/// One viewer with one feed on one daemon.
final class FeedViewer {
    /// Bytes of the first segment needed to show a picture.
    static let firstFrame = 60_000

    private let daemon: AdminClient
    private let titles: [String]
    /// Times are divided by this factor; the link must be faster by the same factor.
    private let speed: Double
    /// Seconds, before division by `speed`, after which a loader is shown.
    private let patience: Double
    /// Whether to record before each swipe what the daemon has of the item.
    var isVerbose = false
    private var given: [String: Int] = [:]

    init(_ base: String, titles: [String], speed: Double, patience: Double) {
        daemon = AdminClient(base: base, token: nil)
        self.titles = titles
        self.speed = speed
        self.patience = patience
    }

    /// Registers the feed and performs the visits; blocks.
    func run(
        _ scheme: FeedScheme, _ visits: [ViewerPattern.Visit]
    ) throws -> ViewerFigures {
        let entries = titles.map { "\"\($0)\"" }.joined(separator: ",")
        let order = "{\"entries\":[\(entries)],\(scheme.json)}"
        guard case .answered = daemon.ask("PUT", "/api/feeds/bench", sending: Array(order.utf8))
        else { throw commandFailure("the daemon does not take the feed") }
        var figures = ViewerFigures()
        for visit in visits {
            let before = isVerbose ? account(of: visit.item) : ""
            let start = Monotonic.now()
            let swipe = "/api/feeds/bench/position?index=\(visit.item)"
            guard case .answered = daemon.ask("POST", swipe) else {
                throw commandFailure("the daemon does not take the position")
            }
            figures.swipes.append(Monotonic.now().seconds(since: start))
            let loaders = figures.loaders
            watch(titles[visit.item], for: visit.seconds / speed, &figures)
            if figures.loaders > loaders { figures.reasons.append(before) }
            let left = visit.seconds / speed - Monotonic.now().seconds(since: start)
            if left > 0 { usleep(UInt32(left * 1e6)) }
        }
        figures.played = given.values.reduce(0) { $0 + Int64($1) }
        return figures
    }

    /// What the daemon reports about an item.
    private func account(of item: Int) -> String {
        guard case .answered(let text) = daemon.ask("GET", "/api/feeds/bench"),
            let start = text.firstRange(of: "{\"index\":\(item),\"rank\"")
        else { return "item \(item): not in the window" }
        return "item \(item): " + text[start.lowerBound...].prefix { $0 != "}" } + "}"
    }

    // MARK: One item

    /// The time a viewer spends on an item.
    private struct Stay {
        let start: Monotonic
        let end: Monotonic
        /// Reused for all requests, as players do.
        let connection = BenchConnection()

        var isOn: Bool { Monotonic.now() < end }
    }

    private func watch(_ title: String, for seconds: Double, _ figures: inout ViewerFigures) {
        let start = Monotonic.now()
        let stay = Stay(start: start, end: start + Interval(nanoseconds: Int64(seconds * 1e9)))
        figures.visits += 1
        let first = figures.startUps.count
        if let list = media(title, stay) {
            play(list, stay, &figures)
        } else if stay.isOn {
            figures.broken += 1
        }
        // Left before there was a picture: counts as a loader if the stay was longer than the
        // patience.
        let waited = figures.startUps.count > first ? figures.startUps[first] : seconds * speed
        if waited > patience { figures.loaders += 1 }
    }

    private func play(_ list: [Segment], _ stay: Stay, _ figures: inout ViewerFigures) {
        var shownSince: Monotonic?
        var loaded = 0.0
        var stalled = 0.0
        for segment in list {
            // Players buffer eight seconds.
            while let shownSince, stay.isOn,
                loaded - (Monotonic.now().seconds(since: shownSince) - stalled) > 8 / speed
            {
                usleep(2_000)
            }
            guard stay.isOn else { return }
            let fetch = get(segment.url, enough: Self.firstFrame, stay)
            if fetch == nil, stay.isOn { figures.broken += 1 }
            if let shownSince {
                let late = Monotonic.now().seconds(since: shownSince) - stalled - loaded
                if fetch != nil, stay.isOn, late * speed > 0.05 {
                    figures.stalls += 1
                    stalled += late
                }
            } else {
                guard let at = fetch?.enoughAt else { return }
                shownSince = at
                figures.startUps.append(at.seconds(since: stay.start) * speed)
            }
            loaded += segment.seconds / speed
        }
    }

    private struct Segment {
        let url: String
        let seconds: Double
    }

    /// Fetches a title's playlists and initialization section as players do; returns its segments.
    private func media(_ title: String, _ stay: Stay) -> [Segment]? {
        guard let master = get("/" + title, stay),
            let path = Self.lines(master).first(where: { !$0.hasPrefix("#") }),
            let list = get(String(path), stay)
        else { return nil }
        var found: [Segment] = []
        var seconds = 0.0
        for line in Self.lines(list) {
            if line.hasPrefix("#EXTINF:") {
                seconds = Double(line.dropFirst(8).prefix { $0 != "," }) ?? 0
            } else if line.hasPrefix("#EXT-X-MAP:") {
                let parts = line.split(separator: "\"", omittingEmptySubsequences: false)
                guard parts.count >= 3, get(String(parts[1]), stay) != nil else { return nil }
            } else if !line.hasPrefix("#"), !line.isEmpty {
                found.append(Segment(url: String(line), seconds: seconds))
            }
        }
        return found.isEmpty ? nil : found
    }

    private static func lines(_ fetch: BenchFetch) -> [Substring] {
        String(decoding: fetch.body, as: UTF8.self).split(separator: "\n")
    }

    private func get(_ path: String, enough: Int = .max, _ stay: Stay) -> BenchFetch? {
        let fetch = stay.connection.get(
            daemon.base + path, enough: enough, until: stay.end, isWanted: { stay.isOn })
        guard let fetch else { return nil }
        given[path] = max(given[path] ?? 0, fetch.bytes)
        return fetch
    }
}
