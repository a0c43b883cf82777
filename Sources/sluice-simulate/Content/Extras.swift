// Additions of a seed to the plain films and live streams: regions of the CDN and their players.
import CSimulation

/// The extras of a seed.
struct ExtrasPlan {
    let lowLatency: Bool
    let restless: Bool
    let isProtected: Bool
    /// How often the wall clock is set, and how often the disk is full for a while.
    let clockJumps, fullDisks: Int
    /// How often the disk is slow, and how often it takes no writes, for a while.
    let slowDisks, readOnlyDisks: Int
    /// Settings of the daemon in addition to those of the plan.
    private(set) var settings: [String: String] = [:]

    /// Makes the plan from the seed, without the absent parts.
    init(seed: UInt64, parts: Parts = .all) {
        var random = Seeded(seed ^ 0xE877A)
        lowLatency = random.chance(35) && parts.has("low-latency")
        restless = random.chance(40) && parts.has("restless")
        isProtected = random.chance(40) && parts.has("protected")
        clockJumps = parts.count("clock-jumps", random.pick([0, 0, 1, 3]))
        fullDisks = parts.count("full-disks", random.pick([0, 0, 0, 1, 2]))
        slowDisks = parts.count("slow-disks", random.pick([0, 0, 0, 1, 2]))
        readOnlyDisks = parts.count("read-only-disks", random.pick([0, 0, 0, 0, 1]))
        if random.chance(50) { settings["keys"] = random.pick(["off", "standard", "auto"]) }
    }
}

/// The extras of a run.
final class Extras {
    private let world: World
    private let checks: Checks
    private let disk: FaultyDisk
    private var random: Seeded
    private let lowLatency: LowLatencyStream?
    private let restless: RestlessLive?
    private let protected: ProtectedFilm?
    private let plan: ExtrasPlan

    init(_ plan: ExtrasPlan, _ checks: Checks, _ disk: FaultyDisk) {
        let (world, cdn) = (checks.world, checks.cdn)
        self.world = world
        self.checks = checks
        self.disk = disk
        self.plan = plan
        random = world.fork()
        lowLatency =
            plan.lowLatency
            ? LowLatencyStream(
                world, name: "ll", partsAreRanges: random.chance(40), hidesEnds: random.chance(50),
                first: random.number(0...2_000)) : nil
        restless =
            plan.restless
            ? RestlessLive(
                world, name: "restless", token: random.pick([.none, .plain, .signature]),
                isDated: random.chance(50),
                first: random.number(0...300)) : nil
        protected =
            plan.isProtected
            ? ProtectedFilm(
                name: "keyed", segments: random.number(2...9),
                moved: random.pick([nil, 301, 302, 307, 308]))
            : nil
        if let restless { cdn.regions.append(restless) }
        if let protected { cdn.regions.append(protected) }
        if let lowLatency { cdn.regions.append(lowLatency) }
    }

    /// Schedules the faults and returns the players for the rough phase.
    func beginRough(until end: Int64) -> [Player] {
        var players: [Player] = []
        let length = Int((end - world.now) / World.second)
        func sometime(_ action: @escaping () -> Void) {
            world.after(random.seconds(0...length), action)
        }
        func join(_ player: Player) {
            players.append(player)
            sometime { player.start() }
            if random.chance(30) { sometime { player.stop() } }
        }
        for _ in 0..<plan.clockJumps { sometime { [self] in jump() } }
        for _ in 0..<plan.fullDisks { sometime { [self] in fillDisk() } }
        for _ in 0..<plan.slowDisks { sometime { [self] in slowDisk() } }
        for _ in 0..<plan.readOnlyDisks { sometime { [self] in lockDisk() } }
        if let lowLatency {
            for _ in 0..<random.number(1...3) {
                join(LowLatencyViewer(lowLatency, until: end, checks))
            }
            if random.chance(40) {
                sometime { lowLatency.freeze() }
                sometime { lowLatency.thaw() }
            }
        }
        if let restless {
            for _ in 0..<random.number(1...3) {
                join(RestlessViewer(restless, random.pick(RestlessLive.tracks), until: end, checks))
            }
            for _ in 0..<random.number(0...3) { disturb(restless, sometime) }
        }
        if let protected {
            for _ in 0..<random.number(1...2) {
                let track = random.pick(["v", "a"])
                join(ProtectedViewer(protected, track, most: random.number(1...20), checks))
            }
        }
        return players
    }

    /// Sets the wall clock forwards or backwards, as an administrator corrects it.
    private func jump() {
        let seconds = random.pick([-86_400, -7_200, -120, -5, 5, 90, 3_600, 200_000])
        world.mark("clock jump")
        world.note("world: the wall clock jumps by \(seconds) s")
        csim_shift_wall(Int64(seconds) * World.second)
    }

    /// Leaves little or no space on the disk for a while.
    private func fillDisk() {
        guard !isCalm else { return }
        world.mark("full disk")
        disk.fill(leaving: random.pick([0, 4_096, 300_000]), for: random.seconds(1...60))
    }

    /// Lets each sync of a stored file take up to a time.
    private func slowDisk() {
        guard !isCalm else { return }
        world.mark("slow disk")
        let most = random.pick([5, 60, 400, 3_000])
        world.note("disk: syncs take up to \(most) ms")
        disk.slow(for: random.seconds(5...60)) { [self] in random.milliseconds(0...most) }
    }

    private func lockDisk() {
        guard !isCalm else { return }
        world.mark("read-only disk")
        disk.lock(for: random.seconds(5...40))
    }

    private var isCalm = false

    private func disturb(_ live: RestlessLive, _ sometime: (@escaping () -> Void) -> Void) {
        switch random.number(0...3) {
        case 0:
            let count = random.pick([1, 3, 40, 5_000])
            sometime { live.leap(by: count) }
        case 1, 2: sometime { live.restart() }
        default:
            let track = random.pick(RestlessLive.tracks)
            sometime { live.freeze(track) }
            sometime { live.thaw() }
        }
    }

    /// The players while the CDN is unreachable; they must get everything that was played before.
    func beginOffline() -> [Player] {
        guard let protected else { return [] }
        return ["v", "a"].map {
            ProtectedViewer(protected, $0, most: .max, checks)
        }
    }

    /// The players after the faults; each must reach its end.
    func beginCalm() -> [Player] {
        isCalm = true
        var players: [Player] = []
        func join(_ player: Player) {
            players.append(player)
            world.after(45 * World.second) { player.start() }
        }
        if let lowLatency {
            lowLatency.thaw()
            join(LowLatencyViewer(lowLatency, until: world.now + 150 * World.second, checks))
        }
        if let restless {
            restless.thaw()
            for track in RestlessLive.tracks + ["v"] {
                let until = world.now + 200 * World.second
                join(RestlessViewer(restless, track, until: until, checks))
            }
            if random.chance(60) {
                world.after(100 * World.second) { [self] in disturb(restless) { $0() } }
            }
        }
        if let protected {
            for track in ["v", "a"] {
                join(ProtectedViewer(protected, track, most: .max, checks))
            }
        }
        return players
    }
}
