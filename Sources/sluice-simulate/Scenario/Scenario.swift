// The meaning of a seed: the daemon, the CDN, the players, and the faults with their times.
import CSimulation
import DaemonService
import Glibc

/// The plan of a run, made from its seed before anything happens.
struct ScenarioPlan {
    let seed: UInt64
    let parts: Parts
    let settings: [String: String]
    let films: [Film]
    let lives: Int
    let weather: Weather
    let players: Int
    /// The length of the rough phase.
    let rough: Int64
    let kills, powerCuts, restarts, outages, diskFaults: Int
    let additions: [AdditionKind]
    /// How many players in a hundred use HTTP/2.
    let http2: Int
    /// How often the configuration is read again.
    let reloads: Int

    /// Makes the plan from the seed, without the absent parts; `rough` is the length of the rough
    /// phase in seconds, nil to take it from the seed.
    init(seed: UInt64, parts: Parts = .all, rough seconds: Int? = nil) {
        var random = Seeded(seed ^ 0x5EED)
        self.seed = seed
        self.parts = parts
        var settings = [
            "port": "\(SimulatedDaemon.port)", "allow-private": "true", "log-level": "notice",
            "loops": "\(random.number(1...2))",
        ]
        settings["slots"] = "\(random.pick([1, 2, 4, 32]))"
        settings["express-slots"] = "\(random.pick([1, 4, 16]))"
        settings["look-ahead"] = random.pick(["off", "auto", "20"])
        settings["cache-size"] = random.pick(["1MB", "10GB", "10GB", "10GB"])
        settings["min-free"] = "0"
        if random.chance(20) { settings["host-limit"] = "\(random.number(1...4))" }
        if random.chance(20) { settings["concurrency"] = random.pick(["fixed:4", "table"]) }
        self.settings = settings
        let made = (0..<random.number(1...4)).map {
            Film(name: "film\($0)", variants: 1 + $0 % 3, segments: 3 + Int(seed % 7) + $0)
        }
        films = parts.has("films") ? made : Array(made.prefix(1))
        lives = parts.count("live", random.number(0...2))
        // Few kinds of faults at a time: a mixture of all hides the effect of each.
        var weather = Weather()
        weather.requestFaults = random.pick([0, 3, 10, 30, 60])
        weather.connectionFaults = random.pick([0, 0, 5, 30])
        weather.kinds = []
        for kind in OriginFault.allCases where random.chance(40) && parts.has(kind.rawValue) {
            weather.kinds.insert(kind)
        }
        weather.rate = random.pick([60_000, 400_000, 4_000_000])
        let slowest = random.pick([10, 60, 900])
        weather.latency = World.millisecond...Int64(slowest) * World.millisecond
        self.weather = weather
        players = parts.count("players", random.number(2...10))
        let drawn = random.number(60...240)
        rough = Int64(seconds ?? drawn) * World.second
        kills = parts.count("kills", random.pick([0, 0, 1, 3]))
        powerCuts = parts.count("power-cuts", random.pick([0, 0, 0, 1, 2]))
        restarts = parts.count("restarts", random.pick([0, 0, 1]))
        outages = parts.count("outages", random.pick([0, 0, 1, 2]))
        diskFaults = parts.count("disk-faults", random.pick([0, 0, 0, 2, 20]))
        additions = AdditionKind.chosen(
            seed: seed, keepsAll: settings["cache-size"] != "1MB", parts: parts)
        var protocols = Seeded(seed ^ 0x9113)
        http2 = parts.count("http2", protocols.pick([0, 0, 40, 100]))
        reloads = parts.count("reloads", protocols.pick([0, 0, 2, 5]))
    }

    var keepsAll: Bool { settings["cache-size"] != "1MB" }

    var summary: String {
        "\(films.count) films, \(lives) live, \(players) players, \(weather.requestFaults) % of requests and "
            + "\(weather.connectionFaults) % of connections with \(weather.kinds.map(\.rawValue).sorted().joined(separator: " ")), "
            + "\(rough / World.second) s, \(kills) kills, \(powerCuts) power cuts, \(restarts) restarts, "
            + "\(outages) outages, \(diskFaults) disk faults, "
            + additions.map { "\($0.rawValue), " }.joined()
            + "\(reloads) reloads, \(http2) % HTTP/2, "
            + settings.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(
                separator: ", ")
    }
}

