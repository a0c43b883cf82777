// The CDN: it takes connections, answers requests and lets happen to them what the weather says.
import CSimulation
import Glibc

/// All hosts of the CDN; each of their addresses has the same files.
final class SimulatedCDN {
    let world: World
    var weather = Weather.calm
    private var random: Seeded
    private var files: [String: OriginFile] = [:]
    private(set) var films: [Film] = []
    private(set) var lives: [LiveStream] = []
    private var connections: [OriginConnection] = []
    private(set) var requests = 0
    /// The last time at which something went wrong.
    private(set) var lastFault: Int64 = -1_000 * World.second

    /// 10.1.0.1, and how URLs name it.
    static let address: UInt32 = 0x0A01_0001
    static let base = "http://10.1.0.1"

    init(_ world: World, films: [Film], lives: [LiveStream]) {
        self.world = world
        self.films = films
        self.lives = lives
        random = world.fork()
        world.connect = { [unowned self] in connected($0, $1, $2, $3) }
    }

    /// The file of a path; nil where there is none. Made when it is first asked for.
    func file(_ path: String) -> OriginFile? {
        if let known = files[path] { return known }
        guard path.hasSuffix(".ts") else { return nil }
        var own = Seeded(Seeded.hash(path) ^ seed)
        let made = OriginFile(
            path, size: own.chance(5) ? own.number(1_000_000...3_000_000) : own.number(1...200_000),
            validator: own.pick([.strong, .strong, .strong, .date, .weak, .none]),
            hasRanges: own.chance(85), isChunked: own.chance(15))
        made.cacheControl = own.pick([nil, "max-age=3600", "max-age=5", "no-cache"])
        files[path] = made
        return made
    }

    private lazy var seed = random.next()

    /// Adds a file, or a live stream, that a scene is about.
    func add(_ file: OriginFile) { files[file.path] = file }
    func add(_ live: LiveStream) { lives.append(live) }

    /// When the last byte of a live list's last good answer left, by its path.
    var listSent: [String: Int64] = [:]

    func fault(_ kind: OriginFault) {
        lastFault = world.now
        world.trace.mark("origin: \(kind.rawValue)")
        world.trace.note(world.now, "cdn: \(kind.rawValue)")
    }

    /// Whether nothing has gone wrong for a time.
    func isCalm(for time: Int64) -> Bool {
        weather.requestFaults == 0 && weather.connectionFaults == 0 && !weather.isOutage
            && world.now - lastFault > time
    }

    // MARK: Connections

    private func connected(_ address: UInt32, _ port: UInt16, _ peer: CInt, _ descriptor: CInt)
        -> CInt
    {
        guard address == Self.address else { return ENETUNREACH }
        if weather.isOutage { return silence(peer) }
        switch weather.pick(&random, OriginFault.ofConnections, weather.connectionFaults) {
        case .refused?:
            fault(.refused)
            world.after(latency) { [world] in
                csim_refused(descriptor, ECONNREFUSED)
                Stream(world, peer).reset()
            }
        case .blackHole?:
            fault(.blackHole)
            return silence(peer)
        case .slowConnect?:
            fault(.slowConnect)
            establish(peer, descriptor, after: Int64(random.number(1...8)) * World.second)
        default: establish(peer, descriptor, after: latency)
        }
        return 0
    }

    /// Keeps an end open that never answers.
    private func silence(_ peer: CInt) -> CInt {
        lastFault = world.now
        dead.append(peer)
        return 0
    }

    private var dead: [CInt] = []

    private func establish(_ peer: CInt, _ descriptor: CInt, after delay: Int64) {
        world.after(delay) { [self] in
            csim_connected(peer, descriptor)
            let made = OriginConnection(self, Stream(world, peer))
            connections.append(made)
            if connections.count > 64 { connections.removeAll { !$0.isOpen } }
        }
    }

    var latency: Int64 {
        Int64(random.number(Int(weather.latency.lowerBound)...Int(weather.latency.upperBound)))
    }

    /// Begins an outage: nothing is heard of any connection, and none is made.
    func beginOutage() {
        weather.isOutage = true
        lastFault = world.now
        for connection in connections { connection.fallSilent() }
        connections = []
        world.trace.mark("outage")
        world.trace.note(world.now, "cdn: outage begins")
    }

    func endOutage() {
        weather.isOutage = false
        lastFault = world.now
        for peer in dead { Stream(world, peer).reset() }
        dead = []
        world.trace.note(world.now, "cdn: outage ends")
    }

    // MARK: Answers

