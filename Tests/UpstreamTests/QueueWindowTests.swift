import Testing

@testable import Upstream

struct QueueWindowTests {
    /// 20 Mbit/s, a round trip of 30 ms, a queue of 200 ms.
    private static func line(jitter: Double = 0) -> SimulatedLine {
        SimulatedLine(megabits: 20, delay: 0.03, queue: 0.2, jitter: jitter)
    }

    @Test func `without a bound the queue is full`() {
        var run = Yielding(Self.line(), .background)
        _ = run.run(for: 2, isBounded: false)
        #expect(run.run(for: 4, isBounded: false).median > 0.05)
    }

    @Test(arguments: [YieldPurpose.background, .players], [1, 8])
    func `alone, transfers have the whole line within two seconds, and a queue of milliseconds`(
        purpose: YieldPurpose, transfers: Int
    ) {
        var run = Yielding(Self.line(), purpose, transfers: transfers)
        _ = run.run(for: 2)
        let found = run.run(for: 6)
        #expect(found.rate > 0.95 * run.line.rate * 1_448 / 1_500)
        #expect(found.median < 0.010)
        #expect(found.p99 < 0.025)
    }

    @Test func `a long and a fast line are filled too`() {
        for (megabits, delay) in [(10.0, 0.1), (100, 0.06), (20, 0.002)] {
            var run = Yielding(
                SimulatedLine(megabits: megabits, delay: delay, queue: 0.2), .background)
            _ = run.run(for: 5)
            let found = run.run(for: 4)
            #expect(found.rate > 0.9 * run.line.rate, "\(megabits) Mbit/s, \(delay) s")
            #expect(found.median < 0.015, "\(megabits) Mbit/s, \(delay) s")
        }
    }

    /// With a quarter more the 99th percentile would be that of the tries.
    @Test(arguments: [(20.0, 0.03, 0.005), (10, 0.1, 0.018)])
    func `trying whether more fills the line makes no long queue`(
        megabits: Double, delay: Double, longest: Double
    ) {
        var run = Yielding(
            SimulatedLine(megabits: megabits, delay: delay, queue: 0.2), .players)
        _ = run.run(for: 8)
        let found = run.run(for: 20)
        #expect(found.rate > 0.95 * run.line.rate)
        #expect(found.p99 < longest)
    }

    /// The line carries 2.5 MB/s with a delay of 30 ms.
    ///
    /// Once it is known, rounds without a queue come, as where responses follow each other.
    @Test(arguments: [YieldPurpose.players, .background])
    func `a window grows no further than what the line carries`(purpose: YieldPurpose) {
        let line = 2.5e6
        var (window, lowest, most) = (QueueWindow(purpose), LowestDelay(), 0.0)
        for step in 0..<300 {
            let queued = max(0.03, min(window.window, 400_000) / line)
            let bytes = Int64(min(line, window.window / queued) * 0.03)
            let roundTrip = step < 60 ? queued : 0.03
            window.note(
                .init(roundTrip: roundTrip, bytes: bytes), of: &lowest, at: Double(step) * 0.03)
            if step >= 80 { most = max(most, window.window) }
        }
        #expect(window.isBound)
        #expect(window.window > 0.95 * line * 0.03)
        // A twentieth more is tried from time to time.
        #expect(most < 1.06 * line * 0.033)
    }

    @Test(arguments: [YieldPurpose.players, .background])
    func `a window follows a line that has become twice as fast`(purpose: YieldPurpose) {
        var (window, lowest, before) = (QueueWindow(purpose), LowestDelay(), 0.0)
        for step in 0..<220 {
            if step == 200 { before = window.window }
            let line = step < 200 ? 1.25e6 : 2.5e6
            let roundTrip = max(0.03, window.window / line)
            let bytes = Int64(min(line, window.window / roundTrip) * 0.031)
            window.note(
                .init(roundTrip: roundTrip, bytes: bytes), of: &lowest, at: Double(step) * 0.031)
        }
        #expect(window.isBound)
        #expect(window.window > 1.5 * before)
    }

    @Test func `jitter is not taken for a queue`() {
        for jitter in [0.01, 0.03] {
            var run = Yielding(Self.line(jitter: jitter), .players)
            _ = run.run(for: 3)
            #expect(run.run(for: 6).rate > 0.85 * run.line.rate, "\(jitter)")
        }
    }

