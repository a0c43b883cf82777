import CachePolicy
import Glibc
import HLS
import HTTP
import Model
import Posix
import Store
import Testing
import URISyntax

@testable import Library

/// Purges of one URL and all below it.
@Suite struct PurgePrefixTests {
    private static let urls = [
        "http://h/", "http://h/?x", "http://h/show7", "http://h/show7?x=/show7/",
        "http://h/show7 viewer 0123456789ab", "http://h/show7/", "http://h/show7/1.ts",
        "http://h/show7/1.ts?x", "http://h/show7//2.ts", "http://h/show70", "http://h/show70/1.ts",
        "http://h/a?b=http://h/show7/", "https://h/show7/1.ts", "http://h:81/show7/1.ts",
        "http://h.example/show7/1.ts", "no URL",
    ]

    @Test(arguments: [
        ("http://h/show7", Array(urls[2...8])), ("http://h/show7/", Array(urls[5...8])),
        ("http://h/show7//", [urls[8]]), ("http://h/show7/1", []),
        ("http://h/show7/1.ts", Array(urls[6...7])), ("http://h/", Array(urls[...11])),
        ("http://h:81/show7", [urls[13]]), ("http://h/show", []),
    ])
    func `a prefix ends at a path segment`(text: String, matched: [String]) throws {
        let prefix = try #require(PurgePrefix(text))
        #expect(Self.urls.filter { prefix.matches($0) } == matched)
        // As many purges find it.
        let lengths: Set = [text.utf8.count, text.utf8.count + 1, 3]
        let found = Self.urls.filter {
            PurgePrefix.texts(inURL: $0, ofLengths: lengths).contains(text[...])
        }
        #expect(found == matched)
    }

    @Test(arguments: ["", "h/x", "http://h", "http://h/x?", "http://h/a b", "http://h/a\n"])
    func `a text without a path, or with more, is no prefix`(text: String) {
        #expect(PurgePrefix(text) == nil)
    }

    /// Returns the URLs of what a purge by a prefix leaves; one of them is pinned.
    private func left(by prefix: String) throws -> [String] {
        let stage = try TitleStage()
        let urls = ["http://h/show7", "http://h/show7/1.ts?x=1", "http://h/show70", "http://h/pin"]
        for url in urls {
            try stage.store.keep(
                [1], as: ObjectKey(sha256Of: url), at: try AbsoluteURL(url), .segment)
        }
        try stage.store.pin(title: 9, url: "", keys: [ObjectKey(sha256Of: "http://h/pin")])
        let administration = stage.administration()
        defer { administration.stop() }
        var answer = administration.answer(
            .post, "/api/purge?prefix=\(PercentCoding.queryComponent(prefix))")
        let deadline = Monotonic.now() + .seconds(20 as Int64)
        while case .value(.accepted, _) = answer, Monotonic.now() < deadline {
            sched_yield()
            answer = administration.answer(.get, "/api/purge")
        }
        guard case .value(.ok, _) = answer else {
            Issue.record("\(answer)")
            return []
        }
        return urls.filter { stage.store.lookup(ObjectKey(sha256Of: $0)) != nil }
    }

    @Test(arguments: [
        ("http://h/show7", ["http://h/show70", "http://h/pin"]),
        ("HTTP://user:word@H:80/show7", ["http://h/show70", "http://h/pin"]),
        ("http://h", ["http://h/pin"]),
    ])
    func `a purge by prefix removes what is below it and not pinned`(
        text: String, kept: [String]
    ) throws {
        #expect(try left(by: text) == kept)
    }

    @Test(arguments: [
        ("http://h/show7?x=1", "no query and no fragment"),
        ("http://h/show7?", "no query and no fragment"),
        ("http://h/show7#x", "no query and no fragment"), ("h/show7", "with scheme and host"),
        ("//h/show7", "with scheme and host"), ("http:///show7", "with scheme and host"),
        ("ftp://h/show7", "with scheme and host"), ("http://h/a b", "without blanks"),
        ("", "with scheme and host"),
    ])
    func `a prefix without scheme and host, or with a query, is refused with the reason`(
        text: String, words: String
    ) throws {
        let stage = try TitleStage()
        let administration = stage.administration()
        let answer = administration.answer(
            .post, "/api/purge?prefix=\(PercentCoding.queryComponent(text))")
        administration.stop()
        guard case .failure(.badRequest, let reason) = answer else {
            Issue.record("\(answer)")
            return
        }
        #expect(reason.contains(words), "\(reason)")
    }

    @Test func `a prefix is that of the keys under which its content is stored`() throws {
        let stage = try TitleStage()
        var settings = KeySettings()
        var mirrors = OriginSettings(pattern: "*.cdn.example")
        mirrors.rules = [try KeyRule("host cdn.example")]
        settings.origins = KeyOrigins([mirrors])
        stage.keys.replace(settings)
        let prefixes = PurgePrefix.all(of: try AbsoluteURL("http://a.cdn.example/x"), stage.keys)
        #expect(
            prefixes.map(\.text).sorted() == ["http://a.cdn.example/x", "http://cdn.example/x"])
    }

    @Test func `other nodes are told the origin's URL without its password`() throws {
        let stage = try TitleStage()
        let administration = stage.administration()
        let query = "prefix=\(PercentCoding.queryComponent("http://user:word@h/show7"))&token=x"
        #expect(
            administration.queriesForNodes("/api/purge", query)
                == ["prefix=\(PercentCoding.queryComponent("http://h/show7"))"])
        administration.stop()
    }
}
