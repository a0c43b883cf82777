import Testing

@testable import Upstream

struct BodyBoundTests {
    @Test func `a body begins and ends with half a share, and with ten segments at least`() {
        #expect(BodyBound.edge(of: 82_000) == 41_000)
        #expect(BodyBound.edge(of: 20_000) == 14_480)
        #expect(BodyBound.edge(of: 1_448) == 1_448)
        #expect(BodyBound.edge(of: Int.max) == Int.max / 2)
    }

    @Test func `the end of a body begins where its rest is granted`() {
        #expect(BodyBound.endBegins(length: 1_000_000, share: 40_000) == 960_000)
        #expect(BodyBound.endBegins(length: 10, share: 40_000) == 0)
        #expect(BodyBound.endBegins(length: 0, share: .max) == 0)
        #expect(BodyBound.endBegins(length: nil, share: 40_000) == .max)
    }

    /// Segments of 1 MB without a pause: a whole share as a burst at the beginning of each is a
    /// queue of 29 ms with one transfer, and of 16 with two.
    @Test(arguments: [(1, 0.85, 0.022), (2, 0.9, 0.013)])
    func `responses that follow each other make no burst`(
        transfers: Int, least: Double, longest: Double
    ) {
        var run = Yielding(
            SimulatedLine(megabits: 20, delay: 0.03, queue: 0.2), .players,
            transfers: transfers, responses: SimulatedLine.Responses(packets: 690))
        _ = run.run(for: 8)
        let found = run.run(for: 16)
        #expect(found.rate > least * run.line.rate)
        #expect(found.p99 < longest)
    }
}
