import Posix
import Routing
import Testing
import URISyntax

@testable import Model

/// The cookies of many sessions.
@Suite struct `The cookie jars` {
    private let jars = CookieJars()
    private let now = Monotonic(nanoseconds: 7)
    private let date = WallTime(seconds: 1_800_000_000)

    private func set(_ cookie: String, of session: UInt64) throws {
        let url = try AbsoluteURL("https://h.example/m")
        #expect(
            jars.receive(cookie, from: url, of: SessionID(session), now: now, date: date))
    }

    private func field(of session: UInt64) throws -> String? {
        jars.field(for: try AbsoluteURL("https://h.example/s"), of: SessionID(session), now: now)
    }

    @Test func `of 4,096 sessions the one whose cookies are unused longest is dropped`() throws {
        for session: UInt64 in 0..<4_096 { try set("a=\(session)", of: session) }
        // A request and a response use the jars that were made first.
        #expect(try field(of: 0) == "a=0")
        try set("a=x", of: 1)
        try set("a=4096", of: 4_096)
        try set("a=4097", of: 4_097)
        #expect(try field(of: 0) == "a=0" && field(of: 1) == "a=x")
        #expect(try field(of: 2) == nil && field(of: 3) == nil)
        #expect(try field(of: 4) == "a=4" && field(of: 4_097) == "a=4097")
        #expect(jars.isEmpty(of: SessionID(2)) && !jars.isEmpty(of: SessionID(4)))
    }

    @Test func `a session gets the cookies of another one beside its own`() throws {
        try set("a=1", of: 1)
        try set("b=1", of: 1)
        try set("b=2", of: 2)
        try set("c=2", of: 2)
        jars.copy(from: SessionID(1), to: SessionID(2), now: now)
        #expect(try field(of: 2) == "c=2; a=1; b=1")
        #expect(try field(of: 1) == "a=1; b=1")
        jars.copy(from: SessionID(3), to: SessionID(2), now: now)
        #expect(try field(of: 2) == "c=2; a=1; b=1")
    }

    @Test func `an expired cookie of another session replaces none`() throws {
        try set("a=1; Max-Age=60", of: 1)
        try set("b=1", of: 1)
        try set("a=2", of: 2)
        jars.copy(from: SessionID(1), to: SessionID(2), now: now + .seconds(60 as Int64))
        #expect(try field(of: 2) == "a=2; b=1")
    }
}
