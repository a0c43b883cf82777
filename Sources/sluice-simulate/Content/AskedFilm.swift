// Requests other than those of plain players: HEAD, conditions, several ranges, ranges from the end,
// directives for caches, and requests that are no valid ones.

/// Two films, and those who ask for parts of them in unusual ways; one is behind a mount, where
/// HTTP's rules of caching hold.
final class AskedFilm: Addition {
    private let films: [Film]

    required init(_ stage: Stage) {
        films = ["asked", "mounted"].map { Film(name: $0, variants: 1, segments: 6) }
        for film in films { stage.cdn.add(film) }
        super.init(stage)
    }

    override func beginRough(until end: Int64) -> [Player] {
        films.flatMap { film in
            (0..<random.number(1...2)).map { _ in asker(of: film, left: random.number(5...40)) }
        }
    }

    override func beginCalm() -> [Player] {
        films.map { film in
            let asker = asker(of: film, left: 30)
            world.after(45 * World.second) { asker.start() }
            return asker
        }
    }

    private func asker(of film: Film, left: Int) -> Asker {
        Asker(film, isMounted: film.name == "mounted", left: left, stage.checks)
    }
}

/// Sends one unusual request after another; each may fail, and none may be answered wrongly.
private final class Asker: Player {
    private let film: Film
    private let isMounted: Bool
    private var left: Int

    init(
        _ film: Film, isMounted: Bool, left: Int, _ checks: Checks
    ) {
        self.film = film
        self.isMounted = isMounted
        self.left = left
        super.init("asker of \(film.name)", checks)
    }

    override func start() {
        fetchList(Self.entry(film.list(0))) { [weak self] in self?.ask($0) }
    }

    private func ask(_ list: PlayerList) {
        guard left > 0, !list.segments.isEmpty else { return end() }
        left -= 1
        let segment = random.pick(list.segments)
        guard let file = checks.cdn.file(segment.path) else { return end() }
        let then = { [weak self] in
            guard let self else { return }
            world.after(random.milliseconds(0...900)) { [weak self] in
                self?.ask(list)
            }
        }
        let url = isMounted ? "/mt\(segment.path)" : segment.url
        if isMounted { turn(file) }
        let size = file.current.size
        switch random.number(0...8) {
        case 0: send(url, method: "HEAD", [], file, checkHead, then)
        case 1:
            let count = random.pick([0, 1, 100, size, size + 1_000, 1 << 40])
            send(
                url, [("Range", "bytes=-\(count)")], file,
                { self.checkSuffix($0, $1, count) }, then)
        case 2:
            let ranges = (0..<random.number(2...4)).map { _ in
                let first = random.number(0...size + 10)
                return first...first + random.number(0...2_000)
            }
            let text = ranges.map { "\($0.lowerBound)-\($0.upperBound)" }.joined(separator: ",")
            send(url, [("Range", "bytes=\(text)")], file, checkSeveral, then)
        case 3:
            let tag = random.pick([file.tag(file.current), "\"other\"", "*"]) ?? "\"none\""
            send(
                url, [("If-None-Match", tag)], file, { self.checkCondition($0, $1, tag) },
                then)
        case 4:
            send(
                url, [("If-Modified-Since", "Fri, 01 Jan 2027 00:00:00 GMT")], file,
                { self.checkCondition($0, $1, nil) }, then)
        case 5:
            let tag = random.pick([file.tag(file.current), "\"other\""]) ?? "\"none\""
            let first = random.number(0...max(0, size - 1))
            send(
                url, [("Range", "bytes=\(first)-"), ("If-Range", tag)], file,
                { [checks] response, file in
                    self.checkStatus(response, file, [200, 206, 416])
                    guard [206, 416].contains(response.status) else { return }
                    var from = first
                    if self.isMounted, let stated = response.first("content-range") {
                        from = Self.contentRange(stated)?.first ?? first
                    }
                    _ = checks.media(file.path, .range(first: from, last: nil), response)
                }, then)
        case 6:
            let range = random.pick([
                "bytes=9-2", "bytes=a-b", "octets=0-1", "bytes=-", "bytes=99999999999999999999-",
                "bytes=0-99999999999999999999",
            ])
            send(url, [("Range", range)], file, checkInvalid, then)
        case 7:
            let tag = random.pick([file.tag(file.current), "\"other\"", "*"]) ?? "\"none\""
            send(url, [("If-Match", tag)], file, { self.checkMatch($0, $1, tag) }, then)
        default: sendNonsense(url, then)
        }
    }

