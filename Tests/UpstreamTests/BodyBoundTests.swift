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

    @Test func `a body of few shares does not open its window in steps`() {
        #expect(!BodyBound.isLong(0, share: 80_000))
        #expect(!BodyBound.isLong(1_000_000, share: 200_000))
        #expect(BodyBound.isLong(1_000_000, share: 80_000))
        #expect(BodyBound.isLong(nil, share: .max))
        #expect(!BodyBound.isLong(Int64.max, share: .max))
    }

    @Test func `a bound rises in steps of a segment at least, and falls at once`() {
        #expect(BodyBound.next(after: 1_448, share: 80_000, step: 6_000) == 7_448)
        #expect(BodyBound.next(after: 41_000, share: 82_000, step: 0) == 42_448)
        #expect(BodyBound.next(after: 80_000, share: 82_000, step: 6_000) == 82_000)
        #expect(BodyBound.next(after: 80_000, share: 1_448, step: 6_000) == 1_448)
        #expect(BodyBound.next(after: Int.max, share: 80_000, step: .max) == 80_000)
        // Nothing is known of the connection, or of the line.
        #expect(BodyBound.next(after: nil, share: 80_000, step: 6_000) == 80_000)
        #expect(BodyBound.next(after: 1_448, share: 80_000, step: nil) == 80_000)
    }

    @Test func `the bounds of long bodies alone share a step`() {
        #expect(BodyBound.rises(after: 40_000, share: 80_000, length: 1_000_000))
        #expect(BodyBound.rises(after: 40_000, share: 80_000, length: nil))
        #expect(!BodyBound.rises(after: 40_000, share: 80_000, length: 640_000))
        #expect(!BodyBound.rises(after: 80_000, share: 80_000, length: nil))
        #expect(!BodyBound.rises(after: nil, share: 80_000, length: nil))
    }

    /// Segments of 1 MB without a pause.
    ///
    /// A whole share as a burst at the beginning of each is a queue of 29 ms with one transfer and of
    /// 16 with two; a second half in one, of 17 and 8. Opening in steps costs a single transfer a
    /// twentieth of the line.
    @Test(arguments: [(1, 0.81, 0.015), (2, 0.89, 0.0095)])
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

    /// A segment of 1 MB takes few round trips of 30 ms: each round trip of opening counts.
    @Test func `short responses on a fast line have their whole share at once`() {
        var run = Yielding(
            SimulatedLine(megabits: 100, delay: 0.03, queue: 0.2), .players, transfers: 1,
            responses: SimulatedLine.Responses(packets: 690))
        _ = run.run(for: 8)
        #expect(run.run(for: 16).rate > 0.68 * run.line.rate)
    }
}
