import Lookahead
import Testing

/// The published table of concurrent transfers, row by row and rule by rule.
@Suite struct ConcurrencyTableTests {
    private func transfers(
        _ goodput: Double?, _ change: (inout ConcurrencyTable.Question) -> Void = { _ in }
    ) -> Int {
        var question = ConcurrencyTable.Question()
        question.goodput = goodput
        question.partsDone = 6
        change(&question)
        return ConcurrencyTable.transfers(question)
    }

    @Test(arguments: [
        (0.0, 2), (0.01, 2), (0.499, 2), (0.5, 4), (1, 4), (1.001, 5), (2, 5), (2.001, 6), (3, 6),
        (3.001, 7), (4, 7), (4.001, 8), (5, 8), (5.001, 10), (7, 10), (7.001, 12), (10, 12),
        (10.001, 16), (12, 16), (12.001, 18), (16, 18), (16.001, 20), (1e9, 20),
    ])
    func `each row of the table applies up to its bound`(goodput: Double, count: Int) {
        #expect(transfers(goodput) == count)
    }

    @Test func `the kind of network decides before the first measurement`() {
        #expect(transfers(nil) == 4)
        #expect(transfers(nil) { $0.isCellular = true } == 2)
        #expect(transfers(nil) { $0.partsDone = 0 } == 4)
        #expect(transfers(8) { $0.isCellular = true } == 12)
    }

    @Test(arguments: [
        (0.3, 0, false, 2), (0.301, 0, false, 4), (0.301, 5, false, 4), (0.301, 6, false, 2),
        (1.5, 5, true, 7), (1.5, 6, true, 7), (1.5, 6, false, 5), (1.0, 6, true, 4),
        (1.001, 6, true, 7), (20, 0, true, 22),
    ])
    func `a new task gets two more, and so do large parts on a fast link`(
        goodput: Double, partsDone: Int, hasLargeParts: Bool, count: Int
    ) {
        let found = transfers(goodput) {
            $0.partsDone = partsDone
            $0.hasLargeParts = hasLargeParts
        }
        #expect(found == count)
    }

    @Test(arguments: [(1.0, 3.5, 7), (1.001, 3.5, 5), (4, 0.7, 4), (4, nil, 4), (1.5, 1.5, 3)])
    func `a busy process gets two fewer if above four`(cpu: Double, goodput: Double?, count: Int) {
        #expect(transfers(goodput) { $0.cpuUse = cpu } == count)
    }

    @Test(arguments: [
        (Int64(100 << 20), 3.5, 5), (Int64(100 << 20) + 1, 3.5, 7), (Int64(0), 0.7, 4),
    ])
    func `low memory takes two if above four`(memory: Int64, goodput: Double, count: Int) {
        #expect(transfers(goodput) { $0.availableMemory = memory } == count)
    }

    @Test(arguments: [(2, 3.5, 5), (3, 3.5, 7), (0, 0.7, 2), (0, 0.1, 2), (2, nil, 2)])
    func `a low battery takes two, but leaves at least two`(
        charge: Int, goodput: Double?, count: Int
    ) {
        #expect(transfers(goodput) { $0.charge = charge } == count)
    }

    @Test func `only one of the lowering rules applies`() {
        let found = transfers(3.5) {
            $0.cpuUse = 2
            $0.availableMemory = 0
            $0.charge = 1
        }
        #expect(found == 5)
        let atFour = transfers(0.7) {
            $0.cpuUse = 2
            $0.availableMemory = 0
            $0.charge = 1
        }
        #expect(atFour == 2, "the first two rules hold above four, the battery always")
    }

    @Test func `the controller uses MiB, counts parts and starts over for each task`() {
        var limits = ConcurrencyLimits(.table)
        #expect(limits.limit == 4)
        let sample = LinkSample(seconds: 1, bytes: (3 << 20) - 1_000, finished: 1)
        for _ in 0..<5 { limits.note(sample, each: ["a": sample]) }
        #expect(limits.limit == 8, "six for 3 MiB/s, two for the first parts")
        #expect(limits.limit(of: "a") == 8)
        let small = LinkSample(seconds: 1, bytes: (3 << 20) - 1_000, finished: 30)
        limits.note(small, each: ["a": small])
        #expect(limits.limit == 6)
        limits.beginTask()
        #expect(limits.limit == 8)
        var conditions = MachineConditions()
        conditions.isMetered = true
        limits.follow(conditions, goodput: nil)
        #expect(limits.limit == 8)
        limits.restart(at: nil)
        #expect(limits.limit == 2)
    }

    @Test(arguments: [
        ("MemTotal: 8 kB\nMemAvailable:   1024 kB\n", Int64(1 << 20)), ("MemAvailable: x kB", nil),
        ("MemAvailable: 99999999999999999999 kB", nil), ("", nil),
    ])
    func `available memory is parsed from meminfo`(text: String, bytes: Int64?) {
        #expect(MachineConditions.availableMemory(text) == bytes)
    }
}
