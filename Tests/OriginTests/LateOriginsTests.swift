@testable import Origin
import Posix
import Testing
import URISyntax

/// Which origins count as slow.
@Suite struct LateOriginsTests {
    private let now = Monotonic(nanoseconds: 1_000_000_000_000)
    private let limit = Interval.seconds(4 as Int64)

    private func url(_ host: String) throws -> AbsoluteURL {
        try AbsoluteURL("http://\(host)/a.ts")
    }

    @Test func `an origin counts as slow for ten minutes after its last late answer`() throws {
        let (slow, other) = (try url("slow").origin, try url("other").origin)
        var origins = LateOrigins()
        #expect(!origins.holds(slow, now: now))
        origins.note(slow, after: .milliseconds(4_001), limit: limit, now: now)
        #expect(origins.holds(slow, now: now) && !origins.holds(other, now: now))
        #expect(origins.holds(slow, now: now + .milliseconds(599_999)))
        #expect(!origins.holds(slow, now: now + .seconds(600 as Int64)))
        let later = now + .seconds(500 as Int64)
        origins.note(slow, after: .seconds(12 as Int64), limit: limit, now: later)
        #expect(origins.holds(slow, now: now + .seconds(1_000 as Int64)))
    }

    @Test func `a quick answer is no late one, and does not make up for one`() throws {
        let origin = try url("h").origin
        var origins = LateOrigins()
        origins.note(origin, after: limit, limit: limit, now: now)
        #expect(!origins.holds(origin, now: now))
        origins.note(origin, after: .seconds(5 as Int64), limit: limit, now: now)
        origins.note(origin, after: .milliseconds(10), limit: limit, now: now)
        #expect(origins.holds(origin, now: now))
    }

    @Test func `the oldest of many slow origins are forgotten`() throws {
        var origins = LateOrigins()
        for number in 0...256 {
            let origin = try url("h\(number)").origin
            origins.note(origin, after: .seconds(5 as Int64), limit: limit, now: now)
        }
        let (first, last) = (try url("h0").origin, try url("h256").origin)
        #expect(!origins.holds(first, now: now) && origins.holds(last, now: now))
    }
}
