// What the origin of a soak has: films, live streams, items of feeds, and resources that change.
import FixtureCDN
import Glibc
import ScenarioSupport
import Synchronization

/// The content of a soak's origin; every byte follows from a name.
final class SoakCatalogue: Sendable {
    /// A list of segments, in order.
    struct Title: Sendable {
        let path: String
        let segments: [String]
    }

    struct Live: Sendable {
        let path: String
        let segments: [String]
        let window: LiveWindow
    }

    private struct Version {
        let body: [UInt8]
        /// When it was replaced; nil while it is the present one.
        var end: ContinuousClock.Instant?
    }

    let films: [Title]
    let shorts: [Title]
    /// Titles for downloads, which are taken in turn.
    let downloads: [Title]
    let streams: [Live]
    private let cdn: FixtureCDN
    private let versions: Mutex<[[Version]]>

    static let liveBytes = 60_000
    /// Seconds for which a changing resource is fresh.
    static let lifetime = 2
    static let changing = 4

    init(_ cdn: FixtureCDN) {
        self.cdn = cdn
        versions = Mutex([[Version]](repeating: [], count: Self.changing))
        films = (0..<12).map { film in
            Self.title(
                cdn, "film\(film)", (0..<24).map { 40_000 + (film * 7 + $0 * 13) % 30 * 9_000 })
        }
        shorts = (0..<30).map {
            Self.title(cdn, "short\($0)", [Int](repeating: 50_000, count: 4))
        }
        downloads = (0..<40).map {
            Self.title(cdn, "download\($0)", [Int](repeating: 60_000, count: 12))
        }
        streams = (0..<2).map { stream in
            // After this many segments the list begins anew, behind a discontinuity.
            let segments = (0..<500).map { segment("live\(stream)-\($0)", Self.liveBytes) }
            let window = LiveWindow(
                segments: segments.map { .init(uri: $0, duration: 2) }, targetDuration: 2,
                windowSize: 6, drive: .clock)
            let path = "/live\(stream).m3u8"
            return Live(path: path, segments: segments, window: cdn.live(path, window))
        }
        for number in 0..<Self.changing { change(number) }
    }

    private static func title(_ cdn: FixtureCDN, _ name: String, _ sizes: [Int]) -> Title {
        let segments = sizes.enumerated().map { segment("\(name)-\($0.offset)", $0.element) }
        cdn.put("/\(name).m3u8", text: vod(segments))
        return Title(path: "/\(name).m3u8", segments: segments)
    }

    // MARK: Resources that change

    static func path(ofChanging number: Int) -> String { "/mount/changing\(number)" }

    /// Gives a resource under the mount other bytes.
    func change(_ number: Int) {
        let path = Self.path(ofChanging: number)
        versions.withLock { versions in
            let count = versions[number].count
            let size = 3_000 + (count * 7_919 + number) % 20_000
            let body = FixtureCDN.syntheticBytes("\(path)-\(count)", 0..<size)
            // First what is right, then what is served.
            versions[number].append(Version(body: body))
            cdn.put(
                path, body, extraHeaders: [("Cache-Control", "max-age=\(Self.lifetime)")])
            if count > 0 { versions[number][count - 1].end = .now }
            // What was replaced long ago may not come any more.
            for old in versions[number].indices.dropLast(200) {
                versions[number][old] = Version(body: [], end: versions[number][old].end)
            }
        }
    }

    /// Seconds before `request` at which a body was replaced; 0 for one that was not, nil for bytes
    /// that the resource never had.
    func age(_ body: [UInt8], ofChanging number: Int, at request: ContinuousClock.Instant)
        -> Double?
    {
        versions.withLock { versions in
            guard let found = versions[number].last(where: { isSame($0.body, body) }) else {
                return nil
            }
            return found.end.map { max(0, (request - $0) / .seconds(1)) } ?? 0
        }
    }
}
