// The content of the simulated CDN: films and live streams; every byte is a function of a name, a
// version and an offset.

/// A file of the CDN.
final class OriginFile {
    enum Validator { case strong, weak, date, none }

    struct Version {
        let number: Int
        let size: Int
        let since: Int64
    }

    let path: String
    private(set) var versions: [Version]
    var validator: Validator
    var hasRanges: Bool
    var isChunked: Bool
    var cacheControl: String?
    /// The number of bytes that were sent.
    var bytesSent = 0
    var seen: [SeenRequest] = []
    /// Nil for a file whose only faults are those of the weather.
    var script: ScriptedOrigin?

    init(
        _ path: String, size: Int, validator: Validator = .strong, hasRanges: Bool = true,
        isChunked: Bool = false, control: String? = nil
    ) {
        self.path = path
        versions = [Version(number: 1, size: size, since: 0)]
        self.validator = validator
        self.hasRanges = hasRanges
        self.isChunked = isChunked
        cacheControl = control
    }

    var current: Version { versions[versions.count - 1] }

    func change(to size: Int, at now: Int64) {
        versions.append(Version(number: current.number + 1, size: size, since: now))
    }

    func tag(_ version: Version) -> String? {
        if let tag = script?.tag { return tag }
        return switch validator {
        case .strong: "\"\(path)#\(version.number)\""
        case .weak: "W/\"\(path)#\(version.number)\""
        case .date, .none: nil
        }
    }

    /// The bytes of a range of a version.
    func bytes(_ range: Range<Int>, of version: Version) -> [UInt8] {
        let seed = Seeded.hash(path) ^ UInt64(version.number) &* 0x9E37_79B9_7F4A_7C15
        var made: [UInt8] = []
        made.reserveCapacity(range.count)
        var offset = range.lowerBound
        while offset < range.upperBound {
            let word = Seeded.mixed(seed &+ UInt64(offset / 8))
            let end = min(range.upperBound, (offset / 8 + 1) * 8)
            for place in offset..<end {
                made.append(UInt8(truncatingIfNeeded: word >> UInt64(8 * (place % 8))))
            }
            offset = end
        }
        // The sync byte of MPEG-TS; the rest must not look like any other format.
        if range.contains(0), let first = made.indices.first { made[first] = 0x47 }
        return made
    }
}

/// A film: a multivariant playlist over variants with segments of four seconds.
struct Film {
    let name: String
    let variants: Int
    let segments: Int

    var master: String { "/\(name)/master.m3u8" }

    func list(_ variant: Int) -> String { "/\(name)/v\(variant)/list.m3u8" }

    func segment(_ variant: Int, _ number: Int) -> String { "/\(name)/v\(variant)/s\(number).ts" }

    func text(_ path: String) -> String? {
        if path == master {
            let lines = (0..<variants).map {
                "#EXT-X-STREAM-INF:BANDWIDTH=\(400_000 * ($0 + 1))\nv\($0)/list.m3u8\n"
            }
            return "#EXTM3U\n" + lines.joined()
        }
        for variant in 0..<variants where path == list(variant) {
            let lines = (0..<segments).map {
                "#EXTINF:4,\(segment(variant, $0))\ns\($0).ts\n"
            }
            return
                "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-PLAYLIST-TYPE:VOD\n#EXT-X-MEDIA-SEQUENCE:0\n"
                + lines.joined() + "#EXT-X-ENDLIST\n"
        }
        return nil
    }
}

/// A live stream: a window of segments of four seconds that moves with the world's time.
final class LiveStream {
    let name: String
    let window: Int
    /// Whether the encoder reuses segment names after a restart.
    let reusesNames: Bool
    /// Whether the CDN answers requests for the playlist with an error.
    var isFailing = false
    /// The Cache-Control of its playlists.
    var control = "max-age=1"
    /// The first media sequence number.
    private let first: Int
    /// Added to numbers after a restart of the encoder.
    private(set) var epoch = 0
    private var began: Int64 = 0
    /// The time at which the playlist was frozen; nil while it advances.
    private var frozenAt: Int64?
    /// The time in which it was frozen last: its playlists of then do not become newer afterwards.
    private var formerlyFrozen: Range<Int64>?

    static let target: Int64 = 4 * World.second

    init(name: String, window: Int, first: Int, reusesNames: Bool = false) {
        self.reusesNames = reusesNames
        self.name = name
        self.window = window
        self.first = first
    }

    var list: String { "/\(name)/live.m3u8" }

    func freeze(at now: Int64) { frozenAt = frozenAt ?? now }

    func thaw(at now: Int64) {
        formerlyFrozen = frozenAt.map { $0..<max($0, now) } ?? formerlyFrozen
        frozenAt = nil
    }

    /// Restarts the encoder: numbers start again, under new names unless `reusesNames`.
    func restart(at now: Int64) {
        epoch += 1
        began = now
        (frozenAt, formerlyFrozen) = (nil, nil)
    }

    /// The number of the newest complete segment in the playlist that the CDN had at a time.
    func last(at time: Int64) -> Int {
        var shown = frozenAt.map { min($0, time) } ?? time
        if let formerlyFrozen, formerlyFrozen.contains(time) { shown = formerlyFrozen.lowerBound }
        return first + window - 1 + Int((shown - began) / Self.target)
    }

    func segment(_ number: Int) -> String { "/\(name)/\(fileName(number))" }

    private func fileName(_ number: Int) -> String { "e\(reusesNames ? 0 : epoch)-\(number).ts" }

    func text(at now: Int64) -> String {
        let last = last(at: now)
        let lines = (last - window + 1...last).map {
            "#EXTINF:4,\(segment($0))\n\(fileName($0))\n"
        }
        return
            "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-MEDIA-SEQUENCE:\(last - window + 1)\n"
            + lines.joined()
    }
}
