// Time shift: players see farther back than the CDN's own window (`dvr=`).

/// A live stream with a short window, and players who see two minutes of it.
final class ShiftedLive: Addition {
    private let live: LiveStream
    private var last: ShiftViewer?

    required init(_ stage: Stage) {
        live = LiveStream(name: "shifted", window: 6, first: 40)
        stage.cdn.add(live)
        super.init(stage)
    }

    override func beginRough(until end: Int64) -> [Player] {
        (0..<random.number(1...2)).map { _ in makeViewer(until: end) }
    }

    override func beginCalm() -> [Player] {
        let viewer = makeViewer(until: world.now + 260 * World.second)
        last = viewer
        world.after(45 * World.second) { viewer.start() }
        return [viewer]
    }

    override func beginOffline() -> [Player] {
        guard let last else { return [] }
        return [ShiftReader(live, last.newest, stage.checks)]
    }

    private func makeViewer(until end: Int64) -> ShiftViewer {
        ShiftViewer(live, until: end, stage)
    }

    /// The window is followed for five minutes after the last request.
    override var aftermath: Int64 { 320 * World.second }
    override var allowance: Int { Int(world.now / World.second) }

    static let length = 120

    static func entry(_ live: LiveStream) -> String {
        "/dvr=\(length)/\(SimulatedCDN.base)\(live.list)"
    }
}

/// Follows the window; plays its newest segment, and now and then an old one.
private final class ShiftViewer: Player {
    private let live: LiveStream
    private let stage: Stage
    private let until: Int64
    private var names: [Int: String] = [:]
    private var namedAt: Int64 = 0
    private(set) var newest = -1
    /// Since when nothing has failed; nil while something fails.
    private var calmSince: Int64?
    /// The segments that the CDN offered while they could be fetched, and when.
    private var due: [(path: String, at: Int64)] = []

    init(_ live: LiveStream, until: Int64, _ stage: Stage) {
        self.live = live
        self.until = until
        self.stage = stage
        super.init("viewer of \(live.name), shifted", stage.checks)
    }

    override func start() {
        reload()
        watch()
    }

    private func watch() {
        guard !isDone, !wasStopped else { return }
        let isCalm =
            checks.cdn.isCalm(for: 30 * World.second) && !world.isDiskBad
            && world.now - world.lastDiskFault > 60 * World.second
            && stage.daemon.isRunning && world.now - stage.daemon.startedAt > 20 * World.second
            && world.now - world.lastPowerCut > 60 * World.second
        calmSince = isCalm ? calmSince ?? world.now : nil
        if let calmSince, world.now - calmSince > 20 * World.second, newest >= 0 {
            let path = live.segment(live.last(at: world.now))
            if due.last?.path != path { due.append((path, world.now)) }
        } else {
            due = []
        }
        world.after(World.second) { [weak self] in self?.watch() }
    }

    private func reload() {
        guard world.now < until else { return end() }
        fetch(
            ShiftedLive.entry(live),
            check: { $0.status == 200 && $0.isWhole },
            then: { [weak self] in self?.look(at: $0) })
    }

    private func look(at response: PlayerResponse) {
        guard let list = PlayerList(response.body), let last = list.segments.last else {
            return world.fault(.status, "\(name): 200, and no playlist with segments")
        }
        if list.hasEnd { world.fault(.status, "\(name): a live window has an end") }
        checkNames(list)
        if last.number < newest, !mayHaveForgotten {
            world.fault(.liveForward, "\(name): the list ends at \(last.number) after \(newest)")
        }
        checkReach(list)
        (newest, namedAt) = (last.number, world.now)
        let playable = list.segments.filter { !$0.isGap }
        let segment = random.chance(30) ? playable.isEmpty ? last : random.pick(playable) : last
        play(segment)
    }

    /// True if the window may be lost: a power cut, or the end of a process that could not
    /// write.
    private var mayHaveForgotten: Bool {
        world.lastPowerCut >= namedAt
            || stage.daemon.startedAt > namedAt
                && world.lastDiskFault > namedAt - 30 * World.second
    }

    /// A number means one segment for as long as the window exists.
    private func checkNames(_ list: PlayerList) {
        if mayHaveForgotten { names = [:] }
        for segment in list.segments where !segment.isGap {
            if let known = names[segment.number], known != segment.path {
                world.fault(
                    .liveForward,
                    "\(name): \(segment.number) was \(known) and is \(segment.path)")
            }
            names[segment.number] = segment.path
        }
    }

    /// Everything that could be fetched within the window's length is there.
    private func checkReach(_ list: PlayerList) {
        let known = Set(list.segments.filter { !$0.isGap }.map(\.path))
        let from = world.now - Int64(ShiftedLive.length - 20) * World.second
        let lag = 3 * LiveStream.target
        for segment in due where segment.at > from && segment.at < world.now - lag {
            guard !known.contains(segment.path) else { continue }
            return world.fault(
                .liveFresh,
                "\(name): \(segment.path), offered \((world.now - segment.at) / World.second) s ago, is not there"
            )
        }
    }

    private func play(_ segment: PlayerList.Segment) {
        let calm = calmSince
        fetch(
            segment.url,
            check: { [weak self] response in
                guard let self else { return true }
                if segment.isGap, response.body.isEmpty { return true }
                if checks.media(segment.path, .whole, response) { return true }
                guard failures > 2 else { return false }
                if let calm, calm == calmSince, world.now - calm > 60 * World.second,
                    due.contains(where: { $0.path == segment.path })
                {
                    world.fault(
                        .answered,
                        "\(name): \(segment.path) is listed, and answered with \(response.status)")
                }
                return true
            },
            then: { [weak self] _ in
                self?.world.after(LiveStream.target * 3 / 4) { [weak self] in self?.reload() }
            })
    }
}

/// Plays the whole window while the CDN is unreachable.
private final class ShiftReader: Player {
    private let live: LiveStream
    private let least: Int

    init(_ live: LiveStream, _ least: Int, _ checks: Checks) {
        (self.live, self.least) = (live, least)
        super.init("reader of \(live.name), shifted", checks)
    }

    override func start() {
        fetch(
            ShiftedLive.entry(live),
            check: { $0.status == 200 && $0.isWhole },
            then: { [weak self] response in
                guard let self, let list = PlayerList(response.body) else { return }
                let playable = list.segments.filter { !$0.isGap }
                if (list.segments.last?.number ?? -1) < least {
                    world.fault(.liveForward, "\(name): the list ends before \(least)")
                }
                if playable.count < 10 {
                    world.fault(.offline, "\(name): \(playable.count) segments are left")
                }
                playToEnd(playable[...])
            })
    }
}
