// Players: each sends requests like one kind of real player until it has reached its goal.

/// A client of the daemon.
class Player {
    let world: World
    let client: DaemonClient
    let checks: Checks
    var random: Seeded
    let name: String
    /// True once the player has reached its goal.
    private(set) var isDone = false
    /// Consecutive failed requests.
    private(set) var failures = 0
    private(set) var wasStopped = false

    init(_ name: String, _ checks: Checks, port: UInt16 = SimulatedDaemon.port) {
        self.name = name
        self.checks = checks
        world = checks.world
        client = checks.world.clients.make(port: port)
        random = checks.world.fork()
    }

    func start() {}

    /// Resets the connection in the middle of a request.
    func stop() {
        wasStopped = true
        client.leave()
    }

    func end() {
        guard !isDone else { return }
        isDone = true
        client.leave()
        world.note("\(name): done")
    }

    /// Requests a target, and retries a little later after a failure.
    func fetch(
        _ target: String, _ fields: [(String, String)] = [], abortAfter: Int? = nil,
        check: @escaping (PlayerResponse) -> Bool, then: @escaping (PlayerResponse) -> Void
    ) {
        guard !wasStopped, !isDone else { return }
        client.get(target, fields: fields, abortAfter: abortAfter) { [weak self] response in
            guard let self else { return }
            world.note(
                "\(name): \(target.suffix(40)) \(fields.first?.1 ?? "") \(response.status) "
                    + "\(response.body.count)\(response.isWhole ? "" : " broken") \(response.first("cache-status") ?? "")"
            )
            world.mark("player: \(response.status)\(response.isWhole ? "" : " broken")")
            if response.status >= 400 {
                world.checkSecrets(in: String(decoding: response.body, as: UTF8.self))
            }
            guard !wasStopped else { return }
            if check(response) {
                failures = 0
                then(response)
            } else {
                failures += 1
                let pause = Int64(min(failures, 5)) * World.second
                world.after(pause) { [weak self] in
                    self?.fetch(target, fields, abortAfter: abortAfter, check: check, then: then)
                }
            }
        }
    }

    func fetchList(_ target: String, then: @escaping (PlayerList) -> Void) {
        fetchList(target) { list, _ in then(list) }
    }

    /// As above; `then` also gets whether the playlist is the offline form.
    func fetchList(_ target: String, then: @escaping (PlayerList, _ isOffline: Bool) -> Void) {
        fetch(
            target,
            check: { [world] response in
                guard response.status == 200, response.isWhole else { return false }
                if PlayerList(response.body) == nil {
                    world.fault(.status, "\(target): 200, and no playlist")
                }
                return true
            },
            then: { response in
                let isOffline = response.first("cache-status")?.contains("offline") == true
                if let list = PlayerList(response.body) { then(list, isOffline) }
            })
    }

    /// Requests a file of the CDN until it is answered whole.
    func fetchWhole(_ path: String, _ url: String, then: @escaping () -> Void) {
        fetch(url, check: { [checks] in checks.media(path, .whole, $0) }, then: { _ in then() })
    }

    /// Requests segments in order, each until it is answered whole, and ends.
    func playToEnd(_ segments: ArraySlice<PlayerList.Segment>) {
        guard let next = segments.first else { return end() }
        fetchWhole(next.path, next.url) { [weak self] in self?.playToEnd(segments.dropFirst()) }
    }

    static func entry(_ path: String) -> String { "/\(SimulatedCDN.base)\(path)" }
}

/// Plays a film from some segment on, segment by segment.
final class Viewer: Player {
    private let film: Film
    private var left: Int
    /// The segments that were stored according to their responses.
    private(set) var stored: Set<String> = []
    /// How often a segment was not stored in a row.
    private var unstored = 0

    init(_ film: Film, segments: Int, _ checks: Checks) {
        self.film = film
        left = segments
        super.init("viewer of \(film.name)", checks)
    }

    override func start() {
        fetchList(Self.entry(film.master)) { [weak self] master in
            guard let self, !master.variants.isEmpty else { return }
            fetchList(random.pick(master.variants)) { [weak self] list in
                guard let self else { return }
                play(list, from: random.chance(60) ? 0 : random.number(0...list.segments.count - 1))
            }
        }
    }

    private func play(_ list: PlayerList, from index: Int) {
        guard index < list.segments.count, left > 0 else { return end() }
        left -= 1
        let segment = list.segments[index]
        fetch(
            segment.url,
            check: { [checks] in checks.media(segment.path, .whole, $0) },
            then: { [weak self] response in
                guard let self else { return }
                let next = noteStored(segment.path, response) ? index + 1 : index
                world.after(random.milliseconds(0...2_000)) { [weak self] in
                    self?.play(list, from: next)
                }
            })
    }

    /// Notes whether a segment is stored; false if a viewer of the calm phase must request it again.
    ///
    /// What a player joins may have been requested while the disk took nothing; what is requested in
    /// calm weather is stored.
    private func noteStored(_ path: String, _ response: PlayerResponse) -> Bool {
        let status = response.first("cache-status") ?? ""
        guard status.contains("no-room") || status.contains("unproven") else {
            stored.insert(path)
            unstored = 0
            return true
        }
        guard mustStore else { return true }
        left += 1
        unstored += 1
        if unstored > Self.mostUnstored {
            world.fault(.offline, "\(name): \(path) finds no room in calm weather")
        }
        return false
    }

    /// Whether everything it plays must be stored.
    var mustStore = false
    private static let mostUnstored = 10
}

