// Downloads: titles and a file that nobody plays are ordered; once complete, they play without the
// CDN, also after a power cut.

/// Two titles and a file, and the one who orders them.
final class OrderedDownloads: Addition {
    private let film: Film
    private let locked: ProtectedFilm
    private let file: OriginFile
    private let downloader: Downloader

    required init(_ stage: Stage) {
        var random = stage.world.fork()
        film = Film(
            name: "ordered", variants: random.number(1...3), segments: random.number(2...9))
        locked = ProtectedFilm(
            name: "locked", segments: random.number(2...6), moved: random.pick([nil, 302, 307]))
        file = OriginFile(
            "/ordered/file.ts", size: random.pick([1, 4_000, 300_000, 9_000_000]),
            validator: random.pick([.strong, .date, .none]), hasRanges: random.chance(70),
            isChunked: random.chance(20))
        stage.cdn.add(film)
        stage.cdn.add(file)
        stage.cdn.regions.append(locked)
        downloader = Downloader([film.master, locked.master, file.path], stage.checks)
        super.init(stage)
    }

    override func beginRough(until end: Int64) -> [Player] {
        let length = Int((end - world.now) / World.second)
        for _ in 0..<random.number(0...4) {
            world.after(random.seconds(0...length)) { [downloader] in
                downloader.disturb()
            }
        }
        return [downloader]
    }

    override func beginCalm() -> [Player] {
        downloader.finish()
        return []
    }

    override func beginOffline() -> [Player] {
        let checks = stage.checks
        return [WholeFilm(film, checks), OfflineReader(path: file.path, checks)]
            + ["v", "a"].map {
                ProtectedViewer(locked, $0, most: .max, checks)
            }
    }

    /// Each part may take the attempts of a player's request, and each resumption begins anew.
    override var allowance: Int { 25 * 60 * (1 + downloader.resumptions) }
}

/// Orders downloads, pauses, cancels and resumes them, and waits until they are complete.
private final class Downloader: Orderer {
    private var waiting: [String]
    private var orders: [(path: String, id: String)] = []
    private var isFinishing = false
    private var wasStarted = false
    private(set) var resumptions = 0

    init(_ paths: [String], _ checks: Checks) {
        waiting = paths
        super.init("downloader", checks)
    }

    override func start() {
        guard !wasStarted else { return }
        wasStarted = true
        next()
    }

    /// What happens next to an order when it is looked at.
    private var wish: String?

    /// Pauses or cancels an order at the next opportunity.
    func disturb() { wish = random.pick(["pause", "pause", "cancel"]) }

    /// Lets every order come to its end.
    func finish() {
        isFinishing = true
        wish = nil
        start()
    }

    private func next() {
        if let path = waiting.first { return place(path) }
        look(orders[...])
    }

    private func place(_ path: String) {
        tell("POST", "/api/downloads?url=\(Self.encoded(path))") { [weak self] response in
            guard let self else { return }
            guard (200...299).contains(response.status), let id = response.member("id") else {
                // The origin refuses the playlist at present.
                if [404, 403, 410, 409, 429].contains(response.status) {
                    return later(5) { [weak self] in self?.next() }
                }
                return refuse("an order", response)
            }
            waiting.removeFirst()
            orders.removeAll { $0.path == path }
            orders.append((path, id))
            resumptions += 1
            later(random.number(0...5)) { [weak self] in self?.next() }
        }
    }

    private func look(_ left: ArraySlice<(path: String, id: String)>) {
        guard let order = left.first else {
            return later(3) { [weak self] in self?.lookAgain() }
        }
        tell("GET", "/api/downloads/\(order.id)") { [weak self] response in
            guard let self else { return }
            guard response.status == 200, let state = response.member("state") else {
                return world.fault(
                    .durability, "the order of \(order.path) is gone: \(response.status)")
            }
            if let wish, state != "complete" {
                self.wish = nil
                return act(wish, order, left)
            }
            switch state {
            case "complete": complete.insert(order.path)
            case "paused", "failed":
                if isFinishing || random.chance(20) { return act("resume", order, left) }
            default: break
            }
            look(left.dropFirst())
        }
    }

    private var complete: Set<String> = []

    private func lookAgain() {
        if isFinishing, waiting.isEmpty, orders.allSatisfy({ complete.contains($0.path) }) {
            return end()
        }
        complete = []
        next()
    }

    private func act(
        _ what: String, _ order: (path: String, id: String),
        _ left: ArraySlice<(path: String, id: String)>
    ) {
        resumptions += what == "resume" ? 1 : 0
        tell("POST", "/api/downloads/\(order.id)/\(what)") { [weak self] response in
            guard let self else { return }
            // 409: it is complete by now. 404: an earlier attempt to cancel it was answered late.
            guard [200, 409].contains(response.status) || what == "cancel" else {
                return refuse(what, response)
            }
            if what == "cancel" {
                orders.removeAll { $0.id == order.id }
                waiting.append(order.path)
            }
            look(left.dropFirst())
        }
    }
}

/// Plays the best variant that the daemon names, from start to end.
final class WholeFilm: Player {
    private let film: Film

    init(_ film: Film, _ checks: Checks) {
        self.film = film
        super.init("viewer of all of \(film.name)", checks)
    }

    override func start() {
        fetchList(Self.entry(film.master)) { [weak self] master in
            guard let self, let best = master.variants.last else { return }
            fetch(
                best,
                check: { [film] response in
                    guard response.status == 200, response.isWhole else { return false }
                    return PlayerList(response.body)?.segments.count == film.segments
                },
                then: { [weak self] response in
                    self?.playToEnd((PlayerList(response.body)?.segments ?? [])[...])
                })
        }
    }
}
