import Posix
import Testing

@testable import Ahead

/// Which requests of players are reported to the planner.
@Suite struct RecentReportsTests {
    private var reports = RecentReports()

    private mutating func isReported(_ mark: Int, at milliseconds: Int64) -> Bool {
        reports.takes(.init(mark, at: Monotonic(nanoseconds: milliseconds * 1_000_000)))
    }

    @Test mutating func `a segment in many small ranges is reported every two seconds`() {
        var times: [Int64] = []
        for milliseconds in stride(from: Int64(10_000), to: 20_000, by: 10) {
            let isNews = isReported(7, at: milliseconds)
            if isNews { times.append(milliseconds) }
        }
        #expect(times == [10_000, 12_000, 14_000, 16_000, 18_000])
    }

    @Test mutating func `no subject is lost where thousands share the places`() {
        var missing = 0
        for mark in 0..<5_000 where !isReported(mark, at: 10_000) { missing += 1 }
        #expect(missing == 0)
        // The last ones have displaced others, not each other.
        var repeated = 0
        for mark in 4_990..<5_000 where isReported(mark, at: 10_000) { repeated += 1 }
        #expect(repeated == 0)
        var displaced = 0
        for mark in 0..<4_990 where isReported(mark, at: 10_000) { displaced += 1 }
        #expect(displaced > 3_000)
    }

    @Test mutating func `asking whether news was reported does not report it`() {
        let news = RecentReports.News(7, at: Monotonic(nanoseconds: 10_000_000_000))
        #expect(!reports.has(news))
        let isFirst = reports.takes(news)
        #expect(isFirst && reports.has(news))
        let isSecond = reports.takes(news)
        #expect(!isSecond)
    }
}
