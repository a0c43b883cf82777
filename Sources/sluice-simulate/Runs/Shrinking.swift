// The shortest run in which a seed fails with the same oracle.

/// Repeats a seed with fewer parts as long as the same oracle fails.
struct Shrinking {
    let seed: UInt64
    let oracle: String
    /// A run takes seconds.
    private static let mostRuns = 60

    func run() {
        let plan = ScenarioPlan(seed: seed)
        var kept = plan.parts(ExtrasPlan(seed: seed))
        var seconds = Int(plan.rough / World.second)
        var runs = 0
        func fails(_ parts: [String], _ rough: Int) -> Bool {
            guard runs < Self.mostRuns else { return false }
            runs += 1
            return ChildRun.oracle(of: Self.arguments(seed, parts, rough)) == oracle
        }
        var size = (kept.count + 1) / 2
        while size > 0, runs < Self.mostRuns {
            var (start, isSmaller) = (0, false)
            while start < kept.count {
                var rest = kept
                rest.removeSubrange(start..<min(kept.count, start + size))
                if fails(rest, seconds) {
                    (kept, isSmaller) = (rest, true)
                } else {
                    start += size
                }
            }
            // A part may become unnecessary only after others were removed.
            size = size > 1 ? size / 2 : isSmaller ? 1 : 0
        }
        for shorter in [0, seconds / 8, seconds / 2] where fails(kept, shorter) {
            seconds = shorter
            break
        }
        let words = Self.arguments(seed, kept, seconds).joined(separator: " ")
        print("seed \(seed), \(oracle), after \(runs) runs: sluice-simulate \(words) --trace")
        // As a test, from the same run.
        let arguments = Self.arguments(seed, kept, seconds) + ["--story"]
        for line in ChildRun.output(of: arguments).split(separator: "\n")
        where !line.hasPrefix("RESULT ") { print(line) }
    }

    private static func arguments(_ seed: UInt64, _ parts: [String], _ rough: Int) -> [String] {
        [
            "--seed", "\(seed)", "--only", parts.isEmpty ? "none" : parts.joined(separator: ","),
            "--rough", "\(rough)",
        ]
    }
}