    @Test func `a queue that was there before is emptied`() {
        var run = Yielding(Self.line(), .background, transfers: 4)
        _ = run.run(for: 3, isBounded: false)
        _ = run.run(for: 2)
        #expect(run.run(for: 4).median < 0.010)
    }

    @Test func `background leaves the line to others down to its floor, and takes it back`() {
        var run = Yielding(Self.line(), .background)
        _ = run.run(for: 3)
        let rival = run.line.add(.init(began: run.line.now))
        _ = run.run(for: 2)
        let before = run.line.flows[rival].received
        let beside = run.run(for: 4)
        #expect(Double(run.line.flows[rival].received - before) / 4 > 0.9 * run.line.rate)
        #expect(beside.rate < 0.08 * run.line.rate)
        #expect(beside.rate > 0.5 * QueueWindow.leastRate)
        run.line.close(rival)
        _ = run.run(for: 3)
        #expect(run.run(for: 2).rate > 0.9 * run.line.rate)
    }

    @Test func `what players wait for keeps its share beside other traffic`() {
        var run = Yielding(Self.line(), .players)
        _ = run.run(for: 3)
        let rival = run.line.add(.init(began: run.line.now))
        _ = run.run(for: 3)
        #expect(run.window.isReleased)
        // Two of three transfers.
        #expect(run.run(for: 6).rate > 0.4 * run.line.rate)
        run.line.close(rival)
        _ = run.run(for: 30)
        #expect(!run.window.isReleased)
        #expect(run.run(for: 3).median < 0.010)
    }

    @Test func `a queue of others shorter than a release is no reason for one`() {
        var (window, lowest) = (QueueWindow(.players), LowestDelay())
        for step in 0..<400 {
            var sample = QueueWindow.Sample()
            sample.bytes = 50_000
            sample.roundTrip = step % 20 == 0 ? 0.08 : 0.03
            window.note(sample, of: &lowest, at: Double(step) * 0.03)
        }
        #expect(window.releases == 0)
    }

    @Test func `background gives way for a second at most, and goes on when players end`() {
        var (window, lowest) = (QueueWindow(.background), LowestDelay())
        var now = 0.0
        func pass(_ window: inout QueueWindow, _ seconds: Double) {
            let end = now + seconds
            while now < end {
                now += 0.02
                let bytes = Int64(min(window.window, 75_000) * 0.02 / 0.03)
                window.note(.init(roundTrip: 0.03, bytes: bytes), of: &lowest, at: now)
            }
        }
        pass(&window, 5)
        let before = window.window
        #expect(before > 50_000)
        window.giveWay(at: now)
        #expect(window.window == QueueWindow.leastWindow)
        pass(&window, 0.8)
        #expect(window.window < 3_000)
        window.playersEnded(at: now)
        #expect(window.window == before)
        window.giveWay(at: now)
        pass(&window, 0.9)
        #expect(window.window < 3_000)
        pass(&window, 1)
        #expect(window.window > before / 2)
        var players = QueueWindow(.players)
        players.giveWay(at: now)
        #expect(!players.isBound)
    }

    /// A handshake takes 30 ms, and each full packet longer by its own time on the line.
    @Test(arguments: [(YieldPurpose.background, 6.0), (.background, 4), (.players, 3)])
    func `on a slow line its own packets are no queue`(
        purpose: YieldPurpose, megabits: Double
    ) {
        var run = Yielding(
            SimulatedLine(megabits: megabits, delay: 0.03, queue: 0.2), purpose, handshake: 0.03)
        _ = run.run(for: 10)
        let found = run.run(for: 20)
        #expect(found.rate > 0.9 * run.line.rate)
        #expect(found.median < 0.02)
        #expect(run.window.releases == 0)
    }

    /// Background has had its least rate for minutes, beside players on a line of 20 Mbit/s.
    @Test func `background that has given way for long does not take its rate for the line's`() {
        var (window, lowest) = (QueueWindow(.background), LowestDelay())
        for step in 0..<100 {
            window.note(
                .init(roundTrip: 0.033, bytes: 2_000), of: &lowest, at: Double(step) * 0.04)
        }
        #expect(window.target(of: 0.03, lineRate: nil, at: 4) == 0.006)
        #expect(window.target(of: 0.03, lineRate: 2.5e6, at: 4) == 0.0015)
        let players = QueueWindow(.players)
        #expect(players.target(of: 0.03, lineRate: nil, at: 4) == 0.003)
        #expect(players.target(of: 0.03, lineRate: 1e6, at: 4) == 0.006)
    }