    /// What is sent for a request, and what happens on the way.
    func answer(_ head: OriginRequest) -> OriginAnswer {
        requests += 1
        let kind = weather.pick(&random, OriginFault.ofRequests, weather.requestFaults)
        if let kind { fault(kind) }
        var answer = plainAnswer(head, kind)
        switch kind {
        case .serverError?: answer = OriginAnswer(status: random.pick([500, 502, 503, 504]))
        case .busy?:
            answer = OriginAnswer(status: random.pick([429, 503]))
            answer.fields.append(("Retry-After", "\(random.number(1...3))"))
        case .notFound?: answer = OriginAnswer(status: random.pick([404, 410, 403]))
        case .redirected? where !head.path.contains("hop="):
            answer = OriginAnswer(status: random.pick([301, 302, 307, 308]))
            answer.fields.append(("Location", "\(Self.base)\(head.path)?hop=1"))
        case .cut?: answer.ending = .cut(after: random.number(0...max(0, answer.body.count)))
        case .reset?: answer.ending = .reset(after: random.number(0...max(0, answer.body.count)))
        case .stalled?: answer.ending = .stall(after: random.number(0...max(0, answer.body.count)))
        case .slow?: answer.rate = random.number(2_000...40_000)
        case .lateHead?: answer.delay += Int64(random.number(1...20)) * World.second
        case .noHead?: answer.ending = .noHead
        case .garbage?: answer.ending = .garbage
        case .closesAfter?: answer.ending = .closes
        default: break
        }
        files[String(head.path.prefix { $0 != "?" })]?.record(head, &answer, at: world.now)
        return answer
    }

    private func plainAnswer(_ head: OriginRequest, _ kind: OriginFault?) -> OriginAnswer {
        let path = String(head.path.prefix { $0 != "?" })
        if let text = list(path) {
            var answer = OriginAnswer(status: 200)
            answer.body = Array(text.utf8)
            answer.fields = [("Content-Type", "application/vnd.apple.mpegurl")]
            if path.hasSuffix("live.m3u8") {
                answer.list = path
                answer.fields.append(("Cache-Control", "max-age=1"))
            }
            answer.delay = latency
            answer.rate = weather.rate
            return answer
        }
        guard let file = file(path) else { return OriginAnswer(status: 404) }
        if kind == .versionChanges, file.validator == .strong {
            file.change(to: random.number(1...200_000), at: world.now)
            world.trace.note(world.now, "cdn: \(path) changes to version \(file.current.number)")
        }
        return answer(file, head, kind)
    }

    private func list(_ path: String) -> String? {
        for film in films where path.hasPrefix("/\(film.name)/") { return film.text(path) }
        for live in lives where live.list == path { return live.text(at: world.now) }
        return nil
    }

    private func answer(_ file: OriginFile, _ head: OriginRequest, _ kind: OriginFault?)
        -> OriginAnswer
    {
        let version = file.current
        file.requests += 1
        var answer = OriginAnswer(status: 200)
        answer.file = file
        answer.delay = latency
        answer.rate = weather.rate
        answer.isChunked = file.isChunked || kind == .noLength
        answer.fields = [("Content-Type", "video/mp2t")]
        if let tag = file.tag(version) { answer.fields.append(("ETag", tag)) }
        if file.validator == .date {
            answer.fields.append(("Last-Modified", "Fri, 01 Jan 2027 00:00:00 GMT"))
        }
        if let control = file.cacheControl { answer.fields.append(("Cache-Control", control)) }
        if let condition = head.fields["if-none-match"], let tag = file.tag(version),
            condition == "*" || condition.contains(tag)
        {
            answer.status = 304
            return answer
        }
        var range = 0..<version.size
        let maySplit =
            file.script?.ignoresIfRange == true
            || head.fields["if-range"].map { $0 == file.tag(version) && file.validator == .strong } ?? true
        if file.hasRanges, maySplit, kind != .wholeForRange, let text = head.fields["range"],
            let wanted = Self.range(text, version.size)
        {
            guard !wanted.isEmpty else {
                answer.status = 416
                answer.fields.append(("Content-Range", "bytes */\(version.size)"))
                return answer
            }
            range = wanted
            if kind == .otherRange, range.lowerBound > 0 {
                range = range.lowerBound / 2..<range.upperBound
            }
            answer.status = 206
            answer.fields.append(
                (
                    "Content-Range",
                    "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(version.size)"
                ))
        }
        answer.body = file.bytes(range, of: version)
        return answer
    }

    /// The stretch that a Range field asks for; empty where it cannot be satisfied, nil where it is
    /// to be ignored.
    private static func range(_ text: String, _ size: Int) -> Range<Int>? {
        guard text.hasPrefix("bytes="), !text.contains(",") else { return nil }
        let parts = text.dropFirst(6).split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        if parts[0].isEmpty {
            guard let count = Int(parts[1]) else { return nil }
            return count == 0 ? 0..<0 : max(0, size - count)..<size
        }
        guard let first = Int(parts[0]) else { return nil }
        guard first < size else { return 0..<0 }
        let last = parts[1].isEmpty ? size - 1 : min(size - 1, Int(parts[1]) ?? size - 1)
        return last < first ? nil : first..<last + 1
    }
}

/// A request as the CDN reads it.
struct OriginRequest {
    let method: String
    let path: String
    let fields: [String: String]
}

