// The rule language of keys: the effect of each rule.
import CachePolicy
import Testing
import URISyntax

/// The key of a URL under rules written as in the configuration.
private func key(_ url: String, _ rules: String...) throws -> String {
    try keyed(url, rules).text
}

private func keyed(_ url: String, _ rules: [String]) throws -> KeyedURL {
    KeyMaker.key(
        of: try AbsoluteURL(url),
        rules: try rules.map { KeyRuleInForce(try KeyRule($0), .configured) }
    )
}

@Suite struct KeyRuleTests {
    @Test(arguments: [
        ("http://a/x?b=2&a=1&a=0", "sort", "http://a/x?a=1&a=0&b=2"),
        ("http://a/x?a=1&b=2&a=1", "unique", "http://a/x?a=1&b=2"),
        ("http://a/x?a=1&a=2", "unique", "http://a/x?a=1&a=2"),
        ("http://a/x?utm_source=m&id=2&utm_id=3", "drop utm_*", "http://a/x?id=2"),
        ("http://a/x?tok=1", "drop tok", "http://a/x"),
        ("http://a/x?a=1&id=2&b=3", "keep id", "http://a/x?id=2"),
        ("http://a/x?w=300&h=9", "tier w 320 640 1280", "http://a/x?w=320&h=9"),
        ("http://a/x?w=5000", "tier w 320 640 1280", "http://a/x?w=1280"),
        ("http://a/x?w=wide", "tier w 320 640", "http://a/x?w=wide"),
        ("http://a/x?lang=en-GB", "fold lang en en-* EN", "http://a/x?lang=en"),
        ("http://a/x?lang=de-AT", "fold lang en en-* EN", "http://a/x?lang=de-AT"),
        ("https://cdn7.example.com/x", "host cdn.example.com", "https://cdn.example.com/x"),
        ("http://a/hls/tok-123/x.ts", "segment tok-*", "http://a/hls/x.ts"),
        ("http://a/x?", "sort", "http://a/x?"),
        ("http://a/x", "drop *", "http://a/x"),
    ])
    func `each rule has its documented effect`(url: String, rule: String, expected: String) throws {
        #expect(try key(url, rule) == expected)
    }

    @Test(arguments: [3, 20, 5_000])
    func `repeated parameters are dropped however many there are`(count: Int) throws {
        let url = "http://a/x?" + (0..<count).map { "p\($0)" }.joined(separator: "&")
        #expect(try key(url + "&p1&p0&p1", "unique") == url)
    }

    @Test(arguments: [
        "", "sort a", "drop", "tier w", "tier w x", "fold lang en", "host", "host a/b", "shuffle",
    ])
    func `text that is not a rule is rejected with the valid form`(text: String) {
        #expect(throws: KeyRule.Fault.self) { try KeyRule(text) }
    }

    @Test(arguments: [
        "sort", "unique", "signatures", "drop a b*", "keep id", "tier w 320 640",
        "fold lang en en-*", "host cdn.example.com:8080", "segment tok-*",
    ])
    func `a rule is written as it was parsed`(text: String) throws {
        #expect(try KeyRule(text).description == text)
    }

    @Test func `a key lists the rules that made it, without secret values`() throws {
        let made = try keyed("http://a/x?tok=secret&b=2&a=1", ["drop tok", "sort"])
        #expect(made.steps.map(\.rule) == ["drop", "sort"])
        #expect(made.steps.map(\.effect) == ["tok", "parameters by name"])
        #expect(made.isMerged)
    }

    @Test func `a different order of parameters is not counted as merged`() throws {
        #expect(try !keyed("http://a/x?b=2&a=1", ["sort", "unique"]).isMerged)
    }

    @Test func `players' telemetry is never part of a key`() throws {
        #expect(try key("http://a/x?CMCD=bl%3D2100%2Csid&id=2") == "http://a/x?id=2")
        #expect(try key("http://a/x?CMCD=bl%3D2100") == "http://a/x")
    }

    @Test(arguments: ["*", "a*", "*b", "a*b", "a?b", "axb", "*x*", "a**b"])
    func `a glob matches its pattern`(pattern: String) {
        #expect(KeyGlob(pattern).matches("axb"))
    }

    @Test(arguments: ["", "a", "x*", "*a", "a?", "A*", "axb?", "*c*"])
    func `a glob matches nothing else`(pattern: String) {
        #expect(!KeyGlob(pattern).matches("axb"))
    }
}

