// The users of long runs.

/// A user of the daemon for the length of a run.
class BulkLife {
    let world: World
    let checks: Checks
    var random: Seeded
    private(set) var isOver = false
    private var players: [Player] = []
    private var gone = 0

    init(_ checks: Checks) {
        self.checks = checks
        world = checks.world
        random = checks.world.fork()
    }

    /// The user's content on the CDN.
    var region: any Region { preconditionFailure("each life has a region") }

    func start() {}

    func stop() {
        isOver = true
        for player in players { player.stop() }
    }

    /// Requests of all players.
    var requests: Int { players.reduce(gone) { $0 + $1.client.requests } }

    /// Starts a player.
    func join(_ player: Player) {
        gone += players.filter { $0.isDone || $0.wasStopped }.reduce(0) { $0 + $1.client.requests }
        players.removeAll { $0.isDone || $0.wasStopped }
        players.append(player)
        player.start()
    }

    func later(_ seconds: Int, _ action: @escaping () -> Void) {
        world.after(Int64(seconds) * World.second) { [weak self] in
            if self?.isOver == false { action() }
        }
    }
}

/// The files of a long run: created at the first request; only the most recent are kept.
final class PassingFiles {
    private var files: [String: OriginFile] = [:]
    private var order: [String] = []

    func file(_ path: String, _ sizes: ClosedRange<Int>, control: String) -> OriginFile {
        if let known = files[path] { return known }
        var own = Seeded(Seeded.hash(path))
        let made = OriginFile(path, size: own.number(sizes), control: control)
        files[path] = made
        order.append(path)
        if order.count > 200 { files[order.removeFirst()] = nil }
        return made
    }
}

// MARK: A channel

/// A live list with segments of a minute.
private final class Channel: Region {
    private let world: World
    private let files = PassingFiles()
    static let length: Int64 = 60 * World.second

    init(_ world: World) { self.world = world }

    func file(_ path: String) -> OriginFile? {
        guard path.hasPrefix("/channel/"), path.hasSuffix(".ts") else { return nil }
        return files.file(path, 500...3_000, control: "max-age=3600")
    }

    func answer(_ head: OriginRequest, _ cdn: SimulatedCDN) -> OriginAnswer? {
        if let file = file(head.pathOnly) { return cdn.answer(file, head) }
        guard head.pathOnly == "/channel/live.m3u8" else { return nil }
        return .list(after: cdn.latency, rate: 4_000_000, control: "max-age=20") { [world] in
            let last = Int(world.now / Self.length) + 10
            let lines = (last - 5...last).map { "#EXTINF:60,/channel/\($0).ts\n\($0).ts\n" }
            return "#EXTM3U\n#EXT-X-TARGETDURATION:60\n#EXT-X-MEDIA-SEQUENCE:\(last - 5)\n"
                + lines.joined()
        }
    }
}

/// One viewer who stays, and others who each watch for ten minutes.
private final class ChannelViewer: Player {
    private let until: Int64
    private var last: Int?

    init(until: Int64, _ checks: Checks) {
        self.until = until
        super.init("viewer of the channel", checks)
    }

    override func start() {
        guard world.now < until else { return end() }
        fetchList(Self.entry("/channel/live.m3u8")) { [weak self] list in
            guard let self, let newest = list.segments.last else { return }
            let isNew = newest.number != last
            if let last, newest.number < last {
                world.fault(.liveForward, "the list ends at \(newest.number) after \(last)")
            }
            last = newest.number
            let pause = Channel.length / (isNew ? 1 : 2)
            guard isNew else { return world.after(pause) { [weak self] in self?.start() } }
            fetchWhole(newest.path, newest.url) { [weak self] in
                self?.world.after(pause) { [weak self] in self?.start() }
            }
        }
    }
}

final class LiveMonth: BulkLife {
    private let channel: Channel

    override init(_ checks: Checks) {
        channel = Channel(checks.world)
        super.init(checks)
    }

    override var region: any Region { channel }

    override func start() {
        join(ChannelViewer(until: .max, checks))
        lookIn()
    }

    private func lookIn() {
        later(random.number(1_800...7_200)) { [self] in
            join(ChannelViewer(until: world.now + 600 * World.second, checks))
            lookIn()
        }
    }
}

