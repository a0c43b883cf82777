import Testing

@testable import Bench

/// Comparing the measured values of proxies.
@Suite struct ComparisonTests {
    private func comparison(_ lines: [String] = ["cold.c8"]) -> Comparison {
        var made = Comparison(
            names: ["direct", "sluice", "nginx", "squid"], selection: LineSelection(names: lines))
        for value in [0.5, 0.6, 0.9] { made.add("cold.c8.cpu", "sluice", value) }
        for value in [1.2, 1.0, 1.4] { made.add("cold.c8.cpu", "nginx", value) }
        made.add("cold.c8.cpu", "squid", 5)
        made.add("cold.c8.rate", "direct", 4_000)
        made.add("cold.c8.rate", "sluice", 900)
        made.add("cold.c8.rate", "nginx", 600)
        made.add("cold.c8.rate", "squid", 100)
        return made
    }

    @Test func `the best peer excludes the daemon and the origin`() {
        let figures = comparison().figures
        #expect(figures.map(\.bestPeer) == ["nginx", "nginx"])
        #expect(figures.map(\.ratio) == [0.5, 1.5])
    }

    @Test func `twice as good is one step whether higher or lower is better`() {
        let figures = comparison().figures
        #expect(figures[0].gain == 1)
        #expect(abs((figures[1].gain ?? 0) - 0.585) < 0.001)
    }

    @Test func `the spread is the larger one of the two`() {
        let spread = comparison().figures[0].spread ?? 0
        #expect(abs(spread - 0.333) < 0.001)
    }

    @Test func `without a peer, or with one at zero, there is no ratio`() {
        var made = Comparison(names: ["sluice"], selection: LineSelection(names: ["failure"]))
        made.add("failure.ways.whole", "sluice", 6)
        made.add("failure.ways.twice", "sluice", 1)
        made.add("failure.ways.twice", "nginx", 0)
        #expect(made.figures.allSatisfy { $0.ratio == nil })
        #expect(made.plot.contains("<rect") == false)
    }

    @Test func `values of lines that were not requested are dropped`() {
        let made = comparison(["cold.c8.rate"])
        #expect(made.figures.map(\.line.id) == ["cold.c8.rate"])
        #expect(made.figures[0].middle("sluice") == 900)
    }

    @Test func `each line of the table ends with the command that repeats it`() {
        let lines = comparison().table.split(separator: "\n")
        #expect(lines.count == 4)
        #expect(lines[2].contains(" 0.6 | "))
        #expect(lines[2].contains(" | nginx "))
        #expect(lines[2].hasSuffix("`make bench BENCH_FLAGS=cold.c8.cpu`  |"))
    }

    @Test func `JSON has an object for each line and proxy and for each note`() {
        var made = comparison()
        made.notes = ["said \"so\""]
        let lines = made.json.split(separator: "\n")
        #expect(lines.count == 3 + 4 + 1)
        let ours = lines.first { $0.contains("\"proxy\":\"sluice\"") } ?? ""
        #expect(ours.contains("\"median\":0.6,\"values\":[0.5,0.6,0.9],\"ratio\":0.5,"))
        #expect(lines.last == #"{"note":"said \"so\""}"#)
    }

    @Test func `bars extend to the right if the daemon is better, and end at eight times`() {
        var made = Comparison(names: [], selection: LineSelection(names: ["small"]))
        made.add("small.keep.cpu", "sluice", 1)
        made.add("small.keep.cpu", "haproxy", 100)
        made.add("small.keep.rate", "sluice", 1)
        made.add("small.keep.rate", "haproxy", 2)
        #expect(made.plot.contains("x=\"600.0\" y=\"32\" width=\"130.0\""))
        #expect(made.plot.contains("width=\"43.333"))
        #expect(made.plot.contains("#c33"))
        #expect(made.plot.hasSuffix("</svg>\n"))
    }
}
