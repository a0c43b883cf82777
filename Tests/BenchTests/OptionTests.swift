import ArgumentParser
import Testing

@testable import Bench

/// Which lines the command line of the bench selects.
@Suite struct OptionTests {
    @Test func `without names everything is measured except lines that need a run of their own`()
        throws
    {
        let options = try BenchOptions.parse([])
        #expect(options.lines == Line.workloads)
        #expect(options.groups == ["rewrite", "read", "parse", "play"])
        #expect(options.repetitions == 5)
    }

    @Test func `options and names are accepted in any order`() throws {
        let options = try BenchOptions.parse([
            "cold.c8", "--objects=100000", "--json-file=out.json", "store", "--svg=a=b.svg",
            "--repetitions=7", "--peers=nginx,squid", "--shared",
        ])
        #expect(options.lines == ["cold.c8"])
        #expect(options.groups == ["store"])
        #expect(options.objects == 100_000)
        #expect(options.jsonPath == "out.json" && options.plotPath == "a=b.svg")
        #expect(options.repetitions == 7)
        #expect(options.peers == ["nginx", "squid"])
        #expect(!options.isApart && !options.isJSON)
    }

    @Test func `--quick runs the smallest loads once`() throws {
        let options = try BenchOptions.parse(["--quick", "--peers=none", "--json"])
        #expect(options.repetitions == 1 && options.objects == 500)
        #expect(options.times(5) == 1 && options.times(60) == 6)
        #expect(options.peers == [] && options.isJSON)
    }

    @Test(
        arguments: [
            "--objects=0", "--objects", "--repetitions=x", "--peers=apache", "--svg", "--nothing",
            "cold.c9", "col", "--quick=1", "", "--json-file",
        ])
    func `a wrong option, value or name is rejected`(argument: String) throws {
        #expect(throws: (any Error).self) { try BenchOptions.parse([argument]) }
    }

    @Test func `every line has a unique name and can be requested by it`() throws {
        #expect(Set(Line.all.map(\.id)).count == Line.all.count)
        for line in Line.all {
            #expect(try BenchOptions.parse([line.id]).lines == [line.id])
            #expect(line.command.hasSuffix("=\(line.id)"))
        }
        #expect(Workload.all.map(\.name) == Line.workloads)
    }

    @Test func `a name selects what is below it and requires what is above it`() {
        let selection = LineSelection(names: ["cold.c8", "large.c1.cpu"])
        #expect(selection.needs("cold") && selection.needs("cold.c8"))
        #expect(!selection.needs("cold.c1") && !selection.needs("small"))
        #expect(selection.needs("large.c1") && !selection.needs("large.c8"))
        #expect(selection.shows("cold.c8.rate") && selection.shows("large.c1.cpu"))
        #expect(!selection.shows("large.c1.rate") && !selection.shows("cold.c80.cpu"))
    }
}
