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
        request: Fields = [:], kind: CacheKind = .private,
        after: Interval
    ) -> Freshness.Question {
        Freshness.Question(
            policy: policy, rules: ReuseRules(head(fields), kind: kind), playlist: playlist,
            requestFields: request, now: Self.arrived + after)
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

    // MARK: HTTP's rules to the letter

    @Test(arguments: [
        ("7200, 0", true), ("0, 7200", false), ("7200;x=1", true), ("-7200", false),
        ("7200.0", false), ("abc", false), ("99999999999999999999", true),
    ])
    func `the first member of Age counts, if it is a number`(_ age: String, _ isStale: Bool) {
        let decided = Freshness.decide(
            question(.rfc, ["Cache-Control": "max-age=3600", "Age": age], after: .zero))
        #expect((decided == .stale(.expired)) == isStale)
    }

    @Test func `Expires is compared with Date and not with our clock`() {
        let fields: Fields = [
            "Date": HTTPDate.format(Self.arrived.seconds + 400),
            "Expires": HTTPDate.format(Self.arrived.seconds + 300),
        ]
        #expect(Freshness.decide(question(.rfc, fields, after: .zero)) == .stale(.expired))
    }

    @Test func `s-maxage counts in a shared cache and forbids stale use there`() {
        let fields: Fields = ["Cache-Control": "max-age=1, s-maxage=60"]
        let shared = question(.rfc, fields, kind: .shared, after: .seconds(30 as Int64))
        #expect(Freshness.decide(shared) == .fresh(seconds: 30))
        #expect(!Freshness.mayServeStale(shared))
        let own = question(.rfc, fields, after: .seconds(30 as Int64))
        #expect(Freshness.decide(own) == .stale(.expired))
    }

    // RFC 5861 section 3.
    @Test(arguments: [(3, -2), (10, nil)] as [(Int64, Int64?)])
    func `stale-while-revalidate has an end`(_ age: Int64, _ left: Int64?) {
        let decided = Freshness.decide(
            question(
                .rfc, ["Cache-Control": "max-age=1, stale-while-revalidate=9"],
                after: .seconds(age)))
        #expect(decided == left.map { .staleWhileRevalidate(seconds: $0) } ?? .stale(.expired))
    }

    // RFC 5861 section 4.
    @Test(arguments: [(60, "", true), (62, "", false), (62, "stale-if-error=100", true)])
    func `stale-if-error bounds stale use`(_ age: Int64, _ request: String, _ may: Bool) {
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
    func `a request's directives narrow what is fresh`(_ control: String, _ expected: Freshness) {
        let asked = question(
            .rfc, ["Cache-Control": "max-age=60"], request: ["Cache-Control": control],
            after: .seconds(10 as Int64))
        #expect(Freshness.decide(asked) == expected)
    }

    @Test func `Pragma counts only where there is no Cache-Control`() {
        let fields: Fields = ["Cache-Control": "max-age=60"]
        let alone = question(.rfc, fields, request: ["Pragma": "no-cache"], after: .zero)
        #expect(Freshness.decide(alone) == .stale(.requestNoCache))
        let beside = question(
            .rfc, fields, request: ["Pragma": "no-cache", "Cache-Control": "x"], after: .zero)
        #expect(Freshness.decide(beside) == .fresh(seconds: 60))
    }

    @Test func `max-stale of a request opens what must-revalidate closes`() {
        let request: Fields = ["Cache-Control": "max-stale=100"]
        let open = question(
            .rfc, ["Cache-Control": "max-age=1"], request: request, after: .seconds(9 as Int64))
        #expect(Freshness.decide(open) == .fresh(seconds: -8))
        let closed = question(
            .rfc, ["Cache-Control": "max-age=1, must-revalidate"], request: request,
            after: .seconds(9 as Int64))
        #expect(Freshness.decide(closed) == .stale(.expired))
    }
}

@Suite struct `Targeted directives` {
    private func lifetime(_ fields: Fields, _ kind: CacheKind = .gateway) -> Int64 {
        ReuseRules(
            StoredHead(
                status: .ok, fields: fields, requestTime: WallTime(seconds: 0),
                responseTime: WallTime(seconds: 0), finalURL: "https://h/a"), kind: kind
        ).lifetime
    }

    // RFC 9213 section 2.
    @Test(arguments: [
        ("max-age=600", 600), ("max-age=0", 0), ("foo, max-age=600;x=\"y\"", 600),
        ("max-age=999999999999999", 1 << 31),
        // Not well-formed, or empty: as if it were not there.
        ("max-age=600, &&&", 5), ("max-age =600", 5), ("MAX-AGE=600", 5), ("", 5),
        ("max-age=600,", 5), ("a=(1 2", 5), ("a=:zz", 5), ("a=\"x", 5),
        ("max-age=9999999999999999", 5),
        // Well-formed, but of the wrong type: the directive does not count.
        ("max-age=\"600\"", 0), ("max-age=1.5", 0), ("max-age", 0),
    ])
    func `CDN-Cache-Control goes before Cache-Control where it is well-formed`(
        _ value: String, _ seconds: Int64
    ) {
        #expect(
            lifetime(["Cache-Control": "max-age=5", "CDN-Cache-Control": value]) == seconds)
    }

    @Test func `it also goes before Expires, and is for gateways only`() {
        let fields: Fields = ["CDN-Cache-Control": "max-age=60", "Expires": "0"]
        #expect(lifetime(fields) == 60)
        #expect(lifetime(fields, .shared) == 0)
    }
}

