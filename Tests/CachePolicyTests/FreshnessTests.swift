import CachePolicy
import HLS
import HTTP
import Posix
import Testing

/// Whether a stored response may be reused, decided from values alone; the time is an argument.
@Suite struct `What may be reused` {
    static let arrived = WallTime(seconds: 1_800_000_000)

    private func head(_ fields: Fields = [:]) -> StoredHead {
        StoredHead(
            status: .ok, fields: fields, requestTime: Self.arrived, responseTime: Self.arrived,
            finalURL: "https://h/a")
    }

    private func question(
        _ policy: Policy, _ fields: Fields = [:], playlist: PlaylistFacts? = nil,
        request: Fields = [:], kind: CacheKind = .private,
        after: Interval
    ) -> Freshness.Question {
        Freshness.Question(
            policy: policy, rules: ReuseRules(head(fields), kind: kind), playlist: playlist,
            requestFields: request, now: Self.arrived + after)
    }

    static let live = PlaylistFacts(isLive: true, targetDuration: .seconds(6 as Int64))

    @Test func `a live list is reused for at most half a target duration`() {
        let before = question(.media, playlist: Self.live, after: .milliseconds(2_990))
        let after = question(.media, playlist: Self.live, after: .milliseconds(3_000))
        #expect(Freshness.decide(before) == .fresh(seconds: 0))
        #expect(Freshness.decide(after) == .stale(.live))
    }

    @Test func `an absurd target duration counts as unknown`() throws {
        for seconds in ["6000", "60000000000000000000"] {
            let text = "#EXTM3U\n#EXT-X-TARGETDURATION:\(seconds)\n#EXTINF:2,\na.ts\n"
            let facts = PlaylistFacts(
                try Playlist(Array(text.utf8), base: nil).summary, wasLive: false)
            #expect(facts.isLive && facts.reuse == .seconds(1 as Int64))
            #expect(facts.staleBound == .seconds(18 as Int64))
        }
    }

