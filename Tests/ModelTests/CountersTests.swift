import Posix
import Testing

@testable import Model

struct CountersTests {
    @Test func `threads that run at the same time lose no count and no time`() async throws {
        let counters = Counters()
        let (threads, rounds) = (4, 20_000)
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<threads {
                group.addTask {
                    for _ in 0..<rounds {
                        counters.add(.hits)
                        counters.add(.bytesToPlayers, Int64(number))
                        counters.record(firstByte: .milliseconds(Int64(number + 1)))
                    }
                }
            }
        }
        #expect(counters.value(of: .hits) == Int64(threads * rounds))
        #expect(counters.value(of: .bytesToPlayers) == Int64((0 + 1 + 2 + 3) * rounds))
        #expect(counters.value(of: .misses) == 0)
        let percentiles = counters.firstBytePercentiles
        // A quarter each of 1, 2, 3 and 4 ms, to two digits.
        #expect(percentiles.map(\.name) == ["p50", "p90", "p99"])
        #expect(abs(percentiles[0].milliseconds - 2) <= 0.03)
        #expect(abs(percentiles[1].milliseconds - 4) <= 0.05)
    }

    @Test func `numbers are kept apart`() {
        let counts = ProcessorCounts(count: 17)
        for _ in 0..<5 {
            counts.add(1, at: 0)
            counts.add(5, at: 16)
        }
        #expect(counts.sum(at: 0) == 5)
        #expect(counts.sum(at: 16) == 25)
        #expect((1..<16).allSatisfy { counts.sum(at: $0) == 0 })
    }
}
