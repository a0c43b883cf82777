// A live stream in parts, whose CDN blocks requests for playlists and parts not yet available.

/// A low-latency stream: parts of half a second, four per segment.
final class LowLatencyStream: Region {
    private let world: World
    let name: String
    /// Whether parts are byte ranges of their segment.
    let partsAreRanges: Bool
    /// Whether answers to open-ended ranges leave their end open, too.
    private let hidesEnds: Bool
    private let first: Int
    private var files: [String: OriginFile] = [:]
    private var frozenAt: Int64?
    /// Total time the stream was frozen.
    private var lost: Int64 = 0

    static let part: Int64 = World.second / 2
    static let partsPerSegment = 4
    static let window = 16

    init(_ world: World, name: String, partsAreRanges: Bool, hidesEnds: Bool, first: Int) {
        self.hidesEnds = hidesEnds
        self.world = world
        self.name = name
        self.partsAreRanges = partsAreRanges
        self.first = first
    }

    var list: String { "/\(name)/ll.m3u8" }

    func freeze() { frozenAt = frozenAt ?? world.now }

    func thaw() {
        guard let begin = frozenAt else { return }
        lost += world.now - begin
        frozenAt = nil
    }

    var isFrozen: Bool { frozenAt != nil }

    /// The number of parts produced so far, from segment 0 on.
    func made(at time: Int64) -> Int {
        let own = (frozenAt.map { min($0, time) } ?? time) - lost
        return (first + Self.window) * Self.partsPerSegment + Int(max(0, own) / Self.part)
    }

    /// Nanoseconds until `count` parts are produced.
    private func wait(for count: Int) -> Int64 {
        guard frozenAt == nil, count > made(at: world.now) else { return 0 }
        let missing = count - (first + Self.window) * Self.partsPerSegment
        return max(0, Int64(missing) * Self.part + lost - world.now) + World.millisecond
    }

    // MARK: Files

    func segment(_ number: Int) -> String { "/\(name)/s\(number).ts" }

    /// The path of a part, and its byte range if parts are ranges.
    func place(_ number: Int, _ part: Int) -> (path: String, range: Range<Int>?) {
        guard partsAreRanges else { return ("/\(name)/s\(number).p\(part).ts", nil) }
        let size = file(segment(number))?.current.size ?? 0
        let step = size / Self.partsPerSegment
        let end = part == Self.partsPerSegment - 1 ? size : (part + 1) * step
        return (segment(number), part * step..<end)
    }

    /// Checks that a response to an open-ended range ends at the end of a part.
    func checkOpen(_ number: Int, from first: Int, _ response: PlayerResponse) {
        guard response.status == 206, response.isWhole else { return }
        let end = first + response.body.count
        let ends = (0..<Self.partsPerSegment).compactMap { place(number, $0).range?.upperBound }
        if !ends.contains(end) {
            world.fault(.lengths, "\(segment(number)): said to end at \(end), where no part ends")
        }
    }

    func file(_ path: String) -> OriginFile? {
        guard path.hasPrefix("/\(name)/s"), path.hasSuffix(".ts") else { return nil }
        if let known = files[path] { return known }
        var own = Seeded(Seeded.hash(path))
        let made = OriginFile(
            path, size: own.number(400...60_000), validator: own.pick([.strong, .date, .none]))
        files[path] = made
        return made
    }

    // MARK: Answers

    func answer(_ head: OriginRequest, _ cdn: SimulatedCDN) -> OriginAnswer? {
        let path = head.pathOnly
        if path == list { return listAnswer(head, cdn) }
        guard let file = file(path) else { return nil }
        let words = path.dropFirst(name.count + 3).dropLast(3).split(separator: ".")
        guard let number = words.first.flatMap({ Int($0) }) else {
            return OriginAnswer(status: 404)
        }
        let part = words.count > 1 ? Int(words[1].dropFirst()) : nil
        // A growing segment is available from its first byte on.
        let isGrowing = part == nil && partsAreRanges
        let begins =
            number * Self.partsPerSegment + (part ?? (isGrowing ? 0 : Self.partsPerSegment - 1))
        let now = made(at: world.now)
        guard begins <= now, number >= now / Self.partsPerSegment - Self.window * 2 else {
            return OriginAnswer(status: 404)
        }
        let ends = number * Self.partsPerSegment + (part ?? Self.partsPerSegment - 1) + 1
        var answer = cdn.answer(file, head)
        if !isGrowing || ends <= now {
            answer.delay += wait(for: ends)
        } else {
            // The body starts immediately if bytes are available, and ends when its last byte is
            // produced.
            answer.delay += wait(for: count(of: answer, number))
            answer.fields.removeAll { $0.0 == "ETag" || $0.0 == "Last-Modified" }
            if hidesEnds, head.fields["range"]?.hasSuffix("-") == true { hideEnd(of: &answer) }
        }
        return answer
    }