@Suite struct `Selecting fields` {
    private func text(_ vary: String, _ request: Fields) -> String {
        SelectingFields(["Vary": vary]).text(of: request)
    }

    // RFC 9111 section 4.1.
    @Test(arguments: [
        ("Foo", ["Foo": "1, 2"], ["Foo": " 1,2 "]),
        ("Accept-Language", ["Accept-Language": "en, de"], ["Accept-Language": "De ,eN"]),
        (
            "Accept-Language", ["Accept-Language": "de;q=0.5, en"],
            ["Accept-Language": "en;q=1.0,de;q=0.50"]
        ),
        ("Accept-Encoding", ["Accept-Encoding": "gzip, br"], ["Accept-Encoding": "br,GZIP"]),
        ("bar, foo", ["Foo": "1", "Bar": "2"], ["Bar": "2", "Foo": "1"]),
    ] as [(String, Fields, Fields)])
    func `requests that mean the same select the same`(_ vary: String, _ a: Fields, _ b: Fields) {
        #expect(text(vary, a) == text(vary, b))
    }

    @Test(arguments: [
        ("Foo", ["Foo": "1"], ["Foo": "2"]), ("Foo", ["Foo": "1"], [:]), ("Foo", ["Foo": ""], [:]),
        ("Foo", ["Foo": "a"], ["Foo": "A"]),
        ("Accept-Language", ["Accept-Language": "en"], ["Accept-Language": "en;q=0.5"]),
    ] as [(String, Fields, Fields)])
    func `requests that differ do not`(_ vary: String, _ a: Fields, _ b: Fields) {
        #expect(text(vary, a) != text(vary, b))
    }

    @Test(arguments: ["*", "*, *", ", *", "Foo, *", "*, Foo"])
    func `a star anywhere selects nothing`(_ vary: String) {
        #expect(SelectingFields(["Vary": vary]).isAny)
    }

    @Test func `a coded body depends on the codings that are accepted, said or not`() {
        #expect(SelectingFields(["Content-Encoding": "gzip"]).names == ["accept-encoding"])
        #expect(SelectingFields(["Content-Encoding": "identity"]).isEmpty)
    }

    @Test func `an index of variants comes back from disk as it was`() {
        var index = VariantIndex()
        index.note(
            SelectingFields(names: ["a", "b"]),
            VariantIndex.variant(
                of: ["ETag": "W/\"x y\"", "Content-Language": "DE"], mark: "m1"))
        index.note(SelectingFields(names: ["c"]), .init(mark: "m2", tag: "", language: ""))
        #expect(VariantIndex(encoded: index.encoded) == index)
        #expect(index.variants.map(\.mark) == ["m2", "m1"])
    }

    @Test func `a response's head is no index, and an index no head`() {
        let index = VariantIndex()
        #expect(StoredHead(encoded: index.encoded) == nil)
        #expect(VariantIndex(encoded: Array("1 200 5 9 media https://h/\n".utf8)) == nil)
    }
}
