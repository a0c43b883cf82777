// A film with keys, initialization sections and byte ranges, spread over two hosts.

/// A film with video (encrypted transport stream) and audio (fragmented MP4, ranges of one file).
final class ProtectedFilm: Region {
    let name: String
    let segments: Int
    /// The status with which playlists are redirected; nil if they are not.
    private let moved: Int?
    private var files: [String: OriginFile] = [:]
    private let sizes: [Int]

    /// The second host.
    static let address: UInt32 = 0x0A01_0002
    static let base = "http://10.1.0.2"

    init(name: String, segments: Int, moved: Int?) {
        self.name = name
        self.segments = segments
        self.moved = moved
        var own = Seeded(Seeded.hash(name))
        // The first is the initialization section.
        sizes = (0...segments).map {
            $0 == 0 ? own.number(300...1_200) : own.number(1_000...60_000)
        }
    }

    var master: String { "/\(name)/master.m3u8" }

    /// The byte range of an audio segment; 0 is the initialization section.
    private func range(_ index: Int) -> Range<Int> {
        let begin = sizes.prefix(index).reduce(0, +)
        return begin..<begin + sizes[index]
    }

    private func text(_ path: String) -> String? {
        switch path {
        case master:
            return
                "#EXTM3U\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"one\",DEFAULT=YES,URI=\"a/list.m3u8\"\n"
                + "#EXT-X-STREAM-INF:BANDWIDTH=400000,AUDIO=\"a\"\nv/list.m3u8\n"
        case "/\(name)/v/list.m3u8":
            var text =
                "#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:4\n#EXT-X-PLAYLIST-TYPE:VOD\n"
            for number in 0..<segments {
                if number % 3 == 0 {
                    text += "#EXT-X-KEY:METHOD=AES-128,URI=\"../key/k\(number / 3).bin\"\n"
                }
                text += "#EXTINF:4,/\(name)/v/s\(number).ts\ns\(number).ts\n"
            }
            return text + "#EXT-X-ENDLIST\n"
        case "/\(name)/a/list.m3u8":
            var text =
                "#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:4\n#EXT-X-PLAYLIST-TYPE:VOD\n"
            text += "#EXT-X-MAP:URI=\"all.mp4\",BYTERANGE=\"\(sizes[0])@0\"\n"
            for number in 1...segments {
                let range = range(number)
                // A byte range may omit its offset if it follows the previous one.
                let place = number % 2 == 1 ? "@\(range.lowerBound)" : ""
                text += "#EXTINF:4,/\(name)/a/all.mp4#\(range.lowerBound)\n"
                text += "#EXT-X-BYTERANGE:\(range.count)\(place)\nall.mp4\n"
            }
            return text + "#EXT-X-ENDLIST\n"
        default: return nil
        }
    }

    func file(_ path: String) -> OriginFile? {
        guard path.hasPrefix("/\(name)/") else { return nil }
        if let known = files[path] { return known }
        var own = Seeded(Seeded.hash(path))
        let size: Int
        if path.hasSuffix(".bin") {
            size = 16
        } else if path.hasSuffix(".mp4") {
            size = range(segments).upperBound
        } else if path.hasSuffix(".ts") {
            size = own.number(1...60_000)
        } else {
            return nil
        }
        let made = OriginFile(
            path, size: size, validator: own.pick([.strong, .date, .weak, .none]),
            hasRanges: size == 16 || path.hasSuffix(".mp4") || own.chance(80),
            isChunked: own.chance(15),
            control: own.pick([nil, "max-age=3600", "max-age=5", "no-cache"]))
        files[path] = made
        return made
    }