    /// Leaves the end of an answer undeclared (RFC 8673 section 2.2).
    private func hideEnd(of answer: inout OriginAnswer) {
        guard let index = answer.fields.firstIndex(where: { $0.0 == "Content-Range" }),
            let first = answer.fields[index].1.dropFirst(6).split(separator: "-").first
        else { return }
        answer.fields[index].1 = "bytes \(first)-9007199254740991/*"
        answer.isChunked = true
        answer.pauseAtEnd = 200 * World.millisecond
    }

    /// The number of parts that must be produced before the last byte of an answer is available.
    private func count(of answer: OriginAnswer, _ number: Int) -> Int {
        let words = (answer.fields.first { $0.0 == "Content-Range" }?.1 ?? "").split {
            " -/".contains($0)
        }
        guard words.count == 4, let last = Int(words[2]) else {
            return (number + 1) * Self.partsPerSegment
        }
        let part =
            (0..<Self.partsPerSegment).first { place(number, $0).range?.contains(last) == true }
            ?? 3
        return number * Self.partsPerSegment + part + 1
    }

    private func listAnswer(_ head: OriginRequest, _ cdn: SimulatedCDN) -> OriginAnswer {
        var delay = cdn.latency
        let count = made(at: world.now)
        if let wanted = head.argument("_HLS_msn").flatMap({ Int($0) }) {
            if wanted > count / Self.partsPerSegment + 2 { return OriginAnswer(status: 400) }
            let part = head.argument("_HLS_part").flatMap { Int($0) } ?? Self.partsPerSegment - 1
            delay += wait(for: wanted * Self.partsPerSegment + min(part, Self.partsPerSegment) + 1)
        }
        let skips = head.argument("_HLS_skip") != nil
        return .list(after: delay, rate: cdn.weather.rate, control: "max-age=1") { [self] in
            text(isDelta: skips)
        }
    }

    private func text(isDelta: Bool) -> String {
        let count = made(at: world.now)
        let (current, parts) = (count / Self.partsPerSegment, count % Self.partsPerSegment)
        let first = current - Self.window
        // The skip boundary of twelve seconds is six segments.
        let skipped = isDelta ? Self.window - 6 : 0
        var text =
            "#EXTM3U\n#EXT-X-VERSION:9\n#EXT-X-TARGETDURATION:2\n"
            + "#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=1.5,CAN-SKIP-UNTIL=12\n"
            + "#EXT-X-PART-INF:PART-TARGET=0.5\n#EXT-X-MEDIA-SEQUENCE:\(first)\n"
        if skipped > 0 { text += "#EXT-X-SKIP:SKIPPED-SEGMENTS=\(skipped)\n" }
        for number in first + skipped..<current {
            if number >= current - 3 {
                for part in 0..<Self.partsPerSegment { text += line(number, part) }
            }
            text += "#EXTINF:2,\(segment(number))\ns\(number).ts\n"
        }
        for part in 0..<parts { text += line(current, part) }
        let next = place(current, parts)
        text += "#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"\(next.path.dropFirst(name.count + 2))\""
        if let range = next.range { text += ",BYTERANGE-START=\(range.lowerBound)" }
        return text + "\n"
    }

    private func line(_ number: Int, _ part: Int) -> String {
        let place = place(number, part)
        let range = place.range.map { ",BYTERANGE=\"\($0.count)@\($0.lowerBound)\"" } ?? ""
        return "#EXT-X-PART:DURATION=0.5,URI=\"\(place.path.dropFirst(name.count + 2))\"\(range)\n"
    }
}

/// A playlist with parts, as a low-latency player parses it.
struct PartList {
    struct Part {
        let number, index: Int
        let url: String
        let range: Range<Int>?
    }

    private(set) var parts: [Part] = []
    private(set) var segments: [(number: Int, path: String, url: String)] = []
    private(set) var hint: Part?
    /// The segment being produced, and the number of its parts available.
    private(set) var edge = (number: 0, parts: 0)

