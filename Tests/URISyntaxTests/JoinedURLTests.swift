import Testing
import URISyntax

/// URLs joined from two pieces, compared with the resolver on generated documents.
@Suite struct JoinedURLTests {
    static let prefixes = [
        "", "", "a/", "../a/", "/", "/r/s/", "//g/x/", "https://h:81/v/", "./", "a/../b/", "?",
        "{$v}/", "a%2Fb/", "ü/",
    ]
    static let tails = [
        "s1.ts", "s2.ts?t=1", "segment-0001_x.m4s", "UPPER.TS", "..", ".x", "x..", "a/b.ts", "",
        "q?x=a/b?c", "c:d", "c/d:e", "f#g", "sp ace.ts", "per%20cent", "br{ace", "q?{$v}", "\u{1}",
        "q?\u{7F}", "longer-than-eight-bytes.ts?and=a&query=that#ends", "日本.ts", "a/./b", "~t!.ts",
    ]

    @Test(arguments: ["http://h/d/l.m3u8?x=/y", "https://u:p@h:8443/", "http://[::1]/a/../b/l"])
    func `a joined URL equals the resolved reference`(_ base: String) throws {
        let resolver = URLResolver(base: try AbsoluteURL(base))
        var dice = URLResolverPropertyTests.Dice(state: 5)
        var document: [UInt8] = []
        var ranges: [Range<Int>] = []
        for _ in 0..<8_000 {
            let again = Bool.random(using: &dice) ? Self.prefixes.last : nil
            let prefix = again ?? Self.prefixes.randomElement(using: &dice) ?? ""
            let start = document.count
            document += Array((prefix + (Self.tails.randomElement(using: &dice) ?? "")).utf8)
            ranges.append(start..<document.count)
            document.append(0x0A)
        }
        var memory = FolderMemory(document: document)
        var joinedCount = 0
        for range in ranges where !range.isEmpty {
            let expected = try? resolver.resolve(document[range])
            guard let joined = memory.join(range) else {
                if let expected { memory.learn(range, as: expected) }
                continue
            }
            joinedCount += 1
            let text = String(decoding: document[range], as: UTF8.self)
            #expect(joined.url == expected && joined.count == expected?.bytes.count, "\(text)")
            let name = expected.map { Array($0.bytes[$0.lastPathSegmentRange]) }
            #expect(Array(document[joined.name]) == name, "\(text)")
            #expect(joined.url.query == expected?.query, "\(text)")
            #expect(joined.tailDigest == expected?.tailDigest, "\(text)")
            #expect(expected.map(joined.isSame) == true, "\(text)")
        }
        #expect(joinedCount > 1_000)
    }

    @Test(arguments: [
        "http://h/d/x2.ts?a=1", "http://h/d/x1.ts?a=2", "http://h/e/x1.ts?a=1", "http://h/d/x1.ts",
        "https://h/d/x1.ts?a=1", "http://h/d/x1.ts?a=1&", "http://g/d/x1.ts?a=1",
    ])
    func `a joined URL differs from a URL with any other byte`(_ other: String) throws {
        let document = Array("x0.tsx1.ts?a=1".utf8)
        var memory = FolderMemory(document: document)
        memory.learn(0..<5, as: try AbsoluteURL("http://h/d/x0.ts"))
        let joined = try #require(memory.join(5..<document.count))
        #expect(joined.isSame(as: try AbsoluteURL("http://h/d/x1.ts?a=1")))
        #expect(!joined.isSame(as: try AbsoluteURL(other)))
    }

    @Test func `names of equal length have different digests, wherever they differ`() throws {
        var digests: Set<UInt32> = []
        var count = 0
        for length in 1..<40 {
            for place in 0..<length {
                var name = Array(repeating: UInt8(ascii: "a"), count: length)
                name[place] = UInt8(ascii: "b")
                let url = try AbsoluteURL(bytes: Array("http://h/".utf8) + name)
                digests.insert(url.tailDigest)
                count += 1
            }
        }
        #expect(digests.count == count)
    }

    @Test(arguments: [
        ("seg_1-2.ts", true), ("seg 1.ts", false), ("a/b.ts?x= ", true), ("a b/c.ts", true),
        ("s+.ts", false), ("0123456789abcdef_-.m4s", true), ("0123456789abcdef~.m4s", false),
    ])
    func `a safe name has only letters, digits, dashes, dots and underscores`(
        _ name: String, _ isSafe: Bool
    ) throws {
        let document = Array("x.ts".utf8) + Array(name.utf8)
        var memory = FolderMemory(document: document)
        memory.learn(0..<4, as: try AbsoluteURL("http://h/d/x.ts"))
        let joined = try #require(memory.join(4..<document.count))
        #expect(joined.hasSafeName == isSafe)
    }
}