    /// Lets the CDN change the file, or what caches may do with it.
    private func turn(_ file: OriginFile) {
        // The world's files all have one date, so that one with a date alone cannot change.
        if file.validator != .date, random.chance(10) {
            file.change(to: random.number(1...60_000), at: world.now)
        }
        guard random.chance(30) else { return }
        file.cacheControl = random.pick([
            nil, "max-age=2, stale-if-error=60", "max-age=300", "max-age=0, must-revalidate",
            "no-cache", "no-store", "max-age=1, stale-while-revalidate=30",
        ])
    }

    /// What a client of a mount asks of caches (RFC 9111 section 5.2.1).
    private func directives() -> [(String, String)] {
        guard isMounted, random.chance(50) else { return [] }
        if random.chance(10) { return [("Pragma", "no-cache")] }
        let text = random.pick([
            "max-age=0", "max-age=10", "min-fresh=5", "max-stale", "max-stale=20", "no-cache",
            "no-store", "only-if-cached", "stale-if-error=30", "max-age=99999999999999999999",
        ])
        return [("Cache-Control", text)]
    }

    private func send(
        _ url: String, method: String? = nil, _ fields: [(String, String)] = [], _ file: OriginFile,
        _ check: @escaping (PlayerResponse, OriginFile) -> Void, _ then: @escaping () -> Void
    ) {
        guard !wasStopped, !isDone else { return }
        let fields = fields + directives()
        client.get(url, fields: fields, order: method.map { ($0, "") }) { [weak self] response in
            guard let self else { return }
            world.note(
                "\(name): \(method ?? "GET") \(url.suffix(30)) \(fields.map { "\($0.0): \($0.1)" }) \(response.status) \(response.body.count)"
            )
            world.mark("asker: \(response.status)")
            guard !wasStopped else { return }
            check(response, file)
            then()
        }
    }

    /// Reports a status that no condition of the world explains, and checks the body of a 200.
    private func checkStatus(_ response: PlayerResponse, _ file: OriginFile, _ legal: [Int]) {
        var failures = [0, 404, 403, 410, 429, 500, 502, 503, 504, 507]
        // A mount passes redirects on.
        if isMounted { failures += [301, 302, 303, 307, 308] }
        if !(legal + failures).contains(response.status) {
            world.fault(.status, "\(name): \(file.path): status \(response.status)")
        }
        if response.status == 200, !client.isHead {
            _ = checks.media(file.path, .whole, response)
        }
    }

    private func checkHead(_ response: PlayerResponse, _ file: OriginFile) {
        checkStatus(response, file, [200])
        guard response.status == 200 else { return }
        if let length = response.first("content-length").flatMap({ Int($0) }),
            !file.versions.contains(where: { $0.size == length })
        {
            world.fault(.lengths, "\(name): HEAD of \(file.path) says \(length) bytes")
        }
    }

    private func checkSuffix(_ response: PlayerResponse, _ file: OriginFile, _ count: Int) {
        checkStatus(response, file, [200, 206, 416])
        if response.status == 416, count > 0 {
            world.fault(.status, "\(name): 416 for the last \(count) bytes of \(file.path)")
        }
        guard response.status == 206,
            let (first, last, total) = Self.contentRange(response.first("content-range") ?? "")
        else { return }
        // A mount passes on a part other than the requested one, which the client can tell.
        if !isMounted, first != max(0, total - count) || last != total - 1 {
            world.fault(
                .status,
                "\(name): the last \(count) of \(total) bytes are said to be \(first)-\(last)")
        }
        _ = checks.media(file.path, .range(first: first, last: last), response)
    }

    private static func contentRange(_ text: String) -> (first: Int, last: Int, total: Int)? {
        let words = text.split { " -/".contains($0) }.compactMap { Int($0) }
        return words.count == 3 ? (words[0], words[1], words[2]) : nil
    }

    /// A response to several ranges is the whole, one of them, or a part for each.
    private func checkSeveral(_ response: PlayerResponse, _ file: OriginFile) {
        checkStatus(response, file, [200, 206, 416])
        guard response.status == 206, response.isWhole else { return }
        let type = response.first("content-type") ?? ""
        guard type.hasPrefix("multipart/byteranges"),
            let boundary = type.split(separator: "boundary=").last
        else {
            guard let place = Self.contentRange(response.first("content-range") ?? "") else {
                return world.fault(.status, "\(name): 206 without a range, \(type)")
            }
            _ = checks.media(
                file.path, .range(first: place.first, last: place.last), response)
            return
        }
        checkParts(
            response.body[...], Array("--\(boundary.filter { $0 != "\"" })".utf8), file)
    }

