/// A virtual viewer of a feed: swipes by a pattern, plays each item through a daemon, and notes how
/// often a loader would have been seen.
import Glibc
import Posix
import Reactor
import Synchronization

/// How a viewer moves.
enum ViewerPattern: String, CaseIterable {
    /// Three seconds each.
    case fixed
    /// Half a second to six.
    case random
    /// Most items for less than a second, every fifth for four.
    case flick
    /// Two on and one back, two seconds each.
    case backforth

    /// The visits of one run: which item, and for how many seconds; the same for the same seed.
    func visits(_ count: Int, items: Int, seed: UInt64) -> [(item: Int, seconds: Double)] {
        var random = seed &* 0x9E37_79B9_7F4A_7C15 | 1
        func unit() -> Double {
            random = random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Double(random >> 11) / Double(1 << 53)
        }
        var item = 0
        return (0..<count).map { step in
            let place = min(items - 1, max(0, item))
            switch self {
            case .fixed:
                item += 1
                return (place, 3)
            case .random:
                item += 1
                return (place, 0.5 + unit() * 5.5)
            case .flick:
                item += 1
                return (place, step % 5 == 4 ? 4 : 0.3 + unit() * 0.6)
            case .backforth:
                item += step % 3 == 2 ? -1 : 1
                return (place, 2)
            }
        }
    }
}

/// What a run of visits was like.
struct ViewerFigures {
    var visits = 0
    /// Items whose first frame was not there in time.
    var loaders = 0
    /// Seconds to the first frame, of the visits that lasted so long.
    var startUps: [Double] = []
    var stalls = 0
    /// The longest answer to a swipe, in seconds.
    var slowestSwipe = 0.0
    /// Bytes that the player was given, each once however often it was played.
    var played: Int64 = 0
    var broken = 0
}

/// One viewer with one feed on one daemon.
final class FeedViewer {
    /// Bytes of the first segment after which a picture can be shown.
    static let firstFrame = 60_000

    private let daemon: AdminClient
    private let titles: [String]
    /// Times are divided by this; the link has to be faster by as much.
    private let speed: Double
    /// Seconds, before `speed`, after which a loader is shown.
    private let patience: Double
    private var given: [String: Int] = [:]

    init(_ base: String, titles: [String], speed: Double, patience: Double) {
        daemon = AdminClient(base: base, token: nil)
        self.titles = titles
        self.speed = speed
        self.patience = patience
    }

    /// Makes the feed and goes through the visits; blocks.
    func run(
        scheme: String, parameters: String, visits: [(item: Int, seconds: Double)]
    ) throws -> ViewerFigures {
        let entries = titles.map { "\"\($0)\"" }.joined(separator: ",")
        let extra = parameters.isEmpty ? "" : ",\"parameters\":{\(parameters)}"
        let order = "{\"entries\":[\(entries)],\"scheme\":\"\(scheme)\"\(extra)}"
        guard case .answered = daemon.ask("PUT", "/api/feeds/bench", sending: Array(order.utf8))
        else { throw BenchFault.end("the daemon does not take the feed") }
        var figures = ViewerFigures()
        for visit in visits {
            let start = Monotonic.now()
            let swipe = "/api/feeds/bench/position?index=\(visit.item)"
            guard case .answered = daemon.ask("POST", swipe) else {
                throw BenchFault.end("the daemon does not take the position")
            }
            figures.slowestSwipe = max(figures.slowestSwipe, Monotonic.now().seconds(since: start))
            try watch(titles[visit.item], for: visit.seconds / speed, &figures)
            let left = visit.seconds / speed - Monotonic.now().seconds(since: start)
            if left > 0 { usleep(UInt32(left * 1e6)) }
        }
        figures.played = given.values.reduce(0) { $0 + Int64($1) }
        return figures
    }

    // MARK: One item

    private func watch(
        _ title: String, for seconds: Double, _ figures: inout ViewerFigures
    ) throws {
        let start = Monotonic.now()
        let isWanted = { Monotonic.now().seconds(since: start) < seconds }
        figures.visits += 1
        guard let list = media(title, isWanted) else {
            if isWanted() { figures.broken += 1 }
            figures.loaders += 1
            return
        }
        var shownSince: Monotonic?
        var loaded = 0.0
        var stalled = 0.0
        for segment in list {
            // Eight seconds ahead, as players keep.
            while let shownSince, isWanted(),
                loaded - (Monotonic.now().seconds(since: shownSince) - stalled) > 8 / speed
            {
                usleep(2_000)
            }
            guard isWanted() else { break }
            let fetch = get(segment.url, enough: Self.firstFrame, isWanted)
            if shownSince == nil {
                guard let at = fetch?.enoughAt else { break }
                shownSince = at
                let waited = at.seconds(since: start)
                figures.startUps.append(waited * speed)
                if waited * speed > patience { figures.loaders += 1 }
            } else if let since = shownSince, fetch != nil, isWanted() {
                let late = Monotonic.now().seconds(since: since) - stalled - loaded
                if late * speed > 0.05 {
                    figures.stalls += 1
                    stalled += late
                }
            }
            if fetch == nil, isWanted() { figures.broken += 1 }
            loaded += segment.seconds / speed
        }
        // Gone before there was a picture: a loader, if it was there long enough to show one.
        if shownSince == nil, seconds * speed > patience { figures.loaders += 1 }
    }

    /// The segments of a title, its lists and its section fetched as players do.
    private func media(
        _ title: String, _ isWanted: @escaping () -> Bool
    ) -> [(url: String, seconds: Double)]? {
        guard let master = get("/" + title, isWanted),
            let path = BenchPlayer.lines(master.body).first(where: { !$0.hasPrefix("#") }),
            let list = get(String(path), isWanted)
        else { return nil }
        var found: [(url: String, seconds: Double)] = []
        var seconds = 0.0
        for line in BenchPlayer.lines(list.body) {
            if line.hasPrefix("#EXTINF:") {
                seconds = Double(line.dropFirst(8).prefix { $0 != "," }) ?? 0
            } else if line.hasPrefix("#EXT-X-MAP:"), let path = BenchPlayer.quoted(line) {
                guard get(path, isWanted) != nil else { return nil }
            } else if !line.hasPrefix("#"), !line.isEmpty {
                found.append((String(line), seconds))
            }
        }
        return found.isEmpty ? nil : found
    }

    private func get(
        _ path: String, enough: Int = .max, _ isWanted: @escaping () -> Bool
    ) -> BenchFetch? {
        guard let fetch = BenchFetch.get(daemon.base + path, enough: enough, isWanted: isWanted)
        else { return nil }
        given[path] = max(given[path] ?? 0, fetch.bytes)
        return fetch
    }
}