    init?(_ body: [UInt8]) {
        let text = String(decoding: body, as: UTF8.self)
        guard text.hasPrefix("#EXTM3U") else { return nil }
        var title: String?
        for line in text.split(separator: "\n") {
            if line.hasPrefix("#EXT-X-MEDIA-SEQUENCE:") {
                edge = (Int(line.dropFirst(22)) ?? 0, 0)
            } else if line.hasPrefix("#EXT-X-SKIP:") {
                edge.number += attribute("SKIPPED-SEGMENTS", of: line).flatMap { Int($0) } ?? 0
            } else if line.hasPrefix("#EXT-X-PART:") {
                let words = (attribute("BYTERANGE", of: line) ?? "").split(separator: "@")
                    .compactMap { Int($0) }
                parts.append(
                    Part(
                        number: edge.number, index: edge.parts,
                        url: PlayerList.target(attribute("URI", of: line) ?? ""),
                        range: words.count == 2 ? words[1]..<words[1] + words[0] : nil))
                edge.parts += 1
            } else if line.hasPrefix("#EXT-X-PRELOAD-HINT:") {
                let start = attribute("BYTERANGE-START", of: line).flatMap { Int($0) }
                hint = Part(
                    number: edge.number, index: edge.parts,
                    url: PlayerList.target(attribute("URI", of: line) ?? ""),
                    range: start.map { $0..<Int.max })
            } else if line.hasPrefix("#EXTINF:") {
                title = segmentTitle(of: line)
            } else if !line.hasPrefix("#"), let path = title {
                segments.append((edge.number, path, PlayerList.target(line)))
                edge = (edge.number + 1, 0)
                title = nil
            }
        }
    }
}

/// Follows a low-latency stream by blocking reloads; another connection fetches what it names.
final class LowLatencyViewer: Player {
    private let live: LowLatencyStream
    private let until: Int64
    private let parts: PartFetcher
    /// The total number of parts at the end of the newest playlist.
    private var newest: Int?
    private var newestAt: Int64 = 0

    /// The latest time after its availability that a player of parts requests a playlist.
    private static let patience = 2 * World.second

    init(_ live: LowLatencyStream, until: Int64, _ checks: Checks) {
        self.live = live
        self.until = until
        parts = PartFetcher(live, checks)
        super.init("low-latency viewer of \(live.name)", checks)
    }

    override func start() { reload() }

    override func stop() {
        super.stop()
        parts.stop()
    }

    private func reload() {
        guard world.now < until else {
            parts.stop()
            return end()
        }
        var target = Self.entry(live.list)
        let wanted = newest.map { $0 + 1 }
        if let newest {
            target +=
                "?_HLS_msn=\(newest / LowLatencyStream.partsPerSegment)&_HLS_part=\(newest % LowLatencyStream.partsPerSegment)"
            if random.chance(30) { target += "&_HLS_skip=YES" }
        }
        let asked = world.now
        fetch(
            target,
            check: { [weak self] response in
                // A request too far ahead is rejected: the player starts again without directives.
                if response.status == 400 || (self?.failures ?? 0) > 3 { return true }
                return response.status == 200 && response.isWhole
            },
            then: { [weak self] in self?.look(at: $0, askedAt: asked, wanting: wanted) })
    }

    private func look(at response: PlayerResponse, askedAt asked: Int64, wanting wanted: Int?) {
        let isOffline = response.first("cache-status")?.contains("offline") == true
        guard response.status == 200, response.isWhole, !isOffline else {
            newest = nil
            return world.after(2 * World.second) { [weak self] in self?.reload() }
        }
        guard let list = PartList(response.body) else {
            return world.fault(.status, "\(name): 200, and no playlist")
        }
        let count = list.edge.number * LowLatencyStream.partsPerSegment + list.edge.parts
        check(count, askedAt: asked, wanting: wanted)
        let isNew = newest != count
        (newest, newestAt) = (count, world.now)
        parts.add(list)
        world.after(isNew ? 0 : LowLatencyStream.part) { [weak self] in self?.reload() }
    }

    private func check(_ count: Int, askedAt asked: Int64, wanting wanted: Int?) {
        if let newest, count < newest {
            guard newestAt > world.lastPowerCut else { return }
            world.fault(.liveForward, "\(name): the list ends with part \(count) after \(newest)")
        }
        guard checks.cdn.isCalm(for: 40 * World.second), !live.isFrozen else { return }
        if let wanted, count < wanted {
            world.fault(.liveFresh, "\(name): asked for part \(wanted), answered with \(count)")
        }
        let before = live.made(at: world.now - Self.patience)
        if count < before, world.now - asked > Self.patience || wanted == nil {
            world.fault(
                .liveFresh,
                "\(name): the list ends with part \(count), the CDN has had \(before) for a while")
        }
    }
}
