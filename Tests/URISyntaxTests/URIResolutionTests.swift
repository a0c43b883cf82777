import Testing
import URISyntax

/// Reference resolution, with the examples of RFC 3986, 5.4.
///
/// The fragment is dropped by design.
@Suite struct URIResolutionTests {
    static let base = "http://a/b/c/d;p?q"

    static let normalExamples: [(String, String)] = [
        ("g:h", "g:h"), ("g", "http://a/b/c/g"), ("./g", "http://a/b/c/g"),
        ("g/", "http://a/b/c/g/"), ("/g", "http://a/g"), ("//g", "http://g"),
        ("?y", "http://a/b/c/d;p?y"), ("g?y", "http://a/b/c/g?y"), ("#s", "http://a/b/c/d;p?q"),
        ("g#s", "http://a/b/c/g"), ("g?y#s", "http://a/b/c/g?y"), (";x", "http://a/b/c/;x"),
        ("g;x", "http://a/b/c/g;x"), ("g;x?y#s", "http://a/b/c/g;x?y"),
        ("", "http://a/b/c/d;p?q"), (".", "http://a/b/c/"), ("./", "http://a/b/c/"),
        ("..", "http://a/b/"), ("../", "http://a/b/"), ("../g", "http://a/b/g"),
        ("../..", "http://a/"), ("../../", "http://a/"), ("../../g", "http://a/g"),
    ]

    static let abnormalExamples: [(String, String)] = [
        ("../../../g", "http://a/g"), ("../../../../g", "http://a/g"), ("/./g", "http://a/g"),
        ("/../g", "http://a/g"), ("g.", "http://a/b/c/g."), (".g", "http://a/b/c/.g"),
        ("g..", "http://a/b/c/g.."), ("..g", "http://a/b/c/..g"), ("./../g", "http://a/b/g"),
        ("./g/.", "http://a/b/c/g/"), ("g/./h", "http://a/b/c/g/h"), ("g/../h", "http://a/b/c/h"),
        ("g;x=1/./y", "http://a/b/c/g;x=1/y"), ("g;x=1/../y", "http://a/b/c/y"),
        ("g?y/./x", "http://a/b/c/g?y/./x"), ("g?y/../x", "http://a/b/c/g?y/../x"),
        ("g#s/./x", "http://a/b/c/g"), ("http:g", "http:g"),
    ]

    @Test(arguments: normalExamples + abnormalExamples)
    func `the examples of RFC 3986 resolve as stated there`(reference: String, result: String) {
        let resolved = URIReference.resolve(
            URIReference(reference), against: URIReference(Self.base))
        #expect(resolved.text == result)
    }

    @Test(arguments: normalExamples + abnormalExamples)
    func `the resolver of absolute URLs gives the same result or rejects the reference`(
        reference: String, result: String
    ) throws {
        let resolver = URLResolver(base: try AbsoluteURL(Self.base))
        if result.hasPrefix("http://") {
            #expect(try resolver.resolve(reference).text == result)
        } else {
            #expect(throws: URIError.self) { try resolver.resolve(reference) }
        }
    }

    @Test(arguments: [
        "seg 1.ts", "a%2Fb%25.ts?x=1&y=2+3;z", "päth/ü.ts", "a[1]|b.ts?q={x}",
        "a.ts?u=http://x/../y",
        "x%2e%2e/y.ts",
    ])
    func `the bytes of a reference are kept in the URL`(reference: String) throws {
        let base = try AbsoluteURL("https://cdn.example.com/v/list.m3u8?t=1")
        let url = try base.resolving(reference)
        #expect(url.text == "https://cdn.example.com/v/" + reference)
    }

    @Test(arguments: [
        ("http://h", "x", "http://h/x"), ("http://h", "?x", "http://h?x"),
        ("http://h?q", "x", "http://h/x"), ("http://h/a/./b/l", "x", "http://h/a/b/x"),
        ("http://h/a/../b/l", "x", "http://h/b/x"),
        ("https://h/l", "//g:8080/x", "https://g:8080/x"),
        ("http://h/l", "https://g/a/../x?/../y", "https://g/x?/../y"),
        ("http://h/l", "HTTP://G/x#f", "HTTP://G/x"), ("http://h/l", "1:2.ts", "http://h/1:2.ts"),
        ("http://u:p@h:81/d/l", "/x?y", "http://u:p@h:81/x?y"),
        ("http://h/a/b/l", "..//x", "http://h/a//x"),
        ("http://h/a/b/l", "../?x", "http://h/a/?x"), ("http://h/a/l", "../../../x", "http://h/x"),
        ("http://h/a/l", "../../x/../y", "http://h/y"),
        ("http://h/a//b/l", "../x", "http://h/a//x"),
        ("http://h/a//l", "../x", "http://h/a/x"), ("http://h/a/l", "../g:h", "http://h/g:h"),
    ])
    func `bases and references of any form resolve`(
        base: String, reference: String, result: String
    ) throws {
        #expect(try AbsoluteURL(base).resolving(reference).text == result)
    }

    @Test func `the components of a resolved URL match its text`() throws {
        let url = try AbsoluteURL("https://u@cdn.example.com:8443/v/list.m3u8").resolving(
            "s/1.ts?a=b")
        let parsed = try AbsoluteURL(url.text)
        #expect(url.lastPathSegment == "1.ts" && parsed.lastPathSegment == "1.ts")
        #expect(url.query == "a=b" && parsed.query == "a=b")
        #expect(url.origin == parsed.origin)
        #expect(url.pathAndQuery == "/v/s/1.ts?a=b")
    }

    @Test func `bytes that are not UTF-8 are kept, and shown escaped`() throws {
        let resolver = URLResolver(base: try AbsoluteURL("http://h/"))
        let url = try resolver.resolve([0x61, 0xE9, 0x2E, 0x74, 0x73][...])
        #expect(url.bytes.suffix(5) == [0x61, 0xE9, 0x2E, 0x74, 0x73])
        #expect(url.text == "http://h/a%E9.ts")
        #expect(url.requestForm == "http://h/a%E9.ts")
    }

    @Test func `a control byte in a reference is rejected`() throws {
        let base = try AbsoluteURL("http://h/")
        #expect(throws: URIError.controlByte(offset: 1)) { try base.resolving("a\nb") }
        #expect(throws: URIError.self) { try base.resolving("java\tscript:x") }
    }

    @Test func `a document passes on its own stand-in, and names no other one`() throws {
        let base = try AbsoluteURL("http://h/a/b").withStandIn(forMount: "/m/")
        #expect(try base.resolving("c").text == "http://mount*%2Fm%2F@h/a/c")
        #expect(try base.resolving("./../c").text == "http://mount*%2Fm%2F@h/c")
        #expect(try base.resolving("http://u@h/c").text == "http://u@h/c")
        for document in [base, try AbsoluteURL("http://h/a/b")] {
            for reference in ["http://mount*x@h/c", "//mount*x@h/c", "http://mount*%2Fm%2F@g/c"] {
                #expect(throws: URIError.reservedUser) { try document.resolving(reference) }
            }
        }
    }

    @Test func `a result longer than the limit is rejected`() throws {
        let base = try AbsoluteURL("http://h/")
        let reference = String(repeating: "a", count: AbsoluteURL.maximumLength)
        #expect(throws: URIError.self) { try base.resolving(reference) }
    }
}