/// A run of a plan.
final class Scenario {
    let plan: ScenarioPlan
    let world: World
    let cdn: SimulatedCDN
    let daemon: SimulatedDaemon
    let manager: ServiceManager
    let checks: Checks
    let extras: Extras
    let additions: [Addition]
    let configurations: Configurations
    var players: [Player] = []
    var random: Seeded
    private var reloading: Seeded
    let disk: FaultyDisk
    private var isRough = true
    /// The sockets of a daemon that has not had a player yet.
    var socketsAtRest = 0

    init(
        _ plan: ScenarioPlan, _ extras: ExtrasPlan, _ configurations: Configurations,
        trace: Trace, log: LogLines
    ) {
        self.plan = plan
        self.configurations = configurations
        world = World(seed: plan.seed, trace: trace, log: log)
        world.clients.share = plan.http2
        let lives = (0..<plan.lives).map {
            LiveStream(name: "live\($0)", window: 4 + $0 * 3, first: $0 * 1_000)
        }
        random = world.fork()
        reloading = Seeded(plan.seed ^ 0x516)
        cdn = SimulatedCDN(world, films: plan.films, lives: lives)
        checks = Checks(world: world, cdn: cdn)
        disk = FaultyDisk(world)
        self.extras = Extras(extras, checks, disk)
        daemon = SimulatedDaemon(world, configurations.ordinary)
        manager = ServiceManager(world, daemon)
        let stage = Stage(checks: checks, daemon: daemon)
        additions = plan.additions.map { $0.make(stage) }
    }

    /// Runs the plan; a failure is in `world.failure`.
    func run() {
        world.trace.note(0, "seed \(plan.seed): \(plan.summary)")
        world.begin()
        world.fail = { [unowned self] call, path, _ in disk.error(of: call, path, &random) }
        daemon.diskFaults = { [unowned self] in disk.countFaults() }
        daemon.start()
        world.run(until: 2 * World.second)
        socketsAtRest = daemon.sockets
        runRough()
        runCalm()
        runScenes()
        for phase in Self.phases(keepsAll: plan.keepsAll)
        where world.failure == nil && plan.parts.has(phase.name) {
            phase.play(self)()
        }
        runEmpty()
        runStop()
        csim_end()
    }

    /// A phase between the scenes and the end, by the name of its part.
    typealias Phase = (name: String, play: (Scenario) -> () -> Void)

    /// The phases in order: most of them only if the store has room for everything.
    static func phases(keepsAll: Bool) -> [Phase] {
        guard keepsAll else { return [("reloaded", runReloaded)] }
        return [
            ("unopened", runUnopened), ("outlived", runOutlived), ("offline", runOffline),
            ("torn", runTorn), ("second", runSecond), ("reloaded", runReloaded),
            ("upgrades", runUpgrades), ("policies", runPolicies), ("gone", runGone),
        ]
    }

    // MARK: The rough phase

