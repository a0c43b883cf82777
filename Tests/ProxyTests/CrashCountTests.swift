import Posix
import Testing

@testable import Library
@testable import Model
@testable import Serving

/// When something that ran in crashes is not taken up again.
@Suite struct CrashCountTests {
    private func time(_ seconds: Int64) -> Monotonic {
        Monotonic(nanoseconds: 0) + .seconds(seconds)
    }

    /// What a run finds after the former one died.
    private func died(_ counts: CrashCounts) -> CrashCounts { CrashCounts(counts.text) }

    @Test func `what begins just before two crashes in a row has two`() {
        var counts = CrashCounts()
        counts.begins("recording:a", at: time(0))
        counts = died(counts)
        #expect(counts.crashes(of: "recording:a") == 1)
        counts.begins("recording:a", at: time(0))
        counts = died(counts)
        #expect(counts.crashes(of: "recording:a") == CrashCounts.most)
    }

    @Test func `a minute survived forgives`() {
        var counts = CrashCounts()
        counts.begins("download:a", at: time(0))
        counts = died(counts)
        counts.begins("download:a", at: time(0))
        let early = counts.settle(at: time(59))
        let late = counts.settle(at: time(60))
        #expect(!early && late)
        #expect(died(counts).crashes(of: "download:a") == 0)
    }

    @Test func `what did not run in a crash keeps its count`() {
        var counts = CrashCounts()
        counts.begins("feed:a", at: time(0))
        counts.begins("feed:b", at: time(0))
        counts = died(counts)
        counts.begins("feed:b", at: time(0))
        counts = died(counts)
        #expect(counts.crashes(of: "feed:a") == 1)
        #expect(counts.crashes(of: "feed:b") == 2)
    }

    @Test func `what ended or was resumed by a person begins anew`() {
        var counts = CrashCounts()
        counts.begins("download:a", at: time(0))
        counts = died(counts)
        counts.forget("download:a")
        #expect(died(counts).crashes(of: "download:a") == 0)
        #expect(counts.isEmpty)
    }

    @Test(arguments: [
        "", "SLUICE PROBATION 1\n", "SLUICE PROBATION 1\na 9999999999999999999 running\nEND\n",
        "SLUICE PROBATION 1\na -1 running\nEND\n", "SLUICE PROBATION 1\na\nEND\n", "x\nEND\n",
    ])
    func `a damaged file counts nothing`(text: String) {
        #expect(CrashCounts(text).crashes(of: "a") == 0)
    }
}
