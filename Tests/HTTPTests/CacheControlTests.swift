import FuzzSupport
import HTTP
import Testing

struct `Cache directives` {
    @Test func `every response directive is parsed`() {
        let control = CacheControl(
            "max-age=60, s-maxage=30, no-store, no-cache, private, public, must-revalidate, "
                + "proxy-revalidate, must-understand, immutable, no-transform, "
                + "stale-while-revalidate=5, stale-if-error=7, x-other=1")
        #expect(control.maxAge == 60 && control.sharedMaxAge == 30)
        #expect(control.noStore && control.public && control.mustRevalidate)
        #expect(control.proxyRevalidate && control.mustUnderstand)
        #expect(control.noCache == .response && control.private == .response)
        #expect(control.staleWhileRevalidate == 5 && control.staleIfError == 7)
    }

    @Test func `every request directive is parsed`() {
        let control = CacheControl("only-if-cached, min-fresh=3, max-stale=4, max-age=0")
        #expect(control.onlyIfCached)
        #expect(control.minFresh == 3)
        #expect(control.maxStale == .seconds(4))
        #expect(control.maxAge == 0)
        #expect(CacheControl("max-stale").maxStale == .any)
    }

    @Test func `an absent or empty field has no directive`() {
        #expect(CacheControl(Fields()) == CacheControl())
        #expect(CacheControl(" , ,") == CacheControl())
        #expect(CacheControl("x-max-age=1").maxAge == nil)
    }

    @Test(
        arguments: [
            ("max-age=60", 60), ("MAX-AGE=60", 60), ("max-age=\"60\"", 60), ("max-age=0060", 60),
            ("max-age=2147483648", 1 << 31), ("max-age=2147483649", 1 << 31),
            ("max-age=99999999999999999999999", 1 << 31),
            ("max-age=-1", 0), ("max-age=1.5", 0), ("max-age=", 0), ("max-age", 0),
            ("max-age=a", 0),
            ("max-age=60a", 0), ("max-age =60", 0), ("max-age= 60", 0), ("max-age='60'", 0),
            ("max-age=60 60", 0), ("max-age=\"60", 0), ("max-age=+60", 0), ("max-age==60", 0),
            ("max-age=60, max-age=30", 30), ("max-age=30, max-age=60", 30),
            ("max-age=60, max-age=x", 0), ("a=\"b, max-age=9\", max-age=60", 60),
            ("a=\"b, c, max-age=60", 60), (",max-age=60,", 60), ("max-age=60;x=y", 0),
        ] as [(String, Int64)])
    func `of several lifetimes the most restrictive counts`(value: String, seconds: Int64) {
        #expect(CacheControl(value).maxAge == seconds)
    }

    @Test(
        arguments: [
            ("no-cache", .response), ("no-cache=\"Set-Cookie\"", .fields(["set-cookie"])),
            ("no-cache=Set-Cookie", .fields(["set-cookie"])),
            ("no-cache=\"a , B\"", .fields(["a", "b"])),
            ("no-cache=\"a\", no-cache=b", .fields(["a", "b"])),
            ("no-cache=\"a\", no-cache", .response), ("no-cache, no-cache=\"a\"", .response),
            ("no-cache=\"\"", .response), ("no-cache=", .response), ("no-cache=\"a b\"", .response),
            ("no-cache=\"a", .response),
        ] as [(String, CacheControl.Scope)])
    func `no-cache may name fields`(value: String, scope: CacheControl.Scope) {
        #expect(CacheControl(value).noCache == scope)
        let same = value.split(separator: "no-cache", omittingEmptySubsequences: false)
        #expect(CacheControl(same.joined(separator: "private")).private == scope)
    }

    @Test(
        arguments: [
            ("max-stale, max-stale=5", .seconds(5)), ("max-stale=5, max-stale", .seconds(5)),
            ("max-stale=9, max-stale=5", .seconds(5)), ("max-stale=x", .seconds(0)),
            ("max-stale=99999999999", .seconds(1 << 31)),
        ] as [(String, CacheControl.MaxStale)])
    func `of several max-stale values the smallest counts`(
        value: String, allowed: CacheControl.MaxStale
    ) {
        #expect(CacheControl(value).maxStale == allowed)
    }

    @Test func `of several min-fresh values the largest counts`() {
        #expect(CacheControl("min-fresh=3, min-fresh=9, min-fresh=x").minFresh == 9)
    }

    @Test func `all lines of a field count, and a targeted field is selected by its name`() {
        let response = fields(
            ("Cache-Control", "max-age=60"), ("cache-control", "no-store"),
            ("CDN-Cache-Control", "max-age=600"))
        #expect(CacheControl(response).maxAge == 60)
        #expect(CacheControl(response).noStore)
        #expect(CacheControl(response, name: .cdnCacheControl).maxAge == 600)
        #expect(!CacheControl(response, name: .cdnCacheControl).noStore)
    }

    @Test func `random text never traps`() {
        var random = SeededNumbers(seed: 7)
        let parts = ["max-age", "=", "\"", ",", "\\", "9", " ", "no-cache", "max-stale", "private"]
        for _ in 0..<3000 {
            let text = (0..<12).compactMap { _ in parts.randomElement(using: &random) }.joined()
            if let age = CacheControl(text).maxAge {
                #expect(age >= 0 && age <= CacheControl.maximumSeconds)
            }
        }
    }
}

struct `Cache-Status` {
    @Test func `the value for a hit gives the remaining freshness`() {
        let status = CacheStatus(cache: "Sluice", hit: true, ttl: 376)
        #expect(status.serialised == "Sluice; hit; ttl=376")
    }

    @Test func `the value for a forwarded request gives the reason and the origin's status`() {
        var status = CacheStatus(cache: "Sluice", forward: .uriMiss, ttl: -3)
        status.forwardStatus = .partialContent
        status.stored = true
        status.collapsed = true
        status.key = "https://a/\"b\\"
        status.detail = "hole"
        #expect(
            status.serialised
                == "Sluice; fwd=uri-miss; fwd-status=206; ttl=-3; stored; collapsed; "
                + "key=\"https://a/\\\"b\\\\\"; detail=hole")
    }

    @Test(arguments: [
        ("Sluice", "Sluice"), ("a.b:80/c*", "a.b:80/c*"), ("*", "*"),
        ("two words", "\"two words\""),
        ("1a", "\"1a\""), ("", "\"\""), ("a\r\nb", "\"a??b\""), ("é", "\"?\""), ("a;b", "\"a;b\""),
    ])
    func `a cache name is written as a token if possible, else as a string`(
        name: String, expected: String
    ) {
        #expect(CacheStatus(cache: name).serialised == expected)
    }

    @Test func `integers have at most fifteen digits`() {
        let status = CacheStatus(cache: "a", hit: true, ttl: Int64.min)
        #expect(status.serialised == "a; hit; ttl=-999999999999999")
    }

    @Test func `every reason has its registered name`() {
        let names = CacheStatus.ForwardReason.allCases.map(\.rawValue)
        #expect(
            names == [
                "bypass", "method", "uri-miss", "vary-miss", "miss", "request", "stale", "partial",
            ])
    }

    @Test func `a cache appends its member behind those of caches nearer to the origin`() {
        var response = fields(("Cache-Status", "Origin; hit"))
        CacheStatus(cache: "Sluice", forward: .miss).append(to: &response)
        #expect(response.combined(.cacheStatus) == "Origin; hit, Sluice; fwd=miss")
    }
}
