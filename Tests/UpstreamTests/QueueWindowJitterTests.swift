import Testing

@testable import Upstream

/// Lines with jitter whose handshake met little of it.
struct QueueWindowJitterTests {
    private static let delay = 0.03
    private static let jitter = 0.005

    /// 20 Mbit/s, a round trip of 30 ms, a queue of 200 ms.
    private static func line(jitter: Double = 0) -> SimulatedLine {
        SimulatedLine(megabits: 20, delay: delay, queue: 0.2, jitter: jitter)
    }

    @Test(arguments: [YieldPurpose.background, .players], [0, 0.25])
    func `a handshake that met less jitter than later packets takes the line from nobody`(
        purpose: YieldPurpose, share: Double
    ) {
        var run = Yielding(
            Self.line(jitter: Self.jitter), purpose,
            handshake: Self.delay + share * Self.jitter)
        _ = run.run(for: 10)
        let found = run.run(for: 20)
        #expect(found.rate > 0.9 * run.line.rate)
        #expect(found.p99 < 0.025)
        #expect(run.window.releases == 0)
    }

    /// Segments of 1 MB, which alone take 0.45 s on this line.
    @Test func `with a handshake without jitter background has the pauses of players`() {
        let segments = SimulatedLine.Responses(packets: 690, pause: 1.5)
        func household(background: Int) -> Household {
            Household(
                Self.line(jitter: Self.jitter), players: 1, background: background, from: 0,
                segments: segments, handshake: Self.delay)
        }
        var (alone, both) = (household(background: 0), household(background: 1))
        alone.run(for: 60)
        both.run(for: 60)
        #expect(both.window.releases == 0)
        #expect(both.responseTime < 1.15 * alone.responseTime)
        #expect(Double(both.backgroundBytes) > 0.4 * 60 * both.line.rate)
    }

    /// The handshake found the line empty, as between two transfers of the others.
    @Test(arguments: [1, 4])
    func `background that comes late does not take the queue of others for the empty line`(
        transfers: Int
    ) {
        var line = Self.line()
        _ = line.add(.init(began: 0))
        line.run(until: 1)
        var run = Yielding(line, .background, transfers: transfers, handshake: Self.delay)
        _ = run.run(for: 5)
        let found = run.run(for: 20)
        #expect(found.rate < 0.04 * run.line.rate)
    }

    @Test func `a handshake counts until a drained window shows that it met less jitter`() {
        var lowest = LowestDelay()
        lowest.note(handshake: 0.03, at: 0)
        lowest.noteDrained(target: 0.003)
        #expect(lowest.value == 0.03)
        lowest.note(0.034, at: 1)
        #expect(lowest.value == 0.03)
        lowest.noteDrained(target: 0.003)
        #expect(lowest.value == 0.034)
        lowest.note(0.033, at: 2)
        #expect(lowest.value == 0.033)
    }

    /// Less than half the target is no jitter, and more than 20 ms is a queue of others.
    @Test(arguments: [0.031, 0.051])
    func `a handshake still counts beside a mean that jitter does not explain`(mean: Double) {
        var lowest = LowestDelay()
        lowest.note(handshake: 0.03, at: 0)
        lowest.note(mean, at: 1)
        lowest.noteDrained(target: 0.003)
        #expect(lowest.value == 0.03)
    }

    @Test func `a later draining decides again when others have left the line`() {
        var lowest = LowestDelay()
        lowest.note(handshake: 0.03, at: 0)
        lowest.note(0.2, at: 1)
        lowest.noteDrained(target: 0.003)
        #expect(lowest.value == 0.03)
        lowest.note(0.034, at: 31)
        lowest.noteDrained(target: 0.003)
        #expect(lowest.value == 0.034)
    }

    @Test func `a handshake is forgotten after ten minutes`() {
        var lowest = LowestDelay()
        lowest.note(handshake: 0.03, at: 30)
        lowest.note(0.031, at: 629)
        #expect(lowest.value == 0.03)
        lowest.note(0.031, at: 630)
        #expect(lowest.value == 0.031)
    }
}
