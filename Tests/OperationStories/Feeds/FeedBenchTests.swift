import ScenarioSupport
import Testing

/// The simulated bench for feeds: its results, and the arguments that it rejects.
extension Stories {
    @Suite(.tags(.timed)) struct FeedBenchTests {
        private func bench(_ arguments: [String]) throws -> Tool.Result {
            try Tool.run([try Tool.built("sluice-lab"), "bench", "feed"] + arguments)
        }

        /// Loaders of 1,000 items, of a row of the first table.
        private func loaders(_ scheme: String, _ text: String) -> Double? {
            let row = text.split(separator: "\n").first { $0.hasPrefix("| \(scheme) ") }
            let cells = row?.split(separator: "|").map { $0.split(separator: " ") }
            return cells.flatMap { $0.count > 1 ? $0[1].first : nil }.flatMap { Double($0) }
        }

        @Test func `the default has a fifth fewer loaders than the published scheme`() throws {
            let result = try bench(["--simulate", "--viewer", "flick", "--runs", "4"])
            #expect(result.status == 0)
            let found = ["none", "published", "default"].compactMap { loaders($0, result.stdout) }
            try #require(found.count == 3, "\(result.stdout)")
            #expect(found[2] <= found[1] * 0.8 && found[2] <= found[0] / 2)
        }

        @Test(arguments: [
            ["--scheme", "best"], ["--scheme", "default,speed=1"], ["--scheme", "default,ahead"],
            ["--viewer", "cat"], ["--visits", "0"], ["--jobs", "0"], ["--profile", "dsl"],
        ])
        func `invalid arguments are refused`(arguments: [String]) throws {
            #expect(try bench(["--simulate"] + arguments).status == 64)
        }
    }
}
