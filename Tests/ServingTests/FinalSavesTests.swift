import Posix
import Testing

@testable import TimeShifting

/// Which windows a stop saves first.
@Suite struct FinalSavesTests {
    private func window(
        _ name: String, _ isRecorded: Bool, _ seconds: Int64?
    ) -> FinalSaves.Candidate<String> {
        let savedAt = seconds.map { Monotonic(nanoseconds: $0 * 1_000_000_000) }
        return FinalSaves.Candidate(item: name, isRecorded: isRecorded, savedAt: savedAt)
    }

    @Test func `windows of recordings come first, then those saved longest ago or never`() {
        let windows = [
            window("late", false, 30), window("early", false, 20), window("recorded", true, 40),
            window("never", false, nil), window("recorded first", true, 10),
        ]
        let names = FinalSaves.sorted(windows).map(\.item)
        #expect(names == ["recorded first", "recorded", "never", "early", "late"])
    }
}