// MARK: Films

/// An unlimited number of films with a few segments each.
private final class FilmShelf: Region {
    private let files = PassingFiles()
    private let segments: Int
    private let sizes: ClosedRange<Int>

    init(segments: Int, sizes: ClosedRange<Int>) {
        self.segments = segments
        self.sizes = sizes
    }

    static func list(_ film: Int) -> String { "/shelf/\(film)/list.m3u8" }

    func file(_ path: String) -> OriginFile? {
        guard path.hasPrefix("/shelf/"), path.hasSuffix(".ts") else { return nil }
        return files.file(path, sizes, control: "max-age=86400")
    }

    func answer(_ head: OriginRequest, _ cdn: SimulatedCDN) -> OriginAnswer? {
        let path = head.pathOnly
        if let file = file(path) { return cdn.answer(file, head) }
        guard path.hasPrefix("/shelf/"), path.hasSuffix("/list.m3u8") else { return nil }
        let folder = path.dropLast(10)
        let lines = (0..<segments).map { "#EXTINF:10,\(folder)/s\($0).ts\ns\($0).ts\n" }
        return .list(after: cdn.latency, rate: 4_000_000, control: "max-age=600") {
            "#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXT-X-PLAYLIST-TYPE:VOD\n\(lines.joined())#EXT-X-ENDLIST\n"
        }
    }
}

/// Plays a film to its end, or a part of it.
private final class FilmViewer: Player {
    private let film: Int
    private let most: Int

    init(_ film: Int, most: Int, _ checks: Checks) {
        self.film = film
        self.most = most
        super.init("viewer of film \(film)", checks)
    }

    override func start() {
        fetchList(Self.entry(FilmShelf.list(film))) { [weak self] list in
            guard let self else { return }
            play(list.segments.prefix(most))
        }
    }

    private func play(_ segments: ArraySlice<PlayerList.Segment>) {
        guard let next = segments.first else { return end() }
        fetchWhole(next.path, next.url) { [weak self] in
            self?.world.after(10 * World.second) { [weak self] in
                self?.play(segments.dropFirst())
            }
        }
    }
}

/// One film an evening, out of 400 that may be repeated.
final class HomeYear: BulkLife {
    private let shelf = FilmShelf(segments: 12, sizes: 2_000...40_000)

    override var region: any Region { shelf }

    override func start() { nextEvening() }

    private func nextEvening() {
        let film = random.number(0...399)
        join(FilmViewer(film, most: random.chance(70) ? .max : random.number(1...8), checks))
        later(86_400 + random.number(-3_600...3_600)) { [self] in nextEvening() }
    }
}

/// Feeds of 40 short titles, new ones each time.
final class FeedsWeek: BulkLife {
    private let shelf = FilmShelf(segments: 3, sizes: 1_000...20_000)
    private var first = 0
    private lazy var client = HTTP1Client(world)

    override var region: any Region { shelf }

    override func start() { begin() }

    private func begin() {
        first += random.number(10...40)
        let entries = (first..<first + 40).map {
            "\"\(SimulatedCDN.base)\(FilmShelf.list($0))\""
        }
        let order = "{\"entries\": [\(entries.joined(separator: ", "))], \"index\": 0}"
        tell("PUT", "/api/feeds/week", order) { [self] in swipe(to: 0) }
    }

    private func swipe(to place: Int) {
        guard place < 40 else {
            return tell("DELETE", "/api/feeds/week", "") { [self] in
                later(random.number(14_400...25_000)) { [self] in begin() }
            }
        }
        tell("POST", "/api/feeds/week/position?index=\(place)", "") { [self] in
            join(FilmViewer(first + place, most: random.number(1...3), checks))
            later(random.number(2...40)) { [self] in swipe(to: place + 1) }
        }
    }

    private func tell(
        _ method: String, _ target: String, _ body: String, then: @escaping () -> Void
    ) {
        client.get(target, order: (method, body)) { [weak self] response in
            guard let self, !isOver else { return }
            guard (200...299).contains(response.status) else {
                return world.fault(.status, "\(method) \(target): \(response.status)")
            }
            then()
        }
    }

    override func stop() {
        super.stop()
        client.leave()
    }
}
