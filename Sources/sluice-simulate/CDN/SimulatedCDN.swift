// The CDN: accepts connections, answers requests and applies the weather's faults to them.
import CSimulation
import Glibc

/// All hosts of the CDN; every address serves the same files.
final class SimulatedCDN {
    let world: World
    var weather = Weather.calm
    private var random: Seeded
    private var files: [String: OriginFile] = [:]
    private(set) var films: [Film] = []
    private(set) var lives: [LiveStream] = []
    /// The regions, each with its own rules for responses.
    var regions: [any Region] = []
    private var connections: [OriginConnection] = []
    private(set) var requests = 0
    /// The time of the last fault.
    private(set) var lastFault: Int64 = -1_000 * World.second

    /// 10.1.0.1, and the base of its URLs.
    static let address: UInt32 = 0x0A01_0001
    static let base = "http://10.1.0.1"

    init(_ world: World, films: [Film], lives: [LiveStream]) {
        self.world = world
        self.films = films
        self.lives = lives
        random = world.fork()
        world.connect = { [unowned self] in connected($0, $1, $2, $3) }
    }

    /// The file under a path; nil if there is none.
    ///
    /// Created at the first request for it.
    func file(_ path: String) -> OriginFile? {
        if let known = files[path] { return known }
        for region in regions {
            if let file = region.file(path) { return file }
        }
        guard path.hasSuffix(".ts") else { return nil }
        var own = Seeded(Seeded.hash(path) ^ seed)
        let made = OriginFile(
            path, size: own.chance(5) ? own.number(1_000_000...3_000_000) : own.number(1...200_000),
            validator: own.pick([.strong, .strong, .strong, .date, .weak, .none]),
            hasRanges: own.chance(85), isChunked: own.chance(15),
            control: own.pick([nil, "max-age=3600", "max-age=5", "no-cache"]))
        files[path] = made
        return made
    }

    private lazy var seed = random.next()

    /// Adds a file or a live stream for a scene.
    func add(_ file: OriginFile) { files[file.path] = file }
    func add(_ live: LiveStream) { lives.append(live) }
    func add(_ film: Film) { films.append(film) }

    /// The time at which the last byte of the last good response for a live playlist left, by path.
    var listSent: [String: Int64] = [:]

    func fault(_ kind: OriginFault) {
        lastFault = world.now
        world.mark("origin: \(kind.rawValue)")
        world.step(.originFault(kind.rawValue))
        world.note("cdn: \(kind.rawValue)")
    }

    /// Whether no fault has occurred for a time.
    func isCalm(for time: Int64) -> Bool {
        weather.requestFaults == 0 && weather.connectionFaults == 0 && !weather.isOutage
            && world.now - lastFault > time
    }

    // MARK: Connections

    private func connected(_ address: UInt32, _ port: UInt16, _ peer: CInt, _ descriptor: CInt)
        -> CInt
    {
        guard [Self.address, ProtectedFilm.address].contains(address) else { return ENETUNREACH }
        if weather.isOutage { return silence(peer) }
        switch weather.pick(&random, OriginFault.ofConnections, weather.connectionFaults) {
        case .refused?:
            fault(.refused)
            world.after(latency) { [world] in
                csim_refused(peer, descriptor, ECONNREFUSED)
                Stream(world, peer).reset()
            }
        case .blackHole?:
            fault(.blackHole)
            return silence(peer)
        case .slowConnect?:
            fault(.slowConnect)
            establish(peer, descriptor, after: random.seconds(1...8))
        default: establish(peer, descriptor, after: latency)
        }
        return 0
    }

    /// Keeps a connection open that never answers.
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

    /// Begins an outage: open connections fall silent, and no new one is established.
    func beginOutage() {
        weather.isOutage = true
        lastFault = world.now
        for connection in connections { connection.fallSilent() }
        connections = []
        world.mark("outage")
        world.step(.outage(begins: true))
        world.note("cdn: outage begins")
    }

    func endOutage() {
        if weather.isOutage { world.step(.outage(begins: false)) }
        weather.isOutage = false
        lastFault = world.now
        for peer in dead { Stream(world, peer).reset() }
        dead = []
        world.note("cdn: outage ends")
    }

    // MARK: Answers

