// Recordings: a live stream is recorded without a player while the daemon is killed and restarted.
// Afterwards the recording must contain every segment that it could have had.

/// A live stream, and the one who records it.
final class TapedLive: Addition {
    private let live: LiveStream
    private let taper: Taper

    required init(_ stage: Stage) {
        live = LiveStream(name: "taped", window: 9, first: 500)
        stage.cdn.add(live)
        taper = Taper(live, stage)
        super.init(stage)
    }

    override func beginRough(until end: Int64) -> [Player] {
        if random.chance(30) {
            let length = Int((end - world.now) / World.second)
            world.after(random.seconds(30...max(31, length))) {
                [live, world] in live.restart(at: world.now)
            }
        }
        return [taper]
    }

    override func beginCalm() -> [Player] {
        taper.start()
        // The outage between two reloads, and the end of the daemon while it records.
        switch random.number(0...3) {
        case 0:
            world.after(60 * World.second) { [stage] in stage.daemon.terminate() }
        case 1, 2:
            let pause = random.seconds(0...5)
            world.after(60 * World.second) { [stage] in
                stage.daemon.kill()
                stage.world.after(pause) { stage.daemon.start() }
            }
        default: break
        }
        world.after(140 * World.second) { [taper] in taper.finish() }
        return []
    }

    override func beginOffline() -> [Player] {
        guard let viewer = taper.viewer() else { return [] }
        return [viewer]
    }

    /// A reload and a segment every four seconds, and as many again for retries.
    override var allowance: Int { Int(world.now / World.second) }
}

/// Records the stream, and keeps account of what the recording must contain.
private final class Taper: Orderer {
    private let live: LiveStream
    private let stage: Stage
    private var id: String?
    private var orderedAt: Int64 = .max
    private var firstOrder: Int64 = .max
    private var wasStarted = false
    private var isFinishing = false
    /// The segments that the CDN offered while they could be fetched, and when.
    private var due: [(path: String, at: Int64)] = []
    private var lastUp: Int64 = -1
    private var cut: Int64 = -1
    private var play: String?

    init(_ live: LiveStream, _ stage: Stage) {
        self.live = live
        self.stage = stage
        super.init("recorder of \(live.name)", stage.checks)
    }

    override func start() {
        guard !wasStarted else { return }
        wasStarted = true
        order()
        watch()
    }

    private func order() {
        tell("POST", "/api/recordings?url=\(Self.encoded(live.list))&for=7d") {
            [weak self] response in
            guard let self else { return }
            guard (200...299).contains(response.status), let id = response.member("id") else {
                return refuse("an order", response)
            }
            self.id = id
            (orderedAt, due) = (world.now, [])
            firstOrder = min(firstOrder, world.now)
            look()
        }
    }

    /// Notes each second what is offered, if the recording can have it.
    private func watch() {
        guard !isDone, !wasStopped else { return }
        if stage.daemon.isRunning { lastUp = world.now }
        if world.lastPowerCut > cut {
            cut = world.lastPowerCut
            due.removeAll { $0.at > cut - 120 * World.second }
        }
        let isCalm =
            checks.cdn.isCalm(for: 30 * World.second) && !world.isDiskBad
            && world.now - world.lastDiskFault > 60 * World.second
        if !isCalm {
            due.removeAll { $0.at > world.now - 60 * World.second }
        } else if id != nil, !isFinishing, world.now - orderedAt > 20 * World.second,
            world.now - lastUp < 25 * World.second, world.now - cut > 60 * World.second
        {
            let path = live.segment(live.last(at: world.now))
            if due.last?.path != path { due.append((path, world.now)) }
        }
        world.after(World.second) { [weak self] in self?.watch() }
    }

    private func look() {
        guard let id else { return order() }
        tell("GET", "/api/recordings/\(id)") { [weak self] response in
            guard let self else { return }
            guard response.status == 200, let state = response.member("state") else {
                return world.fault(.durability, "the recording is gone: \(response.status)")
            }
            switch state {
            case "paused":
                return tell("POST", "/api/recordings/\(id)/resume") { [weak self] _ in
                    self?.later(2) { [weak self] in self?.look() }
                }
            case "failed", "done":
                if isFinishing, state == "done" { return close(response) }
                // The first reading failed, or there was no room for longer than it waits.
                let mayFail =
                    due.isEmpty || world.lastDiskFault > firstOrder || world.isDiskBad
                if !mayFail {
                    return world.fault(
                        .answered,
                        "\(name): \(state) on its own: \(response.member("reason") ?? "")")
                }
                self.id = nil
                return later(5) { [weak self] in self?.order() }
            default: break
            }
            guard isFinishing else { return later(7) { [weak self] in self?.look() } }
            tell("POST", "/api/recordings/\(id)/stop") { [weak self] _ in
                self?.later(3) { [weak self] in self?.look() }
            }
        }
    }

    /// Ends the recording at the next opportunity.
    func finish() {
        due.removeAll { $0.at > world.now - 12 * World.second }
        isFinishing = true
    }

    private func close(_ response: PlayerResponse) {
        play = response.member("play")
        // A lost answer to an order may have left a second recording.
        tell("GET", "/api/recordings") { [weak self] response in
            let text = String(decoding: response.body, as: UTF8.self)
            let all = text.matches(of: /"id":"([0-9a-f]+)"/).map { String($0.1) }
            self?.stopAll(all[...])
        }
    }

    private func stopAll(_ left: ArraySlice<String>) {
        guard let next = left.first else { return end() }
        tell("POST", "/api/recordings/\(next)/stop") { [weak self] _ in
            self?.stopAll(left.dropFirst())
        }
    }

    /// Returns a viewer of the recording; nil if there is none.
    func viewer() -> Player? {
        guard let play else { return nil }
        return TapeViewer(play, due: due.map(\.path), checks)
    }
}

/// Plays the recording from start to end.
private final class TapeViewer: Player {
    private let play: String
    private let due: [String]

    init(_ play: String, due: [String], _ checks: Checks) {
        (self.play, self.due) = (play, due)
        super.init("viewer of the recording", checks)
    }

    override func start() {
        fetchList(PlayerList.target(play)) { [weak self] list in
            guard let self else { return }
            // A gap has no title.
            let segments = list.segments.filter { !$0.path.isEmpty }
            let paths = segments.map(\.path)
            if !list.hasEnd { world.fault(.status, "\(name): its playlist has no end") }
            if Set(paths).count != paths.count {
                world.fault(.lengths, "\(name): a segment is named twice: \(paths)")
            }
            let known = Set(paths)
            if let missing = due.first(where: { !known.contains($0) }) {
                world.fault(
                    .offline,
                    "\(name): \(missing) was offered and is not there; it has \(paths.first ?? "") to \(paths.last ?? ""), \(paths.count)"
                )
            }
            playToEnd(segments[...])
        }
    }
}
