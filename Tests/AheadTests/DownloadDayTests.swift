import Library
import Testing

@testable import Ahead

/// What quiet hours and the day's budget allow.
@Suite struct DownloadDayTests {
    private var day = DownloadDay(day: "2026-11-20", bytes: 0)
    private var rules = DownloadRules()

    private mutating func obstacle(_ date: String, _ hour: Int, _ minute: Int = 0) -> String? {
        day.obstacle(rules, at: LocalTime(day: date, minute: hour * 60 + minute))
    }

    @Test mutating func `a budget that is used up stops downloads until the next day`() {
        rules.dailyBytes = 100
        let morning = obstacle("2026-11-21", 8)
        #expect(morning == nil)
        day.count(60)
        #expect(day.hasBudget(rules))
        day.count(40)
        #expect(!day.hasBudget(rules))
        let evening = obstacle("2026-11-21", 23, 59)
        #expect(evening?.contains("budget of 100 bytes") == true)
        let midnight = obstacle("2026-11-22", 0)
        #expect(midnight == nil && day.hasBudget(rules) && day.bytes == 0)
        #expect(day.day == "2026-11-22")
    }

    @Test mutating func `the budget of a day counts bytes of all its runs`() {
        day = DownloadDay(day: "2026-11-21", bytes: 90)
        rules.dailyBytes = 100
        let before = obstacle("2026-11-21", 8)
        day.count(10)
        let after = obstacle("2026-11-21", 9)
        #expect(before == nil && after != nil)
        rules.dailyBytes = nil
        let unlimited = obstacle("2026-11-21", 10)
        #expect(unlimited == nil)
    }

    @Test mutating func `quiet hours last over midnight, whatever is left of the budget`() {
        rules.quietHours = DownloadRules.Hours("22:00-06:30")
        rules.dailyBytes = 100
        day.count(100)
        let times = [(21, 59), (22, 0), (23, 59)].map { obstacle("2026-11-20", $0, $1) }
        #expect(times[0]?.contains("budget") == true)
        #expect(times[1] == "quiet hours last until 6:30" && times[2] == times[1])
        let night = [(0, 0), (6, 29)].map { obstacle("2026-11-21", $0, $1) }
        #expect(night == [times[1], times[1]])
        let morning = obstacle("2026-11-21", 6, 30)
        #expect(morning == nil && day.bytes == 0)
    }

    @Test mutating func `the day's bytes are saved every 8 MiB, and the rest at the end`() {
        var saves = 0
        for _ in 0..<40 {
            day.count(1 << 20)
            let begins = day.beginsSaving(atOnce: false)
            if begins { saves += 1 }
        }
        #expect(saves == 4)
        let last = day.beginsSaving(atOnce: true)
        let again = day.beginsSaving(atOnce: true)
        #expect(last && !again && day.bytes == 40 << 20)
    }

    @Test mutating func `counts that no day can have do not overflow`() {
        day = DownloadDay(day: "2026-11-20", bytes: .max)
        day.count(.max)
        #expect(day.bytes == .max)
    }
}
