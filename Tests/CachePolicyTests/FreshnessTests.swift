/// What may be reused, decided from values alone; time is given, never waited for.
import CachePolicy
import HTTP
import Posix
import Testing

@Suite struct `What may be reused` {
    static let arrived = WallTime(seconds: 1_800_000_000)

    private func head(_ fields: Fields = [:]) -> StoredHead {
        StoredHead(
            status: .ok, fields: fields, requestTime: Self.arrived, responseTime: Self.arrived,
            finalURL: "https://h/a")
    }

    private func question(
        _ policy: Policy, _ fields: Fields = [:], playlist: PlaylistFacts? = nil,
        request: Fields = [:],
        after: Interval
    ) -> Freshness.Question {
        Freshness.Question(
            policy: policy, head: head(fields), playlist: playlist, requestFields: request,
            now: Self.arrived + after, isShared: false)
    }

    static let live = PlaylistFacts(isLive: true, targetDuration: .seconds(6 as Int64))

    // Trap 36.
    @Test func `a live list is reused for half a target duration and no longer`() {
        let before = question(.media, playlist: Self.live, after: .milliseconds(2_990))
        let after = question(.media, playlist: Self.live, after: .milliseconds(3_000))
        #expect(Freshness.decide(before) == .fresh(seconds: 0))
        #expect(Freshness.decide(after) == .stale(.live))
    }

    @Test func `a low-latency list goes by its part target`() {
        let facts = PlaylistFacts(
            isLive: true, targetDuration: .seconds(4 as Int64), partTarget: .milliseconds(500))
        #expect(
            Freshness.decide(question(.media, playlist: facts, after: .milliseconds(240)))
                == .fresh(seconds: 0))
        #expect(
            Freshness.decide(question(.media, playlist: facts, after: .milliseconds(260)))
                == .stale(.live))
    }

    // Trap 42.
    @Test func `a finished list is reusable for as long as it is kept`() {
        let vod = PlaylistFacts(isLive: false, targetDuration: .seconds(6 as Int64))
        #expect(
            Freshness.decide(question(.media, playlist: vod, after: .seconds(10_000_000 as Int64)))
                == .fresh(seconds: nil))
    }

    // Players send these by habit.
    @Test(arguments: ["no-cache", "max-age=0", "no-store"])
    func `a player's Cache-Control does not steer media`(_ value: String) {
        let asked = question(
            .media, request: ["Cache-Control": value], after: .seconds(60 as Int64))
        #expect(Freshness.decide(asked) == .fresh(seconds: nil))
    }

    @Test func `a live list is served stale for three target durations only`() {
        #expect(
            Freshness.mayServeStale(
                question(.media, playlist: Self.live, after: .seconds(20 as Int64))))
        #expect(
            !Freshness.mayServeStale(
                question(.media, playlist: Self.live, after: .seconds(22 as Int64))))
        #expect(
            Freshness.mayServeStale(
                question(.offline, playlist: Self.live, after: .seconds(9_999 as Int64))))
    }

    // Trap 75.
    @Test func `a clock that went back does not keep a live list fresh`() {
        #expect(
            Freshness.decide(question(.media, playlist: Self.live, after: .seconds(-5 as Int64)))
                == .stale(.live))
    }

    @Test func `offline never asks and refresh always does`() {
        #expect(
            Freshness.decide(
                question(.offline, ["Cache-Control": "no-cache"], after: .seconds(9 as Int64)))
                == .fresh(seconds: nil))
        #expect(
            Freshness.decide(question(.refresh, ["Cache-Control": "max-age=99"], after: .zero))
                == .stale(.refreshPolicy))
    }

    @Test(arguments: [
        ("max-age=60", 59, true), ("max-age=60", 60, false), ("no-cache", 0, false),
        ("max-age=60, no-cache", 1, false), ("s-maxage=5, max-age=60", 30, true),
    ])
    func `rfc goes by the response's lifetime`(_ control: String, _ age: Int64, _ isFresh: Bool) {
        let decided = Freshness.decide(
            question(.rfc, ["Cache-Control": control], after: .seconds(age)))
        if case .fresh = decided { #expect(isFresh) } else { #expect(!isFresh) }
    }

    @Test func `rfc counts the age that the response came with`() {
        let decided = Freshness.decide(
            question(
                .rfc, ["Cache-Control": "max-age=60", "Age": "50"], after: .seconds(10 as Int64)))
        #expect(decided == .stale(.expired))
    }

    @Test func `rfc treats a malformed Expires as long past`() {
        let fields: Fields = ["Expires": "0", "Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT"]
        #expect(
            Freshness.decide(question(.rfc, fields, after: .seconds(1 as Int64)))
                == .stale(.expired))
    }

    @Test func `rfc guesses a tenth of the time since the last change`() {
        let modified = HTTPDate.format(Self.arrived.seconds - 1_000)
        #expect(
            Freshness.decide(
                question(.rfc, ["Last-Modified": modified], after: .seconds(99 as Int64)))
                == .fresh(seconds: 1))
        #expect(
            Freshness.decide(
                question(.rfc, ["Last-Modified": modified], after: .seconds(100 as Int64)))
                == .stale(.expired))
    }

    @Test func `must-revalidate forbids stale answers`() {
        let strict = question(
            .rfc, ["Cache-Control": "max-age=1, must-revalidate"], after: .seconds(9 as Int64))
        let lax = question(.rfc, ["Cache-Control": "max-age=1"], after: .seconds(9 as Int64))
        #expect(!Freshness.mayServeStale(strict))
        #expect(Freshness.mayServeStale(lax))
    }
}
