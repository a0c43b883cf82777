import HTTP
import Posix
import Testing
import URISyntax
@testable import Upstream

@Suite struct `Early connections` {
    private static func at(_ milliseconds: Int64) -> Monotonic {
        Monotonic(nanoseconds: 1_000_000_000_000 + milliseconds * 1_000_000)
    }

    private static func origin(_ number: Int = 0) -> Origin {
        Origin(scheme: .https, host: "h\(number).test", port: 443)
    }

    @Test func `early connections to an origin pause after an attempt, longer after a failure`() {
        var early = EarlyConnections()
        func tries(_ number: Int = 0, at milliseconds: Int64) -> Bool {
            early.begin(Self.origin(number), now: Self.at(milliseconds))
        }
        #expect(tries(at: 0))
        #expect(!tries(at: 4_999))
        #expect(tries(1, at: 1))
        #expect(tries(at: 5_000))
        early.note(.failed, at: Self.origin(), now: Self.at(6_000))
        #expect(!tries(at: 35_999))
        #expect(tries(at: 36_000))
    }

    @Test func `the number of origins is limited, and expires with time`() {
        var early = EarlyConnections()
        let begun = (0..<1_000).count { early.begin(Self.origin($0), now: Self.at(0)) }
        let later = early.begin(Self.origin(999), now: Self.at(5_001))
        #expect(begun == 256 && later)
    }

    @Test func `a connection is too old for a first request after 4 seconds`() {
        var early = EarlyConnections()
        for port: UInt16 in [1, 2] { early.opened(localPort: port, now: Self.at(0)) }
        let asked: [(UInt16, Int64)] = [(1, 4_000), (2, 4_001), (2, 9_000), (3, 9_000)]
        let answers = asked.map { early.isTooOld(localPort: $0.0, now: Self.at($0.1)) }
        #expect(answers == [false, true, false, false])
    }

    @Test func `early connections stop with a libcurl that sends the request`() {
        var early = EarlyConnections()
        early.isPossible = false
        let begins = early.begin(Self.origin(), now: Self.at(0))
        #expect(!begins)
    }
}