/// A response, and how it leaves.
struct OriginAnswer {
    enum Ending {
        case whole, closes
        case cut(after: Int)
        case reset(after: Int)
        case stall(after: Int)
        case noHead, garbage
    }

    var status: Int
    var fields: [(String, String)] = []
    var body: [UInt8] = []
    var isChunked = false
    var delay: Int64 = 10 * World.millisecond
    var rate = 4_000_000
    var ending = Ending.whole
    var file: OriginFile?
    /// The path of the live list that this is.
    var list: String?

    init(status: Int) { self.status = status }
}

/// A connection to the CDN; answers one request after the other.
final class OriginConnection {
    private let cdn: SimulatedCDN
    private let stream: Stream
    private var input: [UInt8] = []
    private var isBusy = false
    private var isSilent = false

    var isOpen: Bool { stream.isOpen }

    private static let piece = 8_192

    init(_ cdn: SimulatedCDN, _ stream: Stream) {
        self.cdn = cdn
        self.stream = stream
        stream.received = { [weak self] bytes in
            self?.input += bytes
            self?.next()
        }
        // Somebody has to hold it while the connection is open.
        stream.ended = { [self] in _ = self }
    }

    /// Sends nothing any more, and lets the other end find out.
    func fallSilent() { isSilent = true }

    private func next() {
        guard !isBusy, !isSilent, let request = readRequest() else { return }
        isBusy = true
        let answer = cdn.answer(request)
        cdn.world.trace.note(
            cdn.world.now,
            "cdn: \(request.method) \(request.path) \(request.fields["range"] ?? "") "
                + "\(request.fields["if-range"] ?? "") -> \(answer.status) "
                + "\(answer.fields.first { $0.0 == "Content-Range" }?.1 ?? "") \(answer.body.count) "
                + "\(answer.isChunked ? "chunked " : "")\(answer.fields.first { $0.0 == "ETag" }?.1 ?? "")")
        cdn.world.after(answer.delay) { [self] in begin(answer, request) }
    }

    private func readRequest() -> OriginRequest? {
        guard let end = endOfHead(input) else { return nil }
        var lines = String(decoding: input[..<end], as: UTF8.self).split(separator: "\r\n")
        input.removeFirst(end + 4)
        let first = lines.removeFirst().split(separator: " ")
        guard first.count == 3 else { return nil }
        var fields: [String: String] = [:]
        for line in lines {
            let parts = line.split(separator: ":", maxSplits: 1)
            if parts.count == 2 {
                fields[parts[0].lowercased()] = String(parts[1].drop { $0 == " " })
            }
        }
        return OriginRequest(method: String(first[0]), path: String(first[1]), fields: fields)
    }

    private func begin(_ answer: OriginAnswer, _ request: OriginRequest) {
        guard stream.isOpen, !isSilent else { return }
        switch answer.ending {
        case .noHead: return stream.reset()
        case .garbage:
            stream.send(Array("RTSP/9 what\r\n\r\n".utf8))
            return stream.finish()
        default: break
        }
        var head = "HTTP/1.1 \(answer.status) X\r\n"
        for (name, value) in answer.fields { head += "\(name): \(value)\r\n" }
        let hasBody = request.method != "HEAD" && answer.status != 304
        if answer.isChunked, hasBody {
            head += "Transfer-Encoding: chunked\r\n"
        } else if answer.status != 304 {
            head += "Content-Length: \(answer.body.count)\r\n"
        }
        if case .closes = answer.ending { head += "Connection: close\r\n" }
        stream.send(Array((head + "\r\n").utf8))
        send(hasBody ? answer : OriginAnswer(status: answer.status), from: 0)
    }

    private func send(_ answer: OriginAnswer, from offset: Int) {
        guard stream.isOpen, !isSilent else { return }
        var end = min(answer.body.count, offset + Self.piece)
        switch answer.ending {
        case .cut(let place) where end >= place:
            end = min(end, place)
            put(answer, offset..<max(offset, end))
            return stream.finish()
        case .reset(let place) where end >= place: return stream.reset()
        case .stall(let place) where end >= place:
            put(answer, offset..<max(offset, min(end, place)))
            return
        default: break
        }
        put(answer, offset..<end)
        guard end == answer.body.count else {
            return cdn.world.after(Int64(end - offset) * World.second / Int64(answer.rate)) { [self] in
                send(answer, from: end)
            }
        }
        if answer.isChunked { stream.send(Array("0\r\n\r\n".utf8)) }
        if answer.status == 200, let list = answer.list { cdn.listSent[list] = cdn.world.now }
        if case .closes = answer.ending { return stream.finish() }
        isBusy = false
        next()
    }

    private func put(_ answer: OriginAnswer, _ range: Range<Int>) {
        guard !range.isEmpty else { return }
        answer.file?.bytesSent += range.count
        if answer.isChunked { stream.send(Array((String(range.count, radix: 16) + "\r\n").utf8)) }
        stream.send(Array(answer.body[range]))
        if answer.isChunked { stream.send([0x0D, 0x0A]) }
    }
}
