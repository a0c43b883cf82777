// One seed in this process.
import ArgumentParser
import CSimulation
import DaemonService
import Logging

/// Runs a seed and prints its outcome as one line.
struct OneSeed {
    private let seed: UInt64
    private let plan: ScenarioPlan
    private let extras: ExtrasPlan
    private let prints: Bool
    /// Whether a failure is printed as a test.
    private let writesStory: Bool

    init(_ seed: UInt64, parts: Parts, rough: Int?, prints: Bool, writesStory: Bool) {
        self.seed = seed
        plan = ScenarioPlan(seed: seed, parts: parts, rough: rough)
        extras = ExtrasPlan(seed: seed, parts: parts)
        self.prints = prints
        self.writesStory = writesStory
    }

    func run() throws {
        let place = RunProcess(number: seed, processorSeconds: 60)
        var settings = plan.settings.merging(extras.settings) { $1 }
        settings["cache-dir"] = "\(place.home)/cache"
        let read = { (policy: String, mounts: [String]) in
            try readConfiguration(
                scalars: settings.merging(["policy": policy]) { $1 },
                lists: ["mount": mounts.map { "\($0)=\(SimulatedCDN.base)/" }], file: nil)
        }
        let configurations = Configurations(
            ordinary: try read("media", ["/mt/"]), offline: try read("offline", ["/mt/"]),
            refresh: try read("refresh", ["/mt/"]), extended: try read("media", ["/mt/", "/more/"]))
        let log = LogLines()
        LoggingSystem.bootstrap { _ in TraceLog(log) }
        let trace = Trace(prints: prints ? { place.say($0) } : nil)
        let scenario = Scenario(plan, extras, configurations, trace: trace, log: log)
        scenario.run()
        let failure = scenario.world.failure
        if failure != nil, !prints, !writesStory {
            for line in trace.tail { place.say(line) }
            place.say("to see all of it: sluice-simulate --seed \(seed) --trace")
        }
        if let failure, writesStory {
            let script = StoryScript(trace.steps, failure)
            for line in script.lines(seed: seed, settings: settings) { place.say(line) }
        }
        let marks = trace.marks.sorted { $0.key < $1.key }
            .map { "\($0.key.replacing(" ", with: "_"))=\($0.value)" }.joined(separator: " ")
        place.say(
            "RESULT \(seed) \(failure == nil ? "passed" : "FAILED") oracle=\(failure?.oracle.rawValue ?? "none") "
                + "hash=\(String(trace.hash, radix: 16)) seconds=\(scenario.world.now / World.second) "
                + "turns=\(csim_resumptions()) longest=\(csim_longest_run() / 1_000_000) \(marks)")
        if let failure { place.say("\(failure.oracle.rawValue): \(failure.text)") }
        place.end(failure == nil ? 0 : 1)
    }
}
