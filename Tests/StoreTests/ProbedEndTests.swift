import Posix
import Store
import Testing

/// How long a range beyond the end of a growing body is refused without a request.
@Suite struct ProbedEndTests {
    private let time = Monotonic(nanoseconds: 5_000_000_000)

    private func refuses(
        _ first: Int64, refused: Int64 = 700, total: Int64? = 600, storedEnd: Int64 = 600,
        listedEnd: Int64 = 800, after milliseconds: Int64 = 0
    ) -> Bool {
        ProbedEnd(refusing: refused, total: total, listedEnd: 800, at: time).refuses(
            first, storedEnd: storedEnd, listedEnd: listedEnd,
            now: time + .milliseconds(milliseconds))
    }

    @Test func `what lies beyond the stated length is refused for a second`() {
        #expect(refuses(600) && refuses(700) && refuses(750, after: 999))
        #expect(!refuses(599) && !refuses(700, after: 1_000))
    }

    @Test func `a list that has moved on has the origin asked again`() {
        #expect(!refuses(700, listedEnd: 900))
    }

    @Test func `bytes that have come since show another end`() {
        #expect(!refuses(700, storedEnd: 700))
    }

    @Test func `without a length the refused range tells the end`() {
        #expect(refuses(700, total: nil) && !refuses(650, total: nil))
        // Nor does a length count that has the refused byte.
        #expect(refuses(700, total: 900) && !refuses(650, total: 900))
    }
}