    @Test func `a low-latency list uses its part target`() {
        let facts = PlaylistFacts(
            isLive: true, targetDuration: .seconds(4 as Int64), partTarget: .milliseconds(500))
        #expect(
            Freshness.decide(question(.media, playlist: facts, after: .milliseconds(240)))
                == .fresh(seconds: 0))
        #expect(
            Freshness.decide(question(.media, playlist: facts, after: .milliseconds(260)))
                == .stale(.live))
    }

    @Test(arguments: [(6, 18), (1, 3), (30, 60)] as [(Int64, Int64)])
    func `a live list that has ended is reused for three target durations, at most a minute`(
        target: Int64, reuse: Int64
    ) {
        let list = PlaylistFacts(
            isLive: false, targetDuration: .seconds(target), hasEnded: true)
        func asked(_ policy: Policy, _ age: Interval) -> Freshness.Question {
            question(policy, ["Cache-Control": "max-age=86400"], playlist: list, after: age)
        }
        let last = Interval.milliseconds(reuse * 1_000 - 10)
        #expect(Freshness.decide(asked(.media, last)) == .fresh(seconds: 0))
        let late = asked(.media, .seconds(reuse))
        #expect(Freshness.decide(late) == .stale(.ended))
        // It is served for as long as the origin does not answer.
        #expect(Freshness.mayServeStale(asked(.media, .seconds(10_000_000 as Int64))))
        #expect(Freshness.remaining(asked(.media, .seconds(reuse + 1))) == -1)
        #expect(Freshness.decide(asked(.offline, .seconds(reuse))) == .fresh(seconds: nil))
        #expect(Freshness.decide(asked(.rfc, .seconds(reuse))) == .fresh(seconds: 86_400 - reuse))
    }

    @Test func `only a media playlist with ENDLIST that was live has ended`() throws {
        func hasEnded(_ lines: String, wasLive: Bool) throws -> Bool {
            let list = try Playlist(Array("#EXTM3U\n\(lines)\n".utf8), base: nil)
            return PlaylistFacts(list.summary, wasLive: wasLive).hasEnded
        }
        let media = "#EXT-X-TARGETDURATION:1\n#EXTINF:1,\na.ts"
        #expect(try hasEnded(media + "\n#EXT-X-ENDLIST", wasLive: true))
        #expect(try !hasEnded(media + "\n#EXT-X-ENDLIST", wasLive: false))
        #expect(try !hasEnded(media, wasLive: true))
        #expect(try !hasEnded("#EXT-X-STREAM-INF:BANDWIDTH=1\na.m3u8", wasLive: true))
    }

    @Test(arguments: [false, true])
    func `a multivariant playlist is asked for again if it names live ones`(
        namesLive: Bool
    ) throws {
        let text = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\na.m3u8\n"
        let list = PlaylistFacts(
            try Playlist(Array(text.utf8), base: nil).summary, wasLive: namesLive)
        let late = question(.media, playlist: list, after: .seconds(18 as Int64))
        let expected: Freshness = namesLive ? .stale(.ended) : .fresh(seconds: nil)
        #expect(Freshness.decide(late) == expected)
        #expect(Freshness.mayServeStale(late))
    }

    @Test func `a multivariant playlist that may be cut is asked for again after two seconds`()
        throws
    {
        func list(_ lines: String) throws -> PlaylistFacts {
            let text = "#EXTM3U\n\(lines)\n"
            return PlaylistFacts(
                try Playlist(Array(text.utf8), base: nil).summary, wasLive: false, mayBeCut: true)
        }
        let cut = try list("#EXT-X-STREAM-INF:BANDWIDTH=1\na.m3u8")
        let early = question(.media, playlist: cut, after: .milliseconds(1_990))
        let late = question(.media, playlist: cut, after: .seconds(2 as Int64))
        #expect(Freshness.decide(early) == .fresh(seconds: 0))
        #expect(Freshness.decide(late) == .stale(.ended) && Freshness.mayServeStale(late))
        let media = try list("#EXT-X-TARGETDURATION:1\n#EXTINF:1,\na.ts\n#EXT-X-ENDLIST")
        #expect(!media.mayBeReplaced)
    }

    @Test func `an ended list is reusable while it is stored`() {
        let vod = PlaylistFacts(isLive: false, targetDuration: .seconds(6 as Int64))
        #expect(
            Freshness.decide(question(.media, playlist: vod, after: .seconds(10_000_000 as Int64)))
                == .fresh(seconds: nil))
    }

    // Players send these by default.
    @Test(arguments: ["no-cache", "max-age=0", "no-store"])
    func `a player's Cache-Control has no effect under the media policy`(_ value: String) {
        let asked = question(
            .media, request: ["Cache-Control": value], after: .seconds(60 as Int64))
        #expect(Freshness.decide(asked) == .fresh(seconds: nil))
    }

    @Test func `a live list is served stale for at most three target durations`() {
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

    @Test func `a list of channels is served stale for as long as its origin is away`() {
        var list = Self.live
        list.isChannelList = true
        let asked = question(.media, playlist: list, after: .seconds(86_400 as Int64))
        #expect(Freshness.decide(asked) == .stale(.live))
        #expect(Freshness.mayServeStale(asked))
    }

    @Test func `a clock that is set back does not keep a live list fresh`() {
        #expect(
            Freshness.decide(question(.media, playlist: Self.live, after: .seconds(-5 as Int64)))
                == .stale(.live))
    }

    @Test
    func `a clock set back by less than a blocking reload took does not make the list younger`() {
        var asked = question(.media, playlist: Self.live, after: .seconds(2 as Int64))
        asked.steadyAge = .seconds(4 as Int64)
        #expect(Freshness.decide(asked) == .stale(.live))
        asked.now = Self.arrived + .seconds(18 as Int64)
        #expect(Freshness.mayServeStale(asked))
        asked.steadyAge = .seconds(22 as Int64)
        #expect(!Freshness.mayServeStale(asked))
        // The request was held for less than the clock was set back, so the age is still known.
        asked.now = Self.arrived + .seconds(-60 as Int64)
        asked.steadyAge = .seconds(1 as Int64)
        #expect(Freshness.decide(asked) == .fresh(seconds: 2))
    }

    @Test func `a clock that is set back does not extend the stale use of a live list`() {
        #expect(
            !Freshness.mayServeStale(
                question(.media, playlist: Self.live, after: .seconds(-7_200 as Int64))))
    }

    @Test(
        arguments: [
            (0, Freshness.fresh(seconds: 60)), (-1, .fresh(seconds: 60)), (-7_200, .stale(.clock)),
        ] as [(Int64, Freshness)])
    func `a clock that is set back does not keep a response fresh for longer`(
        _ age: Int64, _ expected: Freshness
    ) {
        let asked = question(.rfc, ["Cache-Control": "max-age=60"], after: .seconds(age))
        #expect(Freshness.decide(asked) == expected)
    }

    @Test func `a clock that is set back makes no response younger that this run received`() {
        var asked = question(
            .rfc, ["Cache-Control": "max-age=60, stale-if-error=20"], after: .seconds(30 as Int64))
        asked.steadyAge = .seconds(50 as Int64)
        #expect(Freshness.decide(asked) == .fresh(seconds: 10))
        #expect(Freshness.remaining(asked) == 10)
        asked.steadyAge = .seconds(80 as Int64)
        #expect(Freshness.decide(asked) == .stale(.expired) && Freshness.mayServeStale(asked))
        asked.steadyAge = .seconds(81 as Int64)
        #expect(!Freshness.mayServeStale(asked))
    }

    @Test func `offline never revalidates, refresh always does`() {
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
    func `rfc uses the response's lifetime`(_ control: String, _ age: Int64, _ isFresh: Bool) {
        let decided = Freshness.decide(
            question(.rfc, ["Cache-Control": control], after: .seconds(age)))
        if case .fresh = decided { #expect(isFresh) } else { #expect(!isFresh) }
    }

    @Test func `rfc adds the age that the response came with`() {
        let decided = Freshness.decide(
            question(
                .rfc, ["Cache-Control": "max-age=60", "Age": "50"], after: .seconds(10 as Int64)))
        #expect(decided == .stale(.expired))
    }

    @Test func `rfc treats a malformed Expires as expired`() {
        let fields: Fields = ["Expires": "0", "Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT"]
        #expect(
            Freshness.decide(question(.rfc, fields, after: .seconds(1 as Int64)))
                == .stale(.expired))
    }

    @Test func `rfc uses a tenth of the time since the last change as a heuristic`() {
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

    @Test func `must-revalidate forbids stale responses`() {
        let strict = question(
            .rfc, ["Cache-Control": "max-age=1, must-revalidate"], after: .seconds(9 as Int64))
        let lax = question(.rfc, ["Cache-Control": "max-age=1"], after: .seconds(9 as Int64))
        #expect(!Freshness.mayServeStale(strict))
        #expect(Freshness.mayServeStale(lax))
    }

    // RFC 9111 section 5.2.2.2: it must not be reused without validation once it has become stale.
    @Test(
        arguments: [
            ("max-age=60, must-revalidate", 30, true), ("max-age=60, must-revalidate", 60, false),
            ("max-age=60, proxy-revalidate", 30, true), ("max-age=60, proxy-revalidate", 60, false),
            ("s-maxage=60", 30, true), ("s-maxage=60", 60, false),
            ("max-age=60, no-cache", 30, false),
            // Its age is unknown after the clock was set back.
            ("max-age=60, must-revalidate", -30, false),
        ] as [(String, Int64, Bool)])
    func `what is fresh serves a reload in an outage, whatever forbids its stale use`(
        _ control: String, _ age: Int64, _ may: Bool
    ) {
        let asked = question(
            .rfc, ["Cache-Control": control], request: ["Cache-Control": "max-age=0"],
            kind: .gateway, after: .seconds(age))
        #expect(Freshness.mayServeStale(asked) == may)
    }

    // MARK: HTTP's rules to the letter

    @Test(arguments: [
        ("7200, 0", true), ("0, 7200", false), ("7200;x=1", true), ("-7200", false),
        ("7200.0", false), ("abc", false), ("99999999999999999999", true),
    ])
    func `the first member of Age counts if it is a number`(_ age: String, _ isStale: Bool) {
        let decided = Freshness.decide(
            question(.rfc, ["Cache-Control": "max-age=3600", "Age": age], after: .zero))
        #expect((decided == .stale(.expired)) == isStale)
    }

    @Test(
        arguments: [
            ([:], 5), (["Age": "10"], 3_605), (["Via": "1.1 cache"], 3_605),
            (["Age": "4000"], 4_005),
        ] as [(Fields, Int64)])
    func `for playback, Date tells an age only of a response that came through a cache`(
        fields: Fields, expected: Int64
    ) {
        var fields = fields
        fields.append(.date, HTTPDate.format(Self.arrived.seconds - 3_600))
        let rules = ReuseRules(head(fields), kind: .private)
        let now = Self.arrived + .seconds(5 as Int64)
        #expect(rules.playbackAge(at: now) == expected)
        #expect(rules.age(at: now) == max(3_605, expected))
    }

    @Test func `Expires is compared with Date, not with our clock`() {
        let fields: Fields = [
            "Date": HTTPDate.format(Self.arrived.seconds + 400),
            "Expires": HTTPDate.format(Self.arrived.seconds + 300),
        ]
        #expect(Freshness.decide(question(.rfc, fields, after: .zero)) == .stale(.expired))
    }

    @Test func `s-maxage applies to a shared cache and forbids its stale use`() {
        let fields: Fields = ["Cache-Control": "max-age=1, s-maxage=60"]
        let shared = question(.rfc, fields, kind: .shared, after: .seconds(30 as Int64))
        #expect(Freshness.decide(shared) == .fresh(seconds: 30))
        let late = question(.rfc, fields, kind: .shared, after: .seconds(70 as Int64))
        #expect(!Freshness.mayServeStale(late))
        let own = question(.rfc, fields, after: .seconds(30 as Int64))
        #expect(Freshness.decide(own) == .stale(.expired))
    }

    // To the letter, RFC 9111 section 5.2.2.10 forbids it; see the choices of Conformance.md.
    @Test(
        arguments: [
            ("stale-while-revalidate=10", 69, true, true),
            ("stale-while-revalidate=10", 71, false, false),
            ("stale-if-error=20", 80, false, true), ("stale-if-error=20", 81, false, false),
            ("stale-while-revalidate=10, stale-if-error=20", 69, true, true),
            ("stale-while-revalidate=10, stale-if-error=20", 80, false, true),
            ("stale-if-error=20, must-revalidate", 61, false, false),
            ("stale-while-revalidate=10, proxy-revalidate", 61, false, false),
        ] as [(String, Int64, Bool, Bool)])
    func `s-maxage allows the stale use that the same field states, and no more`(
        _ control: String, _ age: Int64, _ isBehind: Bool, _ onError: Bool
    ) {
        // What a client accepts does not count.
        let asked = question(
            .rfc, ["Cache-Control": "s-maxage=60, \(control)"],
            request: ["Cache-Control": "max-stale, stale-if-error=900"], kind: .gateway,
            after: .seconds(age))
        let expected = Freshness.staleWhileRevalidate(seconds: 60 - age)
        #expect(Freshness.decide(asked) == (isBehind ? expected : .stale(.expired)))
        #expect(Freshness.mayServeStale(asked) == onError)
    }

    // RFC 5861 section 3.
    @Test(arguments: [(3, -2), (10, nil)] as [(Int64, Int64?)])
    func `stale-while-revalidate is limited in time`(_ age: Int64, _ left: Int64?) {
        let decided = Freshness.decide(
            question(
                .rfc, ["Cache-Control": "max-age=1, stale-while-revalidate=9"],
                after: .seconds(age)))
        #expect(decided == left.map { .staleWhileRevalidate(seconds: $0) } ?? .stale(.expired))
    }

    // RFC 5861 section 4.
    @Test(arguments: [(60, "", true), (62, "", false), (62, "stale-if-error=100", true)])
    func `stale-if-error limits stale use after errors`(
        _ age: Int64, _ request: String, _ may: Bool
    ) {
        let fields: Fields = request.isEmpty ? [:] : ["Cache-Control": request]
        let asked = question(
            .rfc, ["Cache-Control": "max-age=1, stale-if-error=60"], request: fields,
            after: .seconds(age))
        #expect(Freshness.mayServeStale(asked) == may)
    }

    @Test(arguments: [
        ("max-age=5", Freshness.stale(.requestMaxAge)), ("min-fresh=55", .stale(.requestMinFresh)),
        ("no-cache", .stale(.requestNoCache)), ("max-age=10", .fresh(seconds: 50)),
    ])
    func `directives of a request restrict freshness`(_ control: String, _ expected: Freshness) {
        let asked = question(
            .rfc, ["Cache-Control": "max-age=60"], request: ["Cache-Control": control],
            after: .seconds(10 as Int64))
        #expect(Freshness.decide(asked) == expected)
    }

    @Test func `Pragma counts only without Cache-Control`() {
        let fields: Fields = ["Cache-Control": "max-age=60"]
        let alone = question(.rfc, fields, request: ["Pragma": "no-cache"], after: .zero)
        #expect(Freshness.decide(alone) == .stale(.requestNoCache))
        let beside = question(
            .rfc, fields, request: ["Pragma": "no-cache", "Cache-Control": "x"], after: .zero)
        #expect(Freshness.decide(beside) == .fresh(seconds: 60))
    }

    @Test func `max-stale of a request allows stale use unless must-revalidate forbids it`() {
        let request: Fields = ["Cache-Control": "max-stale=100"]
        let open = question(
            .rfc, ["Cache-Control": "max-age=1"], request: request, after: .seconds(9 as Int64))
        #expect(Freshness.decide(open) == .fresh(seconds: -8))
        let closed = question(
            .rfc, ["Cache-Control": "max-age=1, must-revalidate"], request: request,
            after: .seconds(9 as Int64))
        #expect(Freshness.decide(closed) == .stale(.expired))
    }

    @Test func `the remaining freshness of what is stale is lifetime minus age`() {
        let hour = question(
            .rfc, ["Cache-Control": "max-age=5", "Age": "2"], after: .seconds(100 as Int64))
        #expect(Freshness.remaining(hour) == -97)
        let list = question(.media, playlist: Self.live, after: .milliseconds(3_400))
        #expect(Freshness.remaining(list) == -1)
        let both = question(
            .rfc, ["Cache-Control": "max-age=1"], playlist: Self.live, after: .seconds(9 as Int64))
        #expect(Freshness.remaining(both) == -8)
        let kept = question(.media, ["Cache-Control": "max-age=5"], after: .seconds(9 as Int64))
        #expect(Freshness.remaining(kept) == nil)
    }

    @Test func `a reload is waited for no longer than a player would`() {
        func wait(_ age: Int64, target: Int64 = 6) -> Interval? {
            let list = PlaylistFacts(isLive: true, targetDuration: .seconds(target))
            return Freshness.reloadPatience(
                question(.media, playlist: list, after: .seconds(age)))
        }
        #expect(wait(4) == .seconds(6 as Int64))
        #expect(wait(4, target: 20) == .seconds(8 as Int64))
        #expect(wait(17) == .milliseconds(3_800))
        // Such a list is no answer while the origin may be about to give one.
        #expect(wait(20) == nil && wait(30) == nil)
        let film = question(
            .media, playlist: PlaylistFacts(isLive: false), after: .seconds(4 as Int64))
        #expect(Freshness.reloadPatience(film) == nil)
        let ended = PlaylistFacts(
            isLive: false, targetDuration: .seconds(20 as Int64), hasEnded: true)
        let late = question(.media, playlist: ended, after: .seconds(9_000 as Int64))
        #expect(Freshness.reloadPatience(late) == .seconds(8 as Int64))
    }

    @Test(arguments: [4, 17, 20, 9_000] as [Int64])
    func `a watched window is waited for no longer than a player would, however old it is`(
        age: Int64
    ) {
        func wait(target: Int64, isLive: Bool = true) -> Interval? {
            let list = PlaylistFacts(isLive: isLive, targetDuration: .seconds(target))
            return Freshness.reloadPatience(
                question(.media, playlist: list, after: .seconds(age)), isWatched: true)
        }
        #expect(wait(target: 6) == .seconds(6 as Int64))
        #expect(wait(target: 20) == .seconds(8 as Int64))
        #expect(wait(target: 6, isLive: false) == nil)
    }
}
