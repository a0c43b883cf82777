import Posix
import Testing

@testable import TimeShifting

/// How long a recording waits for room.
@Suite struct RoomShortageTests {
    private func time(_ seconds: Int64) -> Monotonic {
        Monotonic(nanoseconds: 0) + .seconds(seconds)
    }

    /// The first second of those given at which a failure ends the recording; nil for none.
    private func end(
        _ shortage: inout RoomShortage, target: Int64, _ times: Range<Int64>
    ) -> Int64? {
        times.first { shortage.failed(at: time($0), target: .seconds(target)) }
    }

    @Test func `any number of failures within a minute ends nothing`() {
        var shortage = RoomShortage()
        for _ in 0..<1_000 {
            let ends = shortage.failed(at: time(5), target: .seconds(2))
            #expect(!ends && shortage.isPresent)
        }
        let end = end(&shortage, target: 2, 5..<500)
        #expect(end == 65)
    }

    @Test func `segments of a minute have three of them`() {
        var shortage = RoomShortage()
        let end = end(&shortage, target: 60, 0..<500)
        #expect(end == 180)
    }

    @Test func `a stored resource ends the shortage`() {
        var shortage = RoomShortage()
        let first = end(&shortage, target: 2, 0..<59)
        shortage.ends()
        #expect(first == nil && !shortage.isPresent)
        let second = end(&shortage, target: 2, 59..<500)
        #expect(second == 119)
    }

    @Test(arguments: [Int64.min, .max])
    func `any target duration is taken`(nanoseconds: Int64) {
        var shortage = RoomShortage()
        let target = Interval(nanoseconds: nanoseconds)
        let first = shortage.failed(at: time(0), target: target)
        let last = shortage.failed(at: time(10_000), target: target)
        #expect(!first && last)
    }
}
