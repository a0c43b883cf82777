import DurableState
import Posix
import Testing

@testable import Library

/// When work that ran in crashes is not resumed.
@Suite struct CrashCountTests {
    private func time(_ seconds: Int64) -> Monotonic {
        Monotonic(nanoseconds: 0) + .seconds(seconds)
    }

    /// The state that a run finds after the previous one crashed.
    private func died(_ counts: CrashCounts) -> CrashCounts { CrashCounts(counts.records) }

    @Test func `work begun just before two crashes in a row has two`() {
        var counts = CrashCounts()
        counts.begins("recording:a", at: time(0))
        counts = died(counts)
        #expect(counts.crashes(of: "recording:a") == 1)
        counts.begins("recording:a", at: time(0))
        counts = died(counts)
        #expect(counts.crashes(of: "recording:a") == CrashCounts.most)
    }

    @Test func `a minute without a crash resets the count`() {
        var counts = CrashCounts()
        counts.begins("download:a", at: time(0))
        counts = died(counts)
        counts.begins("download:a", at: time(0))
        let early = counts.endProbations(at: time(59))
        let late = counts.endProbations(at: time(60))
        #expect(!early && late)
        #expect(died(counts).crashes(of: "download:a") == 0)
    }

    @Test func `work that did not run in a crash keeps its count`() {
        var counts = CrashCounts()
        counts.begins("feed:a", at: time(0))
        counts.begins("feed:b", at: time(0))
        counts = died(counts)
        counts.begins("feed:b", at: time(0))
        counts = died(counts)
        #expect(counts.crashes(of: "feed:a") == 1)
        #expect(counts.crashes(of: "feed:b") == 2)
    }

    @Test func `work that ended or was resumed by a person has no crashes`() {
        var counts = CrashCounts()
        counts.begins("download:a", at: time(0))
        counts = died(counts)
        counts.forget("download:a")
        #expect(died(counts).crashes(of: "download:a") == 0)
        #expect(counts.isEmpty)
    }

    @Test func `changes contain each record that differs from the stored one`() {
        var counts = CrashCounts()
        counts.begins("feed:a", at: time(0))
        counts.begins("feed:b", at: time(0))
        counts = died(counts)
        let before = counts.records
        counts.begins("feed:a", at: time(0))
        counts.forget("feed:b")
        #expect(counts.changes(since: before).count == 2)
        #expect(counts.changes(since: counts.records).isEmpty)
        #expect(counts.records == [CrashRecord(item: "feed:a", crashes: 1, isRunning: true)])
    }

    @Test func `impossible counts are clamped`() {
        let counts = CrashCounts([
            CrashRecord(item: "a", crashes: 1_000, isRunning: true),
            CrashRecord(item: "b", crashes: -9, isRunning: false),
        ])
        #expect(counts.crashes(of: "a") == CrashCounts.most && counts.crashes(of: "b") == 0)
    }
}
