import ScenarioSupport
import Testing

@testable import Bench

/// The bench as people run it: the smallest run, and its messages for invalid arguments.
@Suite(.tags(.crowded), .grouped) struct BenchStories {
    private func bench(_ arguments: [String]) throws -> Tool.Result {
        try Tool.run([Tool.built("Bench")] + arguments, within: .seconds(240))
    }

    @Test func `the smallest run prints every line with the command that repeats it`() throws {
        // Programs that change their user must reach their files even if TMPDIR is private.
        let folder = try TemporaryFolder()
        let result = try Tool.run(
            [
                "env", "TMPDIR=\(folder.path)", Tool.built("Bench"), "--quick", "--shared",
                "--peers=none", "--json", "peers",
            ], within: .seconds(240))
        #expect(result.status == 0, "\(result.stderr)")
        let lines = result.stdout.split(separator: "\n")
        // An origin behind TLS is an nginx, which not every machine has.
        let wanted = Line.all.filter { SecureOrigin.isAvailable || $0.workload != "secure" }
        // The last notes state which line failed, and why.
        let notes = lines.filter { $0.hasPrefix("{\"note\"") }.reversed().joined(separator: " ")
        for line in wanted {
            let found = lines.first {
                $0.contains("\"line\":\"\(line.id)\"") && $0.contains("\"proxy\":\"sluice\"")
            }
            #expect(
                found?.contains("\"command\":\"\(line.command)\"") == true,
                "\(line.id): \(notes)")
        }
        #expect(lines.contains { $0.contains("Congestion control") })
    }

    @Test func `a requested line is measured alone`() throws {
        let result = try bench(["--quick", "--shared", "--peers=none", "large.c8.rate"])
        #expect(result.status == 0, "\(result.stderr)")
        let rows = PipeTable.rows(result.stdout)
        #expect(rows.count == 1)
        #expect(rows.first?.first?.value == "2 MB hit, 8 connections: rate")
    }

    @Test func `unknown names are reported, and --list prints the valid ones`() throws {
        let wrong = try bench(["cold.c9"])
        #expect(wrong.status == 64)
        #expect(wrong.stderr.contains("no line or group 'cold.c9'"))
        let list = try bench(["--list"]).stdout.split(separator: "\n")
        #expect(list.count == Line.all.count)
    }
}