    /// The response to a request, and the faults on its way.
    func answer(_ received: OriginRequest) -> OriginAnswer {
        requests += 1
        var head = received
        head.fault = weather.pick(&random, OriginFault.ofRequests, weather.requestFaults)
        if let kind = head.fault { fault(kind) }
        var answer = plainAnswer(head)
        switch head.fault {
        case .serverError?: answer = OriginAnswer(status: random.pick([500, 502, 503, 504]))
        case .busy?:
            answer = OriginAnswer(status: random.pick([429, 503]))
            answer.fields.append(("Retry-After", "\(random.number(1...3))"))
        case .notFound?: answer = OriginAnswer(status: random.pick([404, 410, 403]))
        case .redirected? where !head.path.contains("hop="):
            answer = OriginAnswer(status: random.pick([301, 302, 307, 308]))
            answer.fields.append(
                ("Location", "\(Self.base)\(head.path)\(head.path.contains("?") ? "&" : "?")hop=1"))
        case .cut?: answer.ending = .cut(after: random.number(0...max(0, answer.body.count)))
        case .reset?: answer.ending = .reset(after: random.number(0...max(0, answer.body.count)))
        case .stalled?: answer.ending = .stall(after: random.number(0...max(0, answer.body.count)))
        case .slow?: answer.rate = random.number(2_000...40_000)
        case .lateHead?: answer.delay += random.seconds(1...20)
        case .noHead?: answer.ending = .noHead
        case .garbage?: answer.ending = .garbage
        case .closesAfter?: answer.ending = .closes
        case .noFraming?: (answer.isUnframed, answer.isChunked) = (true, false)
        default: break
        }
        files[head.pathOnly]?.record(head, &answer, at: world.now)
        return answer
    }

    private func plainAnswer(_ head: OriginRequest) -> OriginAnswer {
        let path = head.pathOnly
        for region in regions {
            if let answer = region.answer(head, self) { return answer }
        }
        let live = lives.first { $0.list == path }
        if live?.isFailing == true {
            lastFault = world.now
            return OriginAnswer(status: 500)
        }
        if let text = list(path) {
            var answer = OriginAnswer(status: 200)
            answer.body = Array(text.utf8)
            answer.fields = [("Content-Type", "application/vnd.apple.mpegurl")]
            if path.hasSuffix("live.m3u8") {
                answer.list = path
                answer.fields.append(("Cache-Control", live?.control ?? "max-age=1"))
            }
            answer.delay = latency
            answer.rate = weather.rate
            return answer
        }
        guard let file = file(path) else { return OriginAnswer(status: 404) }
        if head.fault == .versionChanges, file.validator == .strong {
            file.change(to: random.number(1...200_000), at: world.now)
            world.note("cdn: \(path) changes to version \(file.current.number)")
        }
        return answer(file, head)
    }

    private func list(_ path: String) -> String? {
        for film in films where path.hasPrefix("/\(film.name)/") { return film.text(path) }
        for live in lives where live.list == path { return live.text(at: world.now) }
        return nil
    }

    func answer(_ file: OriginFile, _ head: OriginRequest) -> OriginAnswer {
        let version = file.current
        var answer = OriginAnswer(status: 200)
        answer.file = file
        answer.delay = latency
        answer.rate = weather.rate
        answer.isChunked = file.isChunked || head.fault == .noLength
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
            || head.fields["if-range"].map { $0 == file.tag(version) && file.validator == .strong }
                ?? true
        if file.hasRanges, maySplit, head.fault != .wholeForRange, let text = head.fields["range"],
            let wanted = Self.range(text, version.size)
        {
            guard !wanted.isEmpty else {
                answer.status = 416
                answer.fields.append(("Content-Range", "bytes */\(version.size)"))
                return answer
            }
            range = wanted
            if head.fault == .otherRange, range.lowerBound > 0 {
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

    /// The range that a Range field requests; empty if unsatisfiable, nil if the field is ignored.
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

/// A request as parsed by the CDN.
struct OriginRequest {
    let method: String
    let path: String
    let fields: [String: String]
    /// What goes wrong with its answer; nil for nothing.
    var fault: OriginFault?
}

/// A response and how it is sent.
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
    /// Generates the body when it is sent; nil if the body is fixed at the request.
    var made: (() -> [UInt8])?
    var isChunked = false
    /// Whether the body ends with the connection, without a length.
    var isUnframed = false
    var delay: Int64 = 10 * World.millisecond
    var rate = 4_000_000
    var ending = Ending.whole
    /// Nanoseconds between the last byte of a chunked body and its last chunk.
    var pauseAtEnd: Int64 = 0
    var file: OriginFile?
    /// The path of the live playlist that this response carries.
    var list: String?

    init(status: Int) { self.status = status }
}
