import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// Simulated power cuts: a run of the daemon is recorded, and the daemon is started on disks in
/// states that are possible at any instant of it.
extension Stories {
    @Suite(
        .tags(.crowded),
        .enabled(if: Tool.cCompiler != nil, "recording needs a C compiler"))
    struct PowerCutTests {
        private static let rounds = max(4, CrashSettings.images / 30)

        @Test(arguments: 0..<rounds)
        func `a power cut leaves no wrong byte, no orphan and no hole in synced objects`(
            round: Int
        ) throws {
            let seed = CrashSettings.seed &+ UInt64(round)
            var dice = SeededDice(seed, 1)
            let run = try RecordedRun(cacheSize: round % 2 == 0 ? "1GB" : "4MB", &dice)
            var kept = 0
            for _ in 0..<CrashSettings.images / Self.rounds {
                let image = try run.image(&dice)
                #expect(image.faults == [], "\(image.name), SLUICE_CRASH_SEED=\(seed)")
                kept += image.hits
            }
            let records = run.log.records.count
            print("power cuts: seed \(seed), \(records) records, \(kept) objects kept in all")
            #expect(kept > 0)
        }
    }
}

/// A recorded run: a clean stop, a kill -9 and another clean stop in one log.
private final class RecordedRun {
    struct Image {
        var name: String
        var faults: [String]
        var hits: Int
    }

    let log: DiskLog
    private let world: CrashWorld
    /// Positions in the log of clean stops, and what was complete then.
    private var goodEnds: [(at: Int, complete: [Int])] = []

    init(cacheSize: String, _ dice: inout SeededDice) throws {
        world = try CrashWorld(cacheSize: cacheSize, &dice)
        let recorder = try DiskRecorder()
        let environment = recorder.environment(world.firstFolder)
        // After a clean stop everything must exist that is not evicted, revalidated or unstorable.
        let lasting = CrashSubject.all.indices.filter {
            cacheSize == "1GB" && CrashSubject.all[$0].isKept
        }
        var moments: [Int] = []
        for ending in [SIGTERM, SIGKILL, SIGTERM] {
            try world.start(environment)
            _ = try world.readEverything()
            if ending == SIGTERM {
                try world.stop()
                moments.append(try recorder.now())
            } else {
                _ = try world.loadAndKill(&dice)
                try recorder.dropTornRecord()
            }
        }
        log = try recorder.log()
        goodEnds = moments.map { (log.count(before: $0), lasting) }
    }

    /// Starts the daemon on a possible disk, and checks everything.
    func image(_ dice: inout SeededDice) throws -> Image {
        let goodEnd = dice.oneIn(3) ? goodEnds[dice.roll(goodEnds.count)] : nil
        let cut = goodEnd?.at ?? dice.roll(log.records.count) + 1
        let temporary = try TemporaryFolder()
        let folder = temporary.makeFolder("cache")
        let name = try PowerCutDisk(log, cut: cut).write(
            to: folder, from: world.firstFolder, &dice)
        var image = Image(name: name, faults: [], hits: 0)
        try world.start(on: folder)
        defer { world.kill() }
        for subject in goodEnd?.complete ?? [] {
            let tally = try world.read(subject, nil, Int.max, 0)
            if tally.hits == 0 { image.faults.append("lost \(CrashSubject.all[subject].path)") }
        }
        let tally = try world.readEverything()
        image.faults += tally.faults + (try world.orphans())
        image.hits = tally.hits
        return image
    }
}