    /// A server in the same house with 1 Gbit/s, an origin behind 6 Mbit/s, and a CDN beside it.
    @Test func `a fast path of no delay does not tell the rate of the line`() {
        func path(_ delay: Double) -> LowestDelay {
            var lowest = LowestDelay()
            lowest.note(delay, at: 0)
            return lowest
        }
        var rates = LineRates()
        #expect(rates.highest(for: path(0.03)) == nil)
        rates.note(125e6, of: path(0.000_3))
        rates.note(0.1e6, of: path(0.03))
        #expect(rates.highest(for: path(0.03)) == 0.1e6)
        #expect(rates.highest(for: path(0.000_4)) == 125e6)
        // A tenth of the delay, and still behind the same line.
        rates.note(0.75e6, of: path(0.003))
        #expect(rates.highest(for: path(0.03)) == 0.75e6)
        rates.note(250e6, of: LowestDelay())
        #expect(rates.highest(for: path(0.03)) == 0.75e6)
        #expect(rates.highest(for: LowestDelay()) == nil)
        // The download there has room for its own packets, of 2 ms each.
        let window = QueueWindow(.background)
        let lineRate = rates.highest(for: path(0.03))
        #expect(window.target(of: 0.03, lineRate: lineRate, at: 4) > 0.002)
        // On fibre, a CDN in the same town is behind the line too.
        rates.note(12.5e6, of: path(0.001_5))
        #expect(rates.highest(for: path(0.03)) == 12.5e6)
    }

    @Test func `bounds rise by an eighth of what the line carries, but not while it is sought`() {
        var (window, lowest) = (QueueWindow(.background), LowestDelay())
        #expect(window.opening(in: 0.02, at: 0) == nil)
        for step in 0..<200 {
            let roundTrip = max(0.03, window.window / 2.5e6)
            let bytes = Int64(min(2.5e6, window.window / roundTrip) * 0.03)
            window.note(
                .init(roundTrip: roundTrip, bytes: bytes), of: &lowest, at: Double(step) * 0.03)
        }
        let found = window.opening(in: 0.02, at: 6) ?? 0
        #expect(found > 5_500 && found < 7_000)
        #expect(window.opening(in: .infinity, at: 6) == QueueWindow.mostWindow)
        window.giveWay(at: 6)
        #expect(window.opening(in: 0.02, at: 6) == nil)
        // It takes up its former window, and its bounds do so in steps.
        window.playersEnded(at: 6.1)
        #expect(window.opening(in: 0.02, at: 6.1) == found)
    }

    /// A visit of players ends; transfers run without a bound until the next.
    @Test(arguments: [(60.0, true), (240, false)])
    func `players that come again within two minutes begin with what filled the line`(
        pause: Double, isKnown: Bool
    ) {
        let line = 2.5e6
        var (window, lowest) = (QueueWindow(.players), LowestDelay())
        #expect(window.lineWindow(of: lowest, at: 0) == nil)
        func pass(from begin: Double) {
            for step in 0..<200 {
                let roundTrip = max(0.03, min(window.window, 400_000) / line)
                let bytes = Int64(min(line, window.window / roundTrip) * 0.03)
                let now = begin + Double(step) * 0.03
                window.note(.init(roundTrip: roundTrip, bytes: bytes), of: &lowest, at: now)
            }
        }
        pass(from: 0)
        #expect(window.isBound)
        window.restart(of: lowest, at: 6 + pause)
        #expect(window.isBound == isKnown)
        #expect((window.window < 1.2 * line * 0.03) == isKnown)
        #expect((window.lineWindow(of: lowest, at: 6 + pause) != nil) == isKnown)
        pass(from: 6 + pause)
        #expect(window.isBound && window.releases == 0)
    }

    @Test func `players that had no bound begin without one again`() {
        var (window, lowest) = (QueueWindow(.players), LowestDelay())
        for step in 0..<100 {
            window.note(
                .init(roundTrip: 0.03, bytes: 10_000), of: &lowest, at: Double(step) * 0.03)
        }
        window.restart(of: lowest, at: 4)
        #expect(!window.isBound)
    }

