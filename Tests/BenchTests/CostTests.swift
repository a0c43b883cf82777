// How the work of parsers and writers grows with hostile input.
import ScenarioSupport
import Testing

/// The program Cost runs each work with n, 2n and 4n items; here the processor time of its thread
/// is compared, `make cost` counts instructions.
@Suite struct CostTests {
    private struct Case {
        let name: String
        let times: [Double]

        /// The ratio of the costs of the second and the first doubling: 2 for linear work, 4 for
        /// quadratic.
        var growth: Double { (times[2] - times[1]) / max(times[1] - times[0], 1) }
        /// Times below a millisecond are noise.
        var isTooSteep: Bool { growth > 3 && times[2] > 5e6 }

        /// Returns the least times of each case in runs of the same cases.
        static func least(of runs: [[Case]]) -> [Case] {
            let first = runs[0]
            return first.indices.map { index in
                Case(
                    name: first[index].name,
                    times: (0..<3).map { size in
                        runs.map { $0[index].times[size] }.min() ?? .infinity
                    })
            }
        }
    }

    private func run(_ size: Int, _ names: [String] = []) throws -> [Case] {
        let command = [try Tool.built("Cost"), String(size)] + names
        let rows = try Tool.run(command, within: .seconds(280)).stdout.split(separator: "\n").map {
            $0.split(separator: "\t")
        }
        return stride(from: 0, to: rows.count - rows.count % 3, by: 3).map { first in
            Case(
                name: String(rows[first][0]),
                times: rows[first..<first + 3].map { Double($0[2]) ?? 0 })
        }
    }

    @Test(.timeLimit(.minutes(6)))
    func `no work grows faster than n log n`() throws {
        var suspects = try run(400)
        #expect(suspects.count > 100)
        suspects = suspects.filter(\.isTooSteep)
        // Other processes, which share cores and caches, only add to a time, and may have added to one
        // of the three: the least of several is nearest to what the work takes.
        for size in [800, 1_600] where !suspects.isEmpty {
            let names = suspects.map(\.name)
            let runs = try (0..<5).map { _ in try run(size, names) }
            try #require(runs.allSatisfy { $0.count == names.count })
            suspects = Case.least(of: runs).filter(\.isTooSteep)
        }
        #expect(suspects.isEmpty, "\(suspects.map { "\($0.name): \($0.growth)" })")
    }
}
