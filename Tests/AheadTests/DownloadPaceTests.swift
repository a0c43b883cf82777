import Testing

@testable import Ahead

/// How downloads keep to their rates.
@Suite struct DownloadPaceTests {
    private var pace = DownloadPace()

    /// Fetches pieces that take half a second each, as many at a time as allowed.
    ///
    /// - Returns: the most pieces in flight, and the bytes that were fetched.
    private mutating func run(
        seconds: Int, rate: Int64, piece: Int64
    ) -> (inFlight: Int, bytes: Int64) {
        var most = 0
        var bytes: Int64 = 0
        var inFlight = 0
        for _ in 0..<(2 * seconds) {
            pace.pass(0.5, at: rate)
            for _ in 0..<inFlight { pace.count(piece) }
            bytes += Int64(inFlight) * piece
            inFlight = pace.window(limit: 6, rate: rate)
            most = max(most, inFlight)
        }
        return (most, bytes)
    }

    @Test mutating func `a download fetches at its rate, with few pieces in flight`() {
        let rates: [(rate: Int64, inFlight: Int)] = [
            (1_000_000, 1), (3_000_000, 3), (50_000_000, 8),
        ]
        for (rate, most) in rates {
            pace = DownloadPace()
            let (inFlight, bytes) = run(seconds: 100, rate: rate, piece: rate)
            #expect(inFlight == most)
            // Beyond the rate there is what was in flight at the end.
            #expect(bytes <= rate * (100 + Int64(most)) && bytes >= rate * 95)
        }
    }

    @Test mutating func `pieces of many seconds follow each other at the rate`() {
        let (inFlight, bytes) = run(seconds: 100, rate: 500_000, piece: 5_000_000)
        #expect(inFlight == 1)
        #expect(bytes <= 55_000_000 && bytes >= 45_000_000)
    }

    @Test mutating func `a time without fetches leaves two seconds of credit`() {
        for _ in 0..<200 { pace.pass(0.5, at: 1_000_000) }
        var bytes: Int64 = 0
        while pace.window(limit: 6, rate: 1_000_000) > 0, bytes < 10_000_000 {
            pace.count(100_000)
            bytes += 100_000
        }
        #expect(bytes == 2_000_000)
    }

    @Test mutating func `a download that begins has no credit from earlier time`() {
        pace.pass(1, at: 1_000_000)
        pace.count(5_000_000)
        pace.begin()
        let first = pace.window(limit: 6, rate: 1_000_000)
        pace.pass(0.5, at: 1_000_000)
        let second = pace.window(limit: 6, rate: 1_000_000)
        #expect(first == 0 && second == 1)
    }

    @Test func `without a rate slightly more is in flight than the network allows`() {
        #expect(pace.window(limit: 6, rate: nil) == 8)
        #expect(pace.window(limit: .max, rate: nil) == 34)
    }

    @Test func `downloads share the common rate, each within its own`() {
        func rate(_ own: Int64?, _ common: Int64?, _ running: Int) -> Int64? {
            DownloadPace.rate(own: own, common: common, running: running)
        }
        #expect(rate(nil, nil, 3) == nil && rate(5, nil, 3) == 5)
        #expect(rate(nil, 12, 0) == 12 && rate(nil, 12, 3) == 4)
        #expect(rate(5, 12, 2) == 5 && rate(5, 12, 3) == 4)
    }
}