    @Test func `without a round trip nothing is decided`() {
        var (window, lowest) = (QueueWindow(.players), LowestDelay())
        for step in 0..<100 {
            window.note(
                QueueWindow.Sample(bytes: 100_000), of: &lowest, at: Double(step) * 0.1)
        }
        #expect(!window.isBound)
    }

    @Test func `no measurement makes a window that is no number`() {
        var (window, lowest) = (QueueWindow(.background), LowestDelay())
        for (step, roundTrip) in [0, -1, 1e-9, 1e9, .infinity, .nan, 0.03].enumerated() {
            var sample = QueueWindow.Sample(roundTrip: roundTrip, bytes: .max)
            sample.isLossy = step % 2 == 0
            for turn in 0..<40 {
                window.note(sample, of: &lowest, at: Double(step * 40 + turn) * 10)
                let bytes = window.window
                #expect(bytes >= 0 && bytes <= QueueWindow.mostWindow)
                let line = window.lineWindow(of: lowest, at: Double(step * 40 + turn) * 10)
                #expect(line ?? 0 <= QueueWindow.mostWindow)
            }
        }
    }

    @Test func `the lowest delay is forgotten after ten minutes`() {
        var lowest = LowestDelay()
        lowest.note(0.02, at: 0)
        lowest.note(0.05, at: 300)
        #expect(lowest.value == 0.02)
        lowest.note(0.05, at: 599)
        #expect(lowest.value == 0.02)
        lowest.note(0.05, at: 600)
        #expect(lowest.value == 0.05)
    }
}

struct QueueWindowHouseholdTests {
    /// The line of a home: 20 Mbit/s, a round trip of 30 ms, a queue of 200 ms.
    private static func household(
        players: Int, background: Int, from begin: Double, jitter: Double = 0,
        segments: SimulatedLine.Responses? = nil
    ) -> Household {
        Household(
            SimulatedLine(megabits: 20, delay: 0.03, queue: 0.2, jitter: jitter),
            players: players, background: background, from: begin, segments: segments)
    }

    /// Background transfers begin while players fill the queue, and measure the lowest delay again
    /// every 30 s.
    @Test(arguments: [1, 4], [1, 4])
    func `players have the line and a short queue beside background, and are not released`(
        players: Int, background: Int
    ) {
        for (begin, jitter) in [(0.0, 0.0), (0.1, 0), (0.1, 0.005), (3, 0.005)] {
            var run = Self.household(
                players: players, background: background, from: begin, jitter: jitter)
            run.run(for: begin + 3)
            let before = run.bytes
            _ = run.line.takeWaits()
            run.run(for: 35)
            let waits = run.line.takeWaits().sorted()
            #expect(Double(run.bytes - before) / 35 > 0.85 * run.line.rate)
            #expect(waits[waits.count * 99 / 100] < 0.025)
            #expect(run.window.releases == 0)
        }
    }

    /// Segments of 1 MB, which alone take 0.45 s on this line.
    @Test(arguments: [0, 0.005, 0.01])
    func `a segment beside background takes as long as alone, and background has the pauses`(
        jitter: Double
    ) {
        let segments = SimulatedLine.Responses(packets: 690, pause: 1.5)
        var alone = Self.household(
            players: 1, background: 0, from: 0, jitter: jitter, segments: segments)
        var both = Self.household(
            players: 1, background: 1, from: 0, jitter: jitter, segments: segments)
        alone.run(for: 60)
        both.run(for: 60)
        #expect(both.responseTime < 1.15 * alone.responseTime)
        #expect(Double(both.backgroundBytes) > 0.4 * 60 * both.line.rate)
    }

    /// Jitter looks like a queue that no window shortens.
    @Test(arguments: [1, 2], [1, 2])
    func `jitter of most of a round trip does not starve players beside background`(
        players: Int, background: Int
    ) {
        let segments = SimulatedLine.Responses(packets: 207, pause: 0.3)
        var alone = Self.household(
            players: players, background: 0, from: 0, jitter: 0.02, segments: segments)
        var both = Self.household(
            players: players, background: background, from: 0, jitter: 0.02, segments: segments)
        alone.run(for: 60)
        both.run(for: 60)
        #expect(both.responseTime < 2 * alone.responseTime)
    }

    @Test func `other traffic that fills the queue releases players beside background`() {
        var run = Self.household(players: 2, background: 1, from: 0)
        run.run(for: 5)
        _ = run.line.add(.init(began: run.line.now))
        run.run(for: 3)
        #expect(run.window.isReleased)
    }
}
