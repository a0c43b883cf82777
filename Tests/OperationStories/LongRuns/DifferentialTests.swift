import Glibc
import ScenarioSupport
import Testing

/// Random requests, changes, faults, evictions, purges and restarts, compared with the origin's
/// content.
///
/// `SLUICE_DIFFERENTIAL_SECONDS` sets the duration, `SLUICE_DIFFERENTIAL_SEED` the first run; `make
/// differential` sets both. A failure prints the run with as few actions as still fail.
///
/// A suite of its own, since the shorter of two time limits applies, and that of the stories is five
/// minutes.
@Suite(.serialized, .tags(.timed), .timeLimit(.minutes(1_440)), .grouped)
struct DifferentialTests {
    @Test
    func `every answer matches one version that the origin had`() throws {
        let end = ContinuousClock.now + .seconds(Self.number("SECONDS") ?? 20)
        let first = UInt64(Self.number("SEED") ?? 1)
        var seed = first
        var checked = 0
        var failures = 0
        let mostFailures = Self.number("FAILURES") ?? 1
        while .now < end, failures < mostFailures {
            let plan = DifferentialPlan(seed: seed)
            let world = try DifferentialWorld(plan)
            let wrong = try world.run()
            checked += world.checked.value
            if !wrong.isEmpty {
                failures += 1
                let reduced = Self.number("REDUCE") == 0 ? plan : Self.reduced(plan, wrong)
                Issue.record(
                    """
                    seed \(seed): \(wrong.joined(separator: "\n"))
                    the same with fewer actions:
                    \(reduced.description)
                    """)
            }
            seed += 1
        }
        print("differential: seeds \(first)..<\(seed), \(checked) answers")
        #expect(checked > 0)
    }

    private static func number(_ name: String) -> Int? {
        getenv("SLUICE_DIFFERENTIAL_" + name).flatMap { Int(String(cString: $0)) }
    }

    /// Leaves out groups, then actions, as long as the run still fails.
    ///
    /// Threads race, so each shorter run gets several attempts.
    private static func reduced(
        _ plan: DifferentialPlan, _ wrong: [String]
    ) -> DifferentialPlan {
        let end = ContinuousClock.now + .seconds(60)
        var best = plan
        let fails = { (candidate: DifferentialPlan) -> Bool in
            (0..<2).contains { _ in
                guard .now < end, let world = try? DifferentialWorld(candidate) else {
                    return false
                }
                return (try? world.run())?.isEmpty == false
            }
        }
        // Actions behind the failure are irrelevant.
        if let number = wrong.first?.dropFirst(6).prefix(while: \.isNumber),
            let last = Int(number)
        {
            best.groups = Array(plan.groups.prefix(last + 1))
        }
        var size = max(1, best.groups.count / 2)
        while size >= 1 {
            var start = 0
            while start < best.groups.count {
                var candidate = best
                candidate.groups.removeSubrange(
                    start..<min(start + size, best.groups.count))
                if fails(candidate) { best = candidate } else { start += size }
            }
            size /= 2
        }
        for group in best.groups.indices.reversed() {
            for action in best.groups[group].indices.reversed() {
                var candidate = best
                candidate.groups[group].remove(at: action)
                if fails(candidate) { best = candidate }
            }
        }
        best.groups.removeAll(where: \.isEmpty)
        return best
    }
}
