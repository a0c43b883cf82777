import ScenarioSupport
import Testing

/// Two daemons connected by two network paths, one the other's origin (Fixtures/tools/two-paths).
extension Stories {
    @Suite(
        .tags(.crowded),
        .enabled(if: TwoPaths.isPossible, "needs Linux namespaces, MPTCP, bridges and tbf"))
    struct MultipathTests {}

    @Suite(
        .tags(.timed),
        .enabled(if: TwoPaths.isPossible, "needs Linux namespaces, MPTCP, bridges and tbf"))
    struct MultipathRateTests {}
}

private enum TwoPaths {
    static let script = Fixture.repository + "/Fixtures/tools/two-paths"
    static let isPossible = (try? Tool.run([script, "-", "-", "possible"]).status) == 0

    /// Runs a story of the script; returns its lines by the name before the colon.
    static func run(_ story: String, _ mptcp: String) throws -> [String: String] {
        let programs = [try DaemonProcess.builtBinary(), try Tool.built("sample-cdn")]
        let run = try Tool.run([script] + programs + [story, mptcp])
        guard run.status == 0 else { throw ScenarioFailure("\(story): \(run.stderr)") }
        let lines = run.stdout.split(separator: "\n").map { $0.split(separator: ": ") }
        return Dictionary(uniqueKeysWithValues: lines.map { ("\($0[0])", "\($0[1])") })
    }
}

extension Stories.MultipathTests {
    @Test(arguments: ["lose-1", "lose-2"], ["on", "auto"])
    func `a transfer survives the loss of either path without repeated requests`(
        story: String, mptcp: String
    ) throws {
        let found = try TwoPaths.run(story, mptcp)
        #expect(found == ["joined": "1", "right bytes": "24000000", "requests": "1"])
    }

    @Test func `without the setting no second path is used`() throws {
        #expect(try TwoPaths.run("lose-2", "off")["joined"] == "0")
    }
}

extension Stories.MultipathRateTests {
    @Test func `two paths together carry more than the better one`() throws {
        let found = try TwoPaths.run("together", "auto")
        func rate(_ name: String) throws -> Double {
            try #require(found[name]?.split(separator: " ").first.flatMap { Double($0) })
        }
        // 30 and 20 Mbit/s.
        #expect(try rate("both paths") > 1.15 * rate("path 1 alone"), "\(found)")
    }
}
