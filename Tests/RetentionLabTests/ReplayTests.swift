import Retention
import RetentionLab
import Testing

/// The counts of a replay, and the results that the standard policy must reach.
@Suite struct `A replay` {
    private func request(_ name: UInt128, at time: UInt32) -> TraceRequest {
        TraceRequest(time: time, name: name, size: 100)
    }

    @Test func `counts hits by requests and by bytes`() {
        var part = request(1, at: 2)
        part.length = 40
        let result = Replay.run([request(1, at: 1), part], policy: .lru, capacity: 1_000)
        #expect(result.requests == 2 && result.hits == 1)
        #expect(result.bytes == 140 && result.hitBytes == 40)
    }

    @Test func `counts prefetches as neither hits nor misses`() {
        var ahead = request(1, at: 1)
        ahead.isAhead = true
        let result = Replay.run([ahead, request(1, at: 2)], policy: .lru, capacity: 1_000)
        #expect(result.requests == 1 && result.hits == 1)
    }

    @Test(arguments: RetentionPolicyName.allCases)
    func `respects the capacity and does not store larger objects`(_ policy: RetentionPolicyName) {
        var huge = request(99, at: 1)
        huge.size = 10_000
        let trace = [huge, huge] + (0..<50).map { request(UInt128($0), at: UInt32($0)) }
        let result = Replay.run(trace, policy: policy, capacity: 1_000)
        #expect(result.hits == 0)
        #expect(result.evictions == 40)
    }

    @Test func `excludes the requests that fill the store`() {
        let trace = [request(1, at: 1), request(1, at: 2)]
        let result = Replay.run(trace, policy: .lru, capacity: 1_000, warmUp: 0.5)
        #expect(result.requests == 1 && result.hits == 1)
    }

    // Shorter traces than those of decision 7, with one size each.

    @Test func `a small feed gives the standard policy six points of bytes over LRU`() {
        var feed = FeedTrace()
        feed.days = 5
        #expect(gain(feed, capacity: 1 << 30) >= 0.06)
    }

    @Test func `a few evenings cost the standard policy no point against LRU`() {
        var series = SeriesTrace()
        series.days = 7
        #expect(gain(series, capacity: 10 << 30) >= -0.01)
        #expect(gain(series, capacity: 20 << 30) >= -0.01)
    }

    @Test func `live channels and films cost the standard policy no point against LRU`() {
        var live = LiveTrace()
        live.days = 3
        #expect(gain(live, capacity: 5 << 30) >= -0.01)
        #expect(gain(live, capacity: 10 << 30) >= -0.01)
    }

    /// The standard policy's byte hit ratio minus that of LRU, the mean of several seeds.
    private func gain(_ trace: some TraceGenerator, capacity: Int64) -> Double {
        let gains = (11...14 as ClosedRange<UInt64>).map { seed in
            let requests = trace.requests(seed: seed)
            let standard = Replay.run(requests, policy: .titles, capacity: capacity)
            let lru = Replay.run(requests, policy: .lru, capacity: capacity)
            return standard.byteHitRatio - lru.byteHitRatio
        }
        return gains.reduce(0, +) / Double(gains.count)
    }
}
