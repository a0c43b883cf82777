import Glibc
import ScenarioSupport
import Testing

/// The crash rig: kills at random instants under a mixed load, with a check of all bytes after
/// each.
///
/// `Fixtures/tools/crash` runs it for any time; here it takes about two minutes.
extension Stories {
    @Suite(.tags(.crowded, .threads)) struct CrashTests {
        @Test(arguments: 0..<CrashSettings.rounds)
        func `a kill at any instant leaves no wrong byte and no orphaned file`(round: Int) throws {
            let seed = CrashSettings.seed &+ UInt64(round)
            var dice = SeededDice(seed, 0)
            // Every other round evicts constantly.
            let world = try CrashWorld(cacheSize: round % 2 == 0 ? "4MB" : "1GB", &dice)
            let tally = try world.round(
                kills: CrashSettings.killsPerRound, until: CrashSettings.endOfRound, &dice)
            print(
                "crash rig: seed \(seed), \(tally.kills) kills, \(tally.answers) answers,",
                "\(tally.hits) hits, \(tally.bytes / 1_000_000) MB compared")
            #expect(tally.faults == [], "SLUICE_CRASH_SEED=\(seed)")
            #expect(tally.orphans == [], "SLUICE_CRASH_SEED=\(seed)")
            #expect(tally.kills > 0 && tally.hits > 0)
        }
    }
}
