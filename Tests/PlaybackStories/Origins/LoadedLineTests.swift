import ScenarioSupport
import Testing

/// A line with a queue between daemon and origin (Fixtures/tools/loaded-line): daemon `a` does not
/// yield, daemon `b` does, and both are measured in turns.
extension Stories {
    @Suite(
        .tags(.timed),
        .enabled(if: LoadedLine.isPossible, "needs Linux namespaces, tun devices and cc"))
    struct LoadedLineTests {}
}

private enum LoadedLine {
    static let script = Fixture.repository + "/Fixtures/tools/loaded-line"
    /// In milliseconds, while the line is empty; no daemon can make it shorter.
    static let roundTrip = 30.0
    static let isPossible = (try? Tool.run([script, "-", "-", "--possible"]).status) == 0

    /// Returns the figures by daemon, load and name.
    static func run(_ loads: String, seconds: Int, rounds: Int) throws -> [String: Double] {
        let programs = [try DaemonProcess.builtBinary(), try Tool.built("sample-cdn")]
        let run = try Tool.run(
            [script] + programs + [
                "--brief", "--rtt", "\(roundTrip)", "--a=--yield off", "--b=--yield players",
                "--load", loads, "--seconds", "\(seconds)", "--rounds", "\(rounds)",
            ])
        guard run.status == 0 else { throw ScenarioFailure("\(loads): \(run.stderr)") }
        let lines = run.stdout.split(separator: "\n").map { $0.split(separator: ": ") }
        return Dictionary(
            uniqueKeysWithValues: lines.compactMap { line in
                Double(line[1]).map { ("\(line[0])", $0) }
            })
    }
}

extension Stories.LoadedLineTests {
    @Test func `a download leaves playlists a short queue, and has the line nevertheless`() throws {
        let found = try LoadedLine.run("download", seconds: 4, rounds: 2)
        func figure(_ name: String) throws -> Double { try #require(found[name], "\(found)") }
        #expect(try figure("b download queue") < figure("a download queue") / 2, "\(found)")
        let a = try figure("a download median") - LoadedLine.roundTrip
        #expect(try figure("b download median") - LoadedLine.roundTrip < a / 2, "\(found)")
        #expect(try figure("b download line") > 0.6 * figure("a download line"), "\(found)")
    }

    /// A player of 4 Mbit/s on a line of 20; without giving way its segments take 1.6 to 2 times as
    /// long.
    @Test func `a download gives way to the segments of a player`() throws {
        let found = try LoadedLine.run("player:b,paced", seconds: 8, rounds: 1)
        func figure(_ name: String) throws -> Double { try #require(found[name], "\(found)") }
        #expect(try figure("b paced segment") < 1.4 * figure("b player segment"), "\(found)")
        #expect(try figure("b paced line") > 0.6 * figure("a paced line"), "\(found)")
    }
}
