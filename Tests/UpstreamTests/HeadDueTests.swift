import Posix
import Testing
import URISyntax

@testable import Upstream

/// When the wait for a head ends.
@Suite struct HeadDueTests {
    private func at(_ seconds: Int64) -> Monotonic {
        Monotonic(nanoseconds: seconds * 1_000_000_000)
    }

    /// A hop that was sent at 100 s and has received something last at `lastByte`.
    private func hop(lastByte: Int64) throws -> HopState {
        let request = TransferRequest(url: try AbsoluteURL("http://h/"))
        var hop = HopState(of: request, now: at(100))
        hop.lastByteAt = at(lastByte)
        return hop
    }

    @Test func `each interim response starts the wait again, up to the limit for the head`() throws
    {
        let timeouts = TransferTimeouts()
        let none = try hop(lastByte: 100).headDue(timeouts, interims: 0)
        #expect(none.time == at(115) && none.failure == .firstByteTimeout)
        let first = try hop(lastByte: 110).headDue(timeouts, interims: 1)
        #expect(first.time == at(125) && first.failure == .firstByteTimeout)
        let last = try hop(lastByte: 120).headDue(timeouts, interims: 2)
        #expect(last.time == at(130) && last.failure == .onlyInterim(count: 2))
    }

    @Test func `the limit for the head is never shorter than that for the first byte`() throws {
        let timeouts = TransferTimeouts(firstByte: .seconds(60 as Int64), head: .zero)
        let due = try hop(lastByte: 110).headDue(timeouts, interims: 1)
        #expect(due.time == at(160) && due.failure == .onlyInterim(count: 1))
    }

    @Test func `without a limit for the head, each interim response prolongs the wait`() throws {
        let due = try hop(lastByte: 900).headDue(TransferTimeouts(head: nil), interims: 60)
        #expect(due.time == at(915) && due.failure == .firstByteTimeout)
    }
}