    private func runRough() {
        cdn.weather = plan.weather
        let end = world.now + plan.rough
        func sometime(_ count: Int, _ action: @escaping () -> Void) {
            for _ in 0..<count {
                world.after(random.seconds(0...Int(plan.rough / World.second)), action)
            }
        }
        sometime(plan.kills) { [unowned self] in
            guard isRough else { return }
            daemon.kill()
            restart()
        }
        sometime(plan.powerCuts) { [unowned self] in
            daemon.kill(cuttingPower: random.next())
            restart()
        }
        sometime(plan.restarts) { [unowned self] in daemon.terminate() }
        for _ in 0..<plan.reloads {
            world.after(reloading.seconds(0...Int(plan.rough / World.second))) {
                [unowned self] in
                guard isRough else { return }
                daemon.reload(
                    reloading.chance(50) ? configurations.ordinary : configurations.extended)
            }
        }
        sometime(plan.outages) { [unowned self] in
            cdn.beginOutage()
            world.after(random.seconds(1...60)) { [unowned self] in
                cdn.endOutage()
            }
        }
        sometime(plan.diskFaults) { [unowned self] in
            guard isRough else { return }
            disk.fail(with: random.pick([ENOSPC, EIO, EDQUOT, EMFILE]))
        }
        for _ in 0..<plan.players {
            world.after(random.seconds(0...Int(plan.rough / World.second))) {
                [unowned self] in addPlayer(until: end)
            }
        }
        for live in cdn.lives where random.chance(50) {
            world.after(plan.rough / 3) { [world] in live.freeze(at: world.now) }
            world.after(plan.rough / 2) { [world, random] in
                var random = random
                if random.chance(50) {
                    live.thaw(at: world.now)
                } else {
                    live.restart(at: world.now)
                }
            }
        }
        players += extras.beginRough(until: end)
        for addition in additions {
            for player in addition.beginRough(until: end) {
                players.append(player)
                world.after(random.seconds(0...20)) { player.start() }
            }
        }
        manager.watch()
        world.run(until: end)
    }

    private func restart() {
        world.after(random.seconds(0...5)) { [unowned self] in daemon.start() }
    }

    private func addPlayer(until end: Int64) {
        let player: Player
        let film = random.pick(plan.films)
        switch random.number(0...9) {
        case 0...3:
            player = Viewer(film, segments: random.number(1...8), checks)
        case 4...5: player = Seeker(film, ranges: random.number(1...12), checks)
        case 6...7:
            player = Swiper(plan.films, swipes: random.number(2...10), checks)
        default:
            if let live = cdn.lives.first {
                player = LiveViewer(live, until: end, checks)
            } else {
                player = Viewer(film, segments: 3, checks)
            }
        }
        if random.chance(25) { player.client.rate = random.number(20_000...400_000) }
        players.append(player)
        player.start()
        if random.chance(20) {
            world.after(random.seconds(1...30)) { player.stop() }
        }
    }

    // MARK: The calm phase

    var complete: [Viewer] = []

    /// Ends all faults; every remaining player gets what it requests.
    private func runCalm() {
        guard world.failure == nil else { return }
        cdn.weather = .calm
        cdn.endOutage()
        disk.calm()
        isRough = false
        world.note("world: calm")
        for live in cdn.lives { live.thaw(at: world.now) }
        let begin = world.now
        for film in plan.films where plan.parts.has("calm") {
            let viewer = Viewer(film, segments: 100, checks)
            viewer.mustStore = plan.keepsAll
            complete.append(viewer)
            world.after(30 * World.second) { viewer.start() }
        }
        for live in cdn.lives where plan.parts.has("calm") {
            let viewer = LiveViewer(live, until: begin + 150 * World.second, checks)
            players.append(viewer)
            world.after(45 * World.second) { viewer.start() }
        }
        let calm = extras.beginCalm() + additions.flatMap { $0.beginCalm() }
        if plan.parts.has("calm") { players += calm }
        let all = { [unowned self] in players + complete }
        world.run(until: begin + 900 * World.second) {
            all().allSatisfy { $0.isDone || $0.wasStopped }
                && self.world.now > begin + 60 * World.second
        }
        guard world.failure == nil else { return }
        for player in all() where !player.isDone && !player.wasStopped {
            world.fault(
                .answered,
                "\(player.name): not done after \((world.now - begin) / World.second) calm seconds, \(player.failures) failures in a row"
            )
        }
    }

    /// Plays the scenes whose results are known exactly while nothing else happens.
    private func runScenes() {
        guard world.failure == nil else { return }
        world.run(for: 20 * World.second)
        let scenes = QuietScenes(
            checks, keepsAll: plan.keepsAll,
            slots: Int(plan.settings["slots"] ?? "") ?? 32, parts: plan.parts)
        players.append(scenes)
        scenes.start()
        let begin = world.now
        world.run(until: begin + 1_200 * World.second) { scenes.isDone }
        if !scenes.isDone { world.fault(.answered, "\(scenes.scene): not done") }
    }
}
