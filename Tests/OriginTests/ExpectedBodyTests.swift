@testable import Origin
import Testing

/// Bodies of known extent, and the stored bytes that they reach.
@Suite struct ExpectedBodyTests {
    /// What became of a body's bytes.
    private struct Outcome: Equatable {
        /// The bytes that were taken before the comparison, and in all.
        var takenBefore = 0
        var taken = 0
        var skipped = 0
        var compared = 0
        var hasEnded = false
    }

    /// Sends a body from 0 on in pieces; a comparison finds the bytes the same.
    private func send(
        _ count: Int, pieces: Int, _ expected: ExpectedBody, stored: Range<Int64>, total: Int64?
    ) -> Outcome {
        var (expected, outcome, position, sent) = (expected, Outcome(), Int64(0), 0)
        func take(_ count: Int) {
            let proven = expected.proven(of: count, at: position)
            outcome.taken += proven
            position += Int64(proven)
            outcome.hasEnded = outcome.hasEnded || proven < count
        }
        while sent < count, !outcome.hasEnded {
            var left = min(pieces, count - sent)
            sent += left
            while left > 0, !outcome.hasEnded {
                let first =
                    stored.upperBound > position
                    ? max(stored.lowerBound, position)..<stored.upperBound : nil
                switch expected.next(left, at: position, stored: first, total: total) {
                case .take(let part):
                    take(part)
                    left -= part
                case .hold(let part):
                    left -= part
                    let bytes = [UInt8](repeating: 7, count: part)
                    guard let meeting = bytes.withUnsafeBytes({ expected.hold($0) }) else { break }
                    #expect(meeting.start == stored.lowerBound && position == meeting.start - 1)
                    outcome.takenBefore = outcome.taken
                    outcome.compared += meeting.held.count - 1
                    take(expected.taken(of: meeting))
                case .skip:
                    outcome.skipped += left
                    left = 0
                case .end: outcome.hasEnded = true
                }
            }
        }
        return outcome
    }

    @Test(arguments: [1, 2, 7, 99, 100, 101, 163, 1_000])
    func `the last byte of a hole waits until what follows it was compared`(pieces: Int) {
        let expected = ExpectedBody(end: 100, receivedEnd: 164, ahead: .checked)
        let outcome = send(164, pieces: pieces, expected, stored: 100..<5_000, total: 5_000)
        #expect(outcome.takenBefore == 99 && outcome.taken == 100)
        #expect(outcome.compared == 64 && !outcome.hasEnded)
    }

    @Test(arguments: [1, 64, 1_000])
    func `a body that goes on over stored bytes is taken whole`(pieces: Int) {
        let expected = ExpectedBody(ahead: .checked)
        let outcome = send(9_000, pieces: pieces, expected, stored: 100..<200, total: 9_000)
        #expect(outcome.takenBefore == 99 && outcome.taken == 9_000 && outcome.compared == 100)
    }

    @Test func `without bytes to compare, the last byte of a hole is left to another request`() {
        let expected = ExpectedBody(end: 100, receivedEnd: 100, ahead: .checked)
        let outcome = send(100, pieces: 30, expected, stored: 100..<5_000, total: 5_000)
        #expect(outcome.taken == 99 && outcome.hasEnded)
    }

    @Test func `a body that is longer than stated ends where it was stated`() {
        let expected = ExpectedBody(end: 100, receivedEnd: 100, ahead: .checked)
        let outcome = send(500, pieces: 30, expected, stored: 400..<500, total: nil)
        #expect(outcome.taken == 100 && outcome.hasEnded)
        #expect(ExpectedBody(end: 100).proven(of: 500, at: 90) == 10)
        #expect(ExpectedBody(end: 100).proven(of: 500, at: 120) == 0)
        #expect(ExpectedBody().proven(of: 500, at: 120) == 500)
    }
}