    private func checkParts(
        _ body: ArraySlice<UInt8>, _ boundary: [UInt8], _ file: OriginFile
    ) {
        var rest = body
        var parts = 0
        while let place = rest.firstRange(of: boundary) {
            rest = rest[place.upperBound...]
            if rest.starts(with: [0x2D, 0x2D]) {
                if parts == 0 { world.fault(.lengths, "\(name): no part of several ranges") }
                return
            }
            guard let end = rest.firstRange(of: [13, 10, 13, 10]) else { break }
            let head = String(decoding: rest[..<end.lowerBound], as: UTF8.self)
            let line = head.split(separator: "\r\n").first {
                $0.lowercased().hasPrefix("content-range:")
            }
            rest = rest[end.upperBound...]
            guard let (first, last, total) = Self.contentRange(String(line?.dropFirst(14) ?? "")),
                rest.count >= last - first + 1
            else { break }
            let bytes = Array(rest.prefix(last - first + 1))
            rest = rest.dropFirst(bytes.count)
            parts += 1
            let isRight = file.versions.contains {
                $0.size == total && file.bytes(first..<last + 1, of: $0) == bytes
            }
            if !isRight {
                return world.fault(
                    .bytes, "\(name): part \(first)-\(last) of \(file.path) is of no version")
            }
        }
        world.fault(.lengths, "\(name): the parts of \(file.path) do not end")
    }

    private func checkCondition(
        _ response: PlayerResponse, _ file: OriginFile, _ tag: String?
    ) {
        checkStatus(response, file, [200, 304])
        guard response.status == 304 else { return }
        let isTrue =
            tag.map { tag in
                tag == "*" || file.versions.contains { file.tag($0) == tag }
            } ?? (file.validator == .date)
        if !isTrue {
            world.fault(.status, "\(name): 304 for \(tag ?? "a date") of \(file.path)")
        }
    }

    /// The condition fails only for a tag that some version does not have (RFC 9110 section 13.1.1).
    private func checkMatch(_ response: PlayerResponse, _ file: OriginFile, _ tag: String) {
        checkStatus(response, file, [200, 412])
        let isOfAll = tag == "*" || file.versions.allSatisfy { file.tag($0) == tag }
        if response.status == 412, isOfAll, file.validator == .strong {
            world.fault(.status, "\(name): 412 for \(tag) of \(file.path)")
        }
    }

    /// An invalid range is ignored; one beyond the end cannot be satisfied.
    private func checkInvalid(_ response: PlayerResponse, _ file: OriginFile) {
        checkStatus(response, file, [200, 206, 416])
        if response.status == 206 {
            _ = checks.media(file.path, .range(first: 0, last: nil), response)
        }
    }

    /// A request that the daemon must refuse.
    private func sendNonsense(_ url: String, _ then: @escaping () -> Void) {
        let (target, method, fields): (String, String?, [(String, String)]) = random.pick([
            (url, "POST", []), (url, "DELETE", []), ("/proxy?url=ftp%3A%2F%2Fh%2F", nil, []),
            ("/proxy", nil, []), ("/s/AAAA/x.ts", nil, []),
            ("/dvr=9999999999999999999h/http://10.1.0.1/a.m3u8", nil, []),
            ("/http://10.1.0.1:99999/x.ts", nil, []), ("/http://[::1", nil, []),
            (url, nil, [("X", String(repeating: "a", count: 200_000))]),
            (url, "TRACE", []), ("/api/nothing", nil, []), (url, "OPTIONS", []),
        ])
        guard !wasStopped, !isDone else { return }
        client.get(target, fields: fields, order: method.map { ($0, "") }) { [weak self] response in
            guard let self else { return }
            world.note("\(name): \(method ?? "GET") \(target.prefix(50)) \(response.status)")
            world.mark("asker: \(response.status)")
            guard !wasStopped else { return }
            // A mount passes on what the CDN answers to another method.
            let isPassedOn = isMounted && target == url
            if response.status == 500 && !isPassedOn
                || response.status == 200 && method != "OPTIONS" && target != url
            {
                world.fault(.status, "\(name): \(target.prefix(80)): \(response.status)")
            }
            then()
        }
    }
}
