@testable import Model
@testable import Serving
import Posix
import Store
import Testing

/// The budget of a player request at its origins, without a network.
@Suite struct `Origin allowance` {
    private let key = ObjectKey(sha256Of: "a")

    private func at(_ seconds: Int64) -> Monotonic {
        Monotonic(nanoseconds: seconds * 1_000_000_000)
    }

    @Test func `repeated bytes are not progress`() {
        var allowance = OriginAllowance(now: at(0))
        _ = allowance.receive(0..<1_000, of: key, now: at(1))
        _ = allowance.fail()
        _ = allowance.receive(0..<1_000, of: key, now: at(2))
        _ = allowance.fail()
        #expect(allowance.failuresInARow == 2 && allowance.lastProgress == at(1))
        _ = allowance.receive(500..<1_001, of: key, now: at(3))
        #expect(allowance.failuresInARow == 0 && allowance.lastProgress == at(3))
        #expect(allowance.newBytes == 1_001 && allowance.repeatedBytes == 1_500)
    }

    @Test func `a wait for a slot is no time without a new byte`() {
        var allowance = OriginAllowance(now: at(0))
        _ = allowance.receive(0..<1_000, of: key, now: at(1))
        allowance.noteQueued(since: at(2), now: at(12))
        #expect(allowance.lastProgress == at(11))
        // Another request of the same budget got bytes during the wait.
        _ = allowance.receive(1_000..<2_000, of: key, now: at(18))
        allowance.noteQueued(since: at(13), now: at(20))
        #expect(allowance.lastProgress == at(20))
        allowance.noteQueued(since: at(21), now: at(19))
        #expect(allowance.lastProgress == at(20))
    }

    @Test func `new bytes allow more requests`() {
        var allowance = OriginAllowance(now: at(0))
        var taken = 0
        while allowance.takeRequest(now: at(0)), taken < 1_000 { taken += 1 }
        #expect(taken == 24 && allowance.requests == 24)
        _ = allowance.receive(0..<(128 << 10), of: key, now: at(1))
        while allowance.takeRequest(now: at(1)), taken < 1_000 { taken += 1 }
        #expect(taken == 26 && !allowance.mayAsk)
    }

    @Test func `the limit of repeated bytes grows with new bytes`() {
        var allowance = OriginAllowance(now: at(0))
        var rounds = 0
        while allowance.receive(0..<1_000_000, of: key, now: at(1)), rounds < 100 { rounds += 1 }
        #expect(rounds == 4)
    }

    @Test func `each resource has its own watermark`() {
        var allowance = OriginAllowance(now: at(0))
        _ = allowance.receive(0..<1_000, of: key, now: at(1))
        _ = allowance.receive(0..<1_000, of: ObjectKey(sha256Of: "b"), now: at(2))
        #expect(allowance.newBytes == 2_000 && allowance.repeatedBytes == 0)
    }

    @Test func `a range ahead of the others is new, one behind them is repeated`() {
        var allowance = OriginAllowance(now: at(0))
        _ = allowance.receive(5_000..<6_000, of: key, now: at(1))
        _ = allowance.receive(0..<6_000, of: key, now: at(2))
        #expect(allowance.newBytes == 1_000 && allowance.lastProgress == at(1))
    }

    /// Its request started the transfer, which goes on for a faster one.
    @Test func `what a reader that was left behind needs again is new to it`() {
        var allowance = OriginAllowance(now: at(0))
        _ = allowance.receive(0..<80_000, of: key, now: at(1))
        allowance.goBack(to: 5_000, of: key, now: at(100))
        #expect(allowance.lastProgress == at(100))
        _ = allowance.receive(5_000..<6_000, of: key, now: at(101))
        _ = allowance.receive(80_000..<81_000, of: key, now: at(102))
        _ = allowance.fail()
        _ = allowance.receive(6_000..<7_000, of: key, now: at(103))
        #expect(allowance.failuresInARow == 0 && allowance.lastProgress == at(103))
        #expect(allowance.newBytes == 83_000 && allowance.repeatedBytes == 0)
        // Not so what is received once more.
        _ = allowance.fail()
        _ = allowance.receive(6_000..<7_000, of: key, now: at(104))
        allowance.goBack(to: 5_000, of: key, now: at(105))
        _ = allowance.receive(5_000..<7_000, of: key, now: at(106))
        #expect(allowance.failuresInARow == 1 && allowance.lastProgress == at(103))
        #expect(allowance.newBytes == 83_000 && allowance.repeatedBytes == 3_000)
        allowance.goBack(to: 6_500, of: key, now: at(107))
        _ = allowance.receive(6_500..<7_000, of: key, now: at(108))
        #expect(allowance.newBytes == 83_500 && allowance.repeatedBytes == 3_000)
    }

    @Test func `a reader that asks where its transfer ended does not go back`() {
        var allowance = OriginAllowance(now: at(0))
        allowance.goBack(to: 1_000, of: key, now: at(1))
        _ = allowance.receive(0..<1_000, of: key, now: at(2))
        allowance.goBack(to: 1_000, of: key, now: at(3))
        #expect(allowance.lastProgress == at(2))
        _ = allowance.receive(0..<1_000, of: key, now: at(4))
        #expect(allowance.newBytes == 1_000 && allowance.repeatedBytes == 1_000)
    }
}

@Suite struct `Repeated lines of the log` {
    private func at(_ seconds: Int64) -> Monotonic {
        Monotonic(nanoseconds: seconds * 1_000_000_000)
    }

    @Test func `a log line is written once and its repetitions are counted`() {
        let repeats = LogRepeats()
        #expect(repeats.take("a", now: at(0)) == .log)
        #expect(repeats.take("b", now: at(0)) == .log)
        #expect(repeats.take("a", now: at(1)) == .counted(isFirst: true))
        #expect(repeats.take("a", now: at(2)) == .counted(isFirst: false))
        #expect(repeats.close("a") == 2)
        #expect(repeats.take("a", now: at(11)) == .log)
        #expect(repeats.take("b", now: at(11)) == .log)
    }
}
