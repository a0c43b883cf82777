import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// Everything at once, for as long as one likes: films, feeds, live streams, longer windows,
/// recordings and downloads, with restarts, kills, outages of the origin and a full disk.
///
/// Every byte is compared; what the daemon takes is sampled, and may not grow. `SOAK_SECONDS`
/// says how long to go on; `make soak HOURS=2` sets it and runs the release build. A suite of its
/// own: of two time limits the shorter one holds, and that of the stories is five minutes.
@Suite(.serialized, .tags(.timed), .timeLimit(.minutes(1_440)), .grouped)
struct SoakTests {
    @Test
    func `hours of use with every disturbance lose no byte and grow nothing`() throws {
        let seconds = getenv("SOAK_SECONDS").flatMap { Int(String(cString: $0)) } ?? 12
        let soak = try Soak(seconds: seconds)
        try soak.run()
        let tally = soak.world.tally
        print(soak.report.text(tally))
        let hasNoFault = tally.faults.isEmpty
        #expect(hasNoFault, "\(tally.faults.count): \(tally.faults.prefix(5))")
        #expect(soak.report.growth == [])
        #expect(tally.hits > 0 && tally.done["live reloads", default: 0] > 0)
    }
}

/// A run of lives of the daemon, each with its disturbances and a quiet end.
private final class Soak {
    let world: SoakWorld
    private(set) var report = SoakReport()
    private let seconds: Int
    private let begin = ContinuousClock.now
    private var life = 0
    private var lifeBegin = ContinuousClock.now
    /// When the next sample is due.
    private var nextSample = ContinuousClock.now

    init(seconds: Int) throws {
        self.seconds = seconds
        world = try SoakWorld()
    }

    /// Seconds of one life: at least six in a soak, none longer than twenty minutes.
    private var lifeSeconds: Double { min(1_200, max(12, Double(seconds) / 6)) }

    func run() throws {
        let players = startPlayers()
        let end = begin + .seconds(seconds)
        while .now < end, world.daemon.isRunning {
            try live()
            try world.quietly {
                // Connections of players that left are closed when the daemon's loop comes to it.
                _ = eventually(within: .seconds(20)) { world.figure("slots_in_use") == 0 }
                if let slots = world.figure("slots_in_use"), slots != 0 {
                    world.note(fault: "\(slots) slots in use without players")
                }
                sample(isQuiet: true)
            }
            // Players are at it again when the daemon ends.
            world.pause(.milliseconds(700))
            if !world.daemon.isRunning { break }
            try restart(life % 2 == 0 ? SIGTERM : SIGKILL)
        }
        if !world.daemon.isRunning {
            world.note(
                fault: "the daemon ended by itself: \(world.daemon.standardError.suffix(400))")
        }
        world.finish()
        for player in players { try player.value(within: .seconds(90)) }
        report.seconds = (.now - begin) / .seconds(1)
    }

    /// One life of the daemon up to its end.
    private func live() throws {
        lifeBegin = .now
        let short = Duration.seconds(min(20, lifeSeconds / 8))
        wait(0.2)
        try disturb(.outage) { try world.outage(short) }
        wait(0.5)
        if world.disk != nil { try disturb(.fullDisk) { try world.fillDisk(short) } }
        wait(0.7)
        // What was asked of the origin is of no use for a check of hours.
        world.cdn.resetLog()
        wait(1)
    }

    private func disturb(_ kind: SoakDisturbance, _ body: () throws -> Void) rethrows {
        report.disturbances[kind, default: 0] += 1
        try body()
    }

    private func restart(_ signal: Int32) throws {
        try disturb(.restart) { try world.restart(signal) }
        life += 1
    }

    /// Samples until so much of this life is over.
    private func wait(_ part: Double) {
        let end = lifeBegin + .seconds(lifeSeconds * part)
        while .now < end, world.daemon.isRunning {
            if .now >= nextSample {
                sample()
                nextSample = .now + .seconds(5)
            }
            usleep(50_000)
        }
    }

    private func sample(isQuiet: Bool = false) {
        report.add(
            SoakSample(
                time: (.now - begin) / .seconds(1), age: (.now - lifeBegin) / .seconds(1),
                life: life, isQuiet: isQuiet, values: world.sample()))
    }

    private func startPlayers() -> [Background<Void>] {
        let world = world
        let streams = world.catalogue.streams
        var players: [Background<Void>] = []
        /// `make` runs on the thread of the player, which its rounds share.
        func start(
            _ name: String, _ make: @escaping @Sendable (SoakPlayer) -> () throws -> Void
        ) {
            let number = players.count
            players.append(world.start(name) { make(SoakPlayer(world, number)) })
        }
        for _ in 0..<3 { start("film") { player in { try player.film() } } }
        for stream in streams {
            start("live") { player in
                var seen: Int?
                return { try player.live(stream, seen: &seen) }
            }
            start("time shift") { player in { try player.timeShift(stream) } }
        }
        start("recording") { player in { try player.recording(streams[1]) } }
        for name in ["one", "two"] {
            start("feed") { player in
                var place: Int?
                return { try player.feed(name, at: &place) }
            }
        }
        start("download") { player in
            var number = 0
            var kept: [(id: String, title: SoakCatalogue.Title)] = []
            return {
                number += 1
                try player.download(number, kept: &kept)
            }
        }
        start("mount") { player in { try player.changing() } }
        return players
    }
}