/// Requests ranges at random, and aborts some of them halfway.
final class Seeker: Player {
    private let film: Film
    private var left: Int

    init(_ film: Film, ranges: Int, _ checks: Checks) {
        self.film = film
        left = ranges
        super.init("seeker in \(film.name)", checks)
    }

    override func start() {
        fetchList(Self.entry(film.list(0))) { [weak self] in self?.seek($0) }
    }

    private func seek(_ list: PlayerList) {
        guard left > 0 else { return end() }
        left -= 1
        let segment = random.pick(list.segments)
        let size = checks.cdn.file(segment.path)?.current.size ?? 1
        let first = random.number(0...max(0, size - 1))
        let last = random.chance(30) ? nil : random.number(first...size + 100)
        let abort = random.chance(25) ? random.number(0...50_000) : nil
        let attempts = left
        let asked = Checks.Asked.range(first: first, last: last)
        fetch(
            segment.url, asked.fields, abortAfter: abort,
            check: { [checks] response in
                _ = checks.media(segment.path, asked, response)
                return true
            },
            then: { [weak self] _ in
                guard let self, attempts == left else { return }
                world.after(random.milliseconds(0...800)) { [weak self] in
                    self?.seek(list)
                }
            })
    }
}

/// Swipes through short films: starts one, leaves in the middle, starts the next.
final class Swiper: Player {
    private let films: [Film]
    private var left: Int

    init(_ films: [Film], swipes: Int, _ checks: Checks) {
        self.films = films
        left = swipes
        super.init("swiper", checks)
    }

    override func start() { swipe() }

    private func swipe() {
        guard left > 0 else { return end() }
        left -= 1
        let film = random.pick(films)
        fetchList(Self.entry(film.list(0))) { [weak self] list in
            guard let self, let segment = list.segments.first else { return }
            fetch(
                segment.url, abortAfter: random.number(0...150_000),
                check: { [checks] in
                    _ = checks.media(segment.path, .whole, $0)
                    return true
                },
                then: { [weak self] _ in
                    guard let self else { return }
                    world.after(random.milliseconds(0...600)) { [weak self] in
                        self?.swipe()
                    }
                })
        }
    }
}

/// Follows a live stream near its end.
final class LiveViewer: Player {
    private let live: LiveStream
    private let until: Int64
    private var last: (number: Int, path: String, at: Int64)?

    init(_ live: LiveStream, until: Int64, _ checks: Checks) {
        self.live = live
        self.until = until
        super.init("viewer of \(live.name)", checks)
    }

    override func start() { reload() }

    private func reload() {
        guard world.now < until else { return end() }
        let asked = world.now
        fetchList(Self.entry(live.list)) { [weak self] list, isOffline in
            self?.look(at: list, askedAt: asked, isOffline)
        }
    }

    private func look(at list: PlayerList, askedAt asked: Int64, _ isOffline: Bool) {
        // The offline form of a live playlist is a different playlist, with EXT-X-ENDLIST.
        guard !isOffline else {
            last = nil
            return world.after(LiveStream.target) { [weak self] in self?.reload() }
        }
        guard let newest = list.segments.last else {
            return world.fault(.status, "\(name): a live list without segments")
        }
        checkBound(askedAt: asked)
        checkForward(list, newest)
        checkFresh(newest, askedAt: asked)
        let isNew = last?.path != newest.path
        last = (newest.number, newest.path, world.now)
        guard isNew else {
            return world.after(LiveStream.target / 2) { [weak self] in self?.reload() }
        }
        fetch(
            newest.url,
            check: { [checks, weak self] response in
                if checks.media(newest.path, .whole, response) { return true }
                // Segments that have left the window are skipped.
                return (self?.failures ?? 9) > 2
            },
            then: { [weak self] _ in
                self?.world.after(LiveStream.target * 3 / 4) { [weak self] in self?.reload() }
            })
    }

    /// Checks that a live playlist is served for at most three and a half target durations without
    /// its origin.
    private func checkBound(askedAt asked: Int64) {
        guard let sent = checks.cdn.listSent[live.list] else { return }
        let most = LiveStream.target * 7 / 2 + World.second
        if asked - sent > most {
            world.fault(
                .liveFresh,
                "\(name): a list is served \((asked - sent) / World.millisecond) ms after the CDN's last answer"
            )
        }
    }

    /// Checks that a playlist does not go backwards within an epoch, which the segment names show.
    private func checkForward(_ list: PlayerList, _ newest: PlayerList.Segment) {
        // After a power cut the stored playlist may be an older one.
        guard let last, last.at > world.lastPowerCut,
            Self.epoch(last.path) == Self.epoch(newest.path)
        else { return }
        if newest.number < last.number {
            world.fault(
                .liveForward, "\(name): the list ends at \(newest.number) after \(last.number)")
        }
    }

    private static func epoch(_ path: String) -> Substring {
        path.split(separator: "/").last?.split(separator: "-").first ?? ""
    }

    /// Checks that the playlist is as new as the CDN's was shortly before the request.
    private func checkFresh(_ newest: PlayerList.Segment, askedAt asked: Int64) {
        guard checks.cdn.isCalm(for: 40 * World.second) else { return }
        let before = asked - LiveStream.target - World.second
        guard before > 0, Self.epoch(newest.path) == "e\(live.epoch)" else { return }
        let least = live.last(at: before)
        if newest.number < least {
            world.fault(
                .liveFresh,
                "\(name): the list ends at \(newest.number) while the CDN has had \(least)")
        }
    }
}
