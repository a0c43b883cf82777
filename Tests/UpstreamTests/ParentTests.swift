// Parsing the settings of parents, and the URLs that they are requested with.
import Testing
import URISyntax
import Upstream

@Suite struct ParentTests {
    private func asked(_ parent: String, _ url: String) throws -> String? {
        try Parent(parent, isTrusted: false).url(for: try AbsoluteURL(url), role: 0x73)?.text
    }

    @Test(arguments: [
        (
            "http://p:1", "https://cdn.test/a//b.ts?x=1&y=%2F",
            "http://p:1/o/s/https://cdn.test/a//b.ts?x=1&y=%2F"
        ),
        (
            "http://p:1/base/", "http://cdn.test:8080/a",
            "http://p:1/base/o/s/http://cdn.test:8080/a"
        ),
        ("http://u:pw@p:1", "http://me:word@cdn.test/a", "http://p:1/o/s/http://cdn.test/a"),
        (
            "http://p/{scheme}/{host}{path}", "https://cdn.test:444/a?b",
            "http://p/https/cdn.test:444/a?b"
        ),
        ("http://p/{scheme}/{host}{path}", "https://cdn.test?b", "http://p/https/cdn.test/?b"),
        ("https://p/{url}", "http://[::1]:8/a", "https://p/http://[::1]:8/a"),
    ])
    func `a parent is requested with the whole URL of the origin`(
        _ parent: String, _ url: String, _ expected: String
    ) throws {
        #expect(try asked(parent, url) == expected)
    }

    @Test(arguments: [
        "", "secret:80", "ftp://secret", "http://h/{secret}", "http://h/{host}", "http://h/{path",
        "http://h/?secret",
    ])
    func `text that is not a parent is rejected without being repeated`(_ text: String) throws {
        let fault = try #require(throws: RouteFault.self) {
            try Parent(text, isTrusted: false)
        }
        #expect(!fault.description.contains("secret"))
    }

    @Test func `a parent shows that it has credentials, but not which`() throws {
        let parent = try Parent("http://:secret@p:1/{url}", isTrusted: true)
        #expect(parent.description == "http://p:1/{url} (with credentials)")
    }

    @Test func `removing a parent moves only its URLs, to all the others`() throws {
        let all = try (1...4).map { try Parent("http://p\($0):1", isTrusted: false) }
        let (four, three) = (Parents(all), Parents(Array(all.dropLast())))
        var moved: [String: Int] = [:]
        for number in 0..<4_000 {
            let key = "https://cdn.test/\(number).ts"
            let (before, after) = (four.order(for: key), three.order(for: key))
            if before[0] === all[3] {
                #expect(after[0] === before[1])
                moved[after[0].description, default: 0] += 1
            } else {
                #expect(after[0] === before[0])
            }
        }
        #expect(moved.count == 3 && moved.values.allSatisfy { (250...420).contains($0) })
    }
}
