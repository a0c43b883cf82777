@testable import Origin
import Posix
import Testing

/// How long a flight waits for the slowest reader of a body that is not stored.
@Suite struct SlowestReaderTests {
    private static func seconds(_ count: Int64) -> Monotonic {
        Monotonic(nanoseconds: 1_000_000_000_000 + count * 1_000_000_000)
    }

    @Test func `a reader is stuck after a minute in one place, however long the flight waits`() {
        var reader = SlowestReader()
        var stuck: [Int64] = []
        func note(_ position: Int64, at second: Int64) {
            if reader.isStuck(at: position, now: Self.seconds(second)) { stuck.append(second) }
        }
        for second in Int64(0)..<200 { note(second / 50, at: second) }
        note(3, at: 209)
        note(3, at: 210)
        // Another reader is the slowest now.
        note(1, at: 211)
        note(1, at: 271)
        #expect(stuck == [210, 271])
    }
}