    func answer(_ head: OriginRequest, _ cdn: SimulatedCDN) -> OriginAnswer? {
        let path = head.pathOnly
        let isOther = head.fields["host"] == "10.1.0.2"
        if let text = text(path) {
            if let moved, !isOther, path != master { return redirect(moved, Self.base + path, cdn) }
            return .list(after: cdn.latency, rate: cdn.weather.rate, control: "max-age=60") { text }
        }
        guard let file = file(path) else { return nil }
        // Every third segment is on the second host.
        if let moved, Seeded.hash(path) % 3 == 0 {
            let target = isOther ? SimulatedCDN.base : Self.base
            if head.argument("moved") == nil {
                return redirect(moved, "\(target)\(path)?moved=1", cdn)
            }
        }
        return cdn.answer(file, head)
    }

    private func redirect(_ status: Int, _ target: String, _ cdn: SimulatedCDN) -> OriginAnswer {
        var answer = OriginAnswer(status: status)
        answer.fields = [("Location", target)]
        answer.delay = cdn.latency
        return answer
    }
}

/// The resources named by a playlist of such a film, in line order.
struct ResourceList {
    struct Resource {
        let path: String
        let url: String
        let range: Range<Int>?
    }

    private(set) var resources: [Resource] = []
    private(set) var segments = 0

    init(_ body: [UInt8], film: String) {
        var (title, keys) = ("", 0)
        var range: Range<Int>?
        var end = 0
        func read(_ text: Substring) -> Range<Int> {
            let words = text.split(separator: "@").compactMap { Int($0) }
            let begin = words.count > 1 ? words[1] : end
            end = begin + (words.first ?? 0)
            return begin..<end
        }
        for line in String(decoding: body, as: UTF8.self).split(separator: "\n") {
            if line.hasPrefix("#EXT-X-KEY:"), let uri = attribute("URI", of: line) {
                resources.append(
                    Resource(
                        path: "/\(film)/key/k\(keys).bin", url: PlayerList.target(uri), range: nil))
                keys += 1
            } else if line.hasPrefix("#EXT-X-MAP:"), let uri = attribute("URI", of: line) {
                let own = attribute("BYTERANGE", of: line).map { read($0[...]) }
                resources.append(
                    Resource(path: "/\(film)/a/all.mp4", url: PlayerList.target(uri), range: own))
            } else if line.hasPrefix("#EXT-X-BYTERANGE:") {
                range = read(line.dropFirst(17))
            } else if line.hasPrefix("#EXTINF:") {
                title = segmentTitle(of: line)
            } else if !line.hasPrefix("#") {
                let path = String(title.prefix { $0 != "#" })
                resources.append(Resource(path: path, url: PlayerList.target(line), range: range))
                segments += 1
                range = nil
            }
        }
    }
}

/// Plays such a film from start to end: all keys, initialization sections and segments.
final class ProtectedViewer: Player {
    private let film: ProtectedFilm
    private let track: String
    private var left: Int

    init(
        _ film: ProtectedFilm, _ track: String, most: Int, _ checks: Checks
    ) {
        self.film = film
        self.track = track
        left = most
        super.init("viewer of \(film.name)/\(track)", checks)
    }

    override func start() {
        fetchList(Self.entry(film.master)) { [weak self] _ in
            guard let self else { return }
            fetch(
                Self.entry("/\(film.name)/\(track)/list.m3u8"),
                check: { [weak self] response in
                    guard let self, response.status == 200, response.isWhole else { return false }
                    // The offline form of the playlist does not contain the whole film.
                    return ResourceList(response.body, film: film.name).segments == film.segments
                },
                then: { [weak self] response in
                    guard let self else { return }
                    play(ResourceList(response.body, film: film.name).resources[...])
                })
        }
    }

    private func play(_ resources: ArraySlice<ResourceList.Resource>) {
        guard let next = resources.first, left > 0 else { return end() }
        left -= 1
        let asked = Checks.Asked(next.range)
        fetch(
            next.url, asked.fields,
            check: { [checks] in checks.media(next.path, asked, $0) },
            then: { [weak self] _ in
                guard let self else { return }
                world.after(random.milliseconds(0...1_500)) { [weak self] in
                    self?.play(resources.dropFirst())
                }
            })
    }
}
