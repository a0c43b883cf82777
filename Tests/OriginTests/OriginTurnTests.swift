import Glibc
import Model
@testable import Origin
import Posix
import Testing
import URISyntax
import Upstream

/// How requests wait while another one to their origin is under way.
@Suite struct OriginTurnTests {
    private let origin = Origin(scheme: .http, host: "cdn.test", port: 80)

    @Test func `thousands that wait for one request do not each walk through all`() {
        let askers = (0..<2_000).map { _ in Asker() }
        askers[1_500].isAsking = true
        var memory = AskingFlights<Asker>()
        var looks = 0
        var right = 0
        for _ in askers {
            let found = memory.find(of: origin, among: askers) {
                looks += 1
                return $0.isAsking
            }
            if found === askers[1_500] { right += 1 }
        }
        #expect(right == askers.count)
        #expect(looks <= 2 * askers.count)
    }

    @Test func `another request is found once the former one has ended`() {
        let askers = (0..<3).map { _ in Asker() }
        let other = Origin(scheme: .http, host: "other.test", port: 80)
        var memory = AskingFlights<Asker>()
        askers[0].isAsking = true
        let first = memory.find(of: origin, among: askers)
        #expect(first === askers[0])
        (askers[0].isAsking, askers[2].isAsking) = (false, true)
        let second = memory.find(of: origin, among: askers)
        #expect(second === askers[2])
        let elsewhere = memory.find(of: other, among: [])
        #expect(elsewhere == nil)
        askers[2].isAsking = false
        let none = memory.find(of: origin, among: askers)
        #expect(none == nil)
    }

    @Test(arguments: [0, 0.5, 1.0]) func `a slow response is looked at seldom`(jitter: Double) {
        var time = Interval.zero
        var looks = 0
        while time < .seconds(3 as Int64) {
            let pause = OriginTurns.pause(whileAskedFor: time, jitter: jitter)
            #expect(pause >= OriginTurns.shortestPause && pause <= OriginTurns.longestPause)
            // What a late look adds to the wait.
            #expect(pause.nanoseconds <= max(20_000_000, time.nanoseconds / 4 + 1))
            time = Interval(nanoseconds: time.nanoseconds + pause.nanoseconds)
            looks += 1
        }
        // Every 20 ms it would be 150.
        #expect(looks <= 40)
    }

    // MARK: Origins that do not answer

    private static let start = Monotonic(nanoseconds: 5_000_000_000_000)

    /// The mark of an origin that answered before, after connections that failed at once.
    private func mark(_ code: CInt, failures: Int64) throws -> OriginHealth.Mark {
        let health = OriginHealth()
        _ = health.answered(origin, now: Self.start + .seconds(-1 as Int64))
        var error = UpstreamError(.connect, host: origin.host)
        error.systemCode = code
        for number in 0..<failures {
            let time = Self.start + .milliseconds(number * 200)
            _ = health.failed(
                OriginHealth.Failure(origin: origin, error: error, silentSince: time, now: time))
        }
        return try #require(health.mark(of: origin))
    }

    private func way(
        past mark: OriginHealth.Mark, isPlayers: Bool = true, awaitsReturn: Bool,
        after seconds: Int64 = 1
    ) -> OriginProbes.Way {
        OriginProbes.way(
            past: mark, isPlayers: isPlayers, awaitsReturn: awaitsReturn,
            now: Self.start + .seconds(seconds))
    }

    @Test func `where there is no way to an origin, a request waits instead of failing at once`()
        throws
    {
        let mark = try mark(ENETUNREACH, failures: 2)
        #expect(way(past: mark, awaitsReturn: true) == .awaitsReturn)
        #expect(way(past: mark, awaitsReturn: false) == .inTurn)
        #expect(way(past: mark, awaitsReturn: true, after: 30) == .inTurn)
        #expect(way(past: mark, isPlayers: false, awaitsReturn: true) == .closed)
        let refusing = try self.mark(ECONNREFUSED, failures: 2)
        #expect(way(past: refusing, awaitsReturn: true) == .inTurn)
        let suspected = try self.mark(ENETUNREACH, failures: 1)
        #expect(way(past: suspected, awaitsReturn: true) == .inTurn)
        #expect(way(past: suspected, isPlayers: false, awaitsReturn: false) == .free)
    }
}

private final class Asker {
    var isAsking = false
}

extension AskingFlights<Asker> {
    fileprivate mutating func find(of origin: Origin, among all: [Asker]) -> Asker? {
        find(of: origin, among: all) { $0.isAsking }
    }
}