@Suite struct KeyOriginTests {
    @Test func `the most specific pattern with a statement decides`() throws {
        var all = OriginSettings(pattern: "*")
        all.policy = .rfc
        var some = OriginSettings(pattern: "*.example.com")
        some.rules = [.sort]
        var one = OriginSettings(pattern: "cdn.example.com:8080")
        one.keys = .auto
        let table = KeyOrigins([all, some, one])
        let found = table.settings(of: try AbsoluteURL("http://cdn.example.com:8080/").origin)
        #expect(found.policy?.0 == .rfc && found.policy?.pattern == "*")
        #expect(found.keys == .auto)
        #expect(found.rules == [.sort])
        let other = table.settings(of: try AbsoluteURL("http://cdn.example.com/").origin)
        #expect(other.keys == nil)
    }

    @Test(arguments: [
        ("CDN.example", "http://cdn.example/"), ("cdn.example:8080", "http://cdn.example:8080/"),
        ("b\u{fc}cher.example", "http://b\u{fc}cher.example/"),
        ("*.b\u{fc}cher.example", "http://a.xn--bcher-kva.example/"),
        ("[2001:DB8:0:0::5]", "http://[2001:db8::5]/"), ("2001:db8::5", "http://[2001:DB8:0::5]/"),
        ("[2001:db8::5]:81", "http://[2001:db8::5]:81/"), ("2001:db8:*", "http://[2001:db8::5]/"),
        ("[2001:db8:*]", "http://[2001:db8::5]/"), ("*:81", "http://[2001:db8::5]:81/"),
    ]) func `a pattern matches its host in every spelling`(text: String, url: String) throws {
        let pattern = try #require(KeyGlob(host: text))
        #expect(OriginNames(try AbsoluteURL(url).origin).match(pattern))
        #expect(!OriginNames(try AbsoluteURL("http://other.example/").origin).match(pattern))
    }

    @Test(arguments: [
        "", "a/b", "a b", "http://a", "u@a", "a:", "[::1", "*/a", "b\u{fc}*.example",
    ]) func `what is no host is no pattern of one`(text: String) {
        #expect(KeyGlob(host: text) == nil)
    }

    @Test func `the port of an address is not a part of it`() throws {
        let pattern = try #require(KeyGlob(host: "2001:db8::5:81"))
        #expect(!OriginNames(try AbsoluteURL("http://[2001:db8::5]:81/").origin).match(pattern))
    }

    @Test func `vetoes survive a restart and can be lifted`() {
        var vetoes = KeyVetoes()
        let place = KeyVetoes.Place(origin: "http://a", scope: .media)
        let isNew = vetoes.add(.length, place)
        let isNewAgain = vetoes.add(.noStore, place)
        #expect(isNew && !isNewAgain)
        var again = KeyVetoes()
        for (place, reason) in vetoes.all { _ = again.add(reason, place) }
        #expect(again[place] == .length)
        #expect(again[KeyVetoes.Place(origin: "http://a", scope: .playlists)] == nil)
        again.forget("http://a")
        #expect(again.all.isEmpty)
    }

    @Test func `a bounded map drops its oldest key`() {
        var map = RecentMap<Int, String>(capacity: 2)
        map[1] = "a"
        map[2] = "b"
        map[1] = "c"
        map[3] = "d"
        #expect(map[1] == nil && map[2] == "b" && map[3] == "d")
        #expect(map.count == 2)
    }
}

struct KeyOriginsTests {
    @Test
    func `rules of all matching patterns are combined, those of the most specific one last`() throws
    {
        func settings(_ pattern: String, _ rules: String...) throws -> OriginSettings {
            var settings = OriginSettings(pattern: pattern)
            settings.rules = try rules.map { try KeyRule($0) }
            return settings
        }
        let origins = KeyOrigins([
            try settings("cdn.example.com", "sort", "drop own"), try settings("*", "drop sess"),
            try settings("*.example.com", "unique"),
            try settings("other.example.com", "fold a b c"),
        ])
        let url = try AbsoluteURL("https://cdn.example.com/a")
        #expect(
            origins.settings(of: url.origin).rules.map(\.description)
                == ["drop sess", "unique", "sort", "drop own"])
    }
}
