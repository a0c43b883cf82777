import Testing
import URISyntax

/// Which texts are URLs that can be fetched, and the forms of a URL for wire, key and log.
@Suite struct AbsoluteURLTests {
    @Test func `components are returned as spelled`() throws {
        let url = try AbsoluteURL("HTTPS://Us:p%40@CDN.Example.com:8443/a//b;c/x.m3u8?q=1&r#frag")
        #expect(url.text == "HTTPS://Us:p%40@CDN.Example.com:8443/a//b;c/x.m3u8?q=1&r")
        #expect(url.scheme == .https)
        #expect(url.userinfo == "Us:p%40")
        #expect(url.host == "cdn.example.com")
        #expect(url.port == 8443 && url.explicitPort == 8443)
        #expect(url.path == "/a//b;c/x.m3u8")
        #expect(url.query == "q=1&r")
        #expect(url.lastPathSegment == "x.m3u8")
        #expect(url.origin == Origin(scheme: .https, host: "cdn.example.com", port: 8443))
    }

    @Test func `a URL without path, port and query has the defaults`() throws {
        let url = try AbsoluteURL("http://example.com")
        #expect(url.path == "/" && url.pathAndQuery == "/" && url.query == nil)
        #expect(url.port == 80 && url.explicitPort == nil && url.userinfo == nil)
        #expect(url.lastPathSegment.isEmpty)
        #expect(try AbsoluteURL("http://example.com?x").pathAndQuery == "/?x")
    }

    @Test func `a password that a slash cuts off is not in the message`() {
        let secret = "http://user:hunt/er2@host/x"
        let error = #expect(throws: URIError.self) { try AbsoluteURL(secret) }
        #expect(error?.description == "the port is not a number from 1 to 65535")
        #expect(URIError.portOutOfRange("65536").description.contains("65536"))
    }

    static let wrong: [(String, URIError)] = [
        ("", .notAbsolute), ("seg.ts", .notAbsolute), ("//h/x", .notAbsolute),
        ("ftp://h/x", .schemeNotAllowed("ftp")), ("FILE:///etc/passwd", .schemeNotAllowed("file")),
        ("http:x", .noHost), ("http:/x", .noHost), ("http://", .noHost), ("http:///x", .noHost),
        ("http://:80/", .noHost), ("http://u@/", .noHost),
        ("http://h:0/", .portOutOfRange("0")), ("http://h:65536/", .portOutOfRange("65536")),
        ("http://h:8a/", .portOutOfRange("8a")), ("http://a b/", .invalidHost("a b")),
        ("http://h%41/", .invalidHost("h%41")), ("http://[::1/", .invalidHost("[::1")),
        ("http://b%FC.example/", .invalidHost("b%FC.example")),
        ("http://b%C3%BC%2Eexample/", .invalidHost("b%C3%BC%2Eexample")),
        ("http://b%C3%B/", .invalidHost("b%C3%B")), ("http://b%/", .invalidHost("b%")),
        ("http://b%C3%BC%40c/", .invalidHost("b%C3%BC%40c")),
        ("http://a%EF%BC%8Fb/", .invalidHost("a%EF%BC%8Fb")),
        ("http://[::1]x/", .invalidHost("[::1]x")),
        ("http://[::1%25lo]/", .invalidHost("[::1%25lo]")),
        ("http://good\\@evil/", .invalidHost("\\")),
        ("http://h/\r\nX: y", .controlByte(offset: 9)),
        ("http://h/\u{7F}", .controlByte(offset: 9)),
    ]

    @Test(arguments: wrong)
    func `the error for an invalid URL names the cause`(text: String, error: URIError) {
        #expect(throws: error) { try AbsoluteURL(text) }
        #expect(!error.description.isEmpty)
    }

    @Test func `a URL longer than the limit is rejected`() {
        #expect(throws: URIError.self) {
            try AbsoluteURL("http://h/" + String(repeating: "x", count: AbsoluteURL.maximumLength))
        }
    }

    @Test(arguments: [
        ("HTTP://User:Secret@ExAmple.COM:80/A?B#c", "http://example.com/A?B"),
        ("https://example.com:443", "https://example.com/"),
        ("https://example.com:80/", "https://example.com:80/"),
        ("http://[2001:DB8::1]:80/x", "http://[2001:db8::1]/x"),
        ("http://[0:0:0:0:0:0:0:1]/x", "http://[::1]/x"), ("http://[0::1]/x", "http://[::1]/x"),
        ("http://[0::0]/x", "http://[::]/x"), ("http://[1:0::0]/x", "http://[1::]/x"),
        ("http://[2001:db8:0:0:1:0:0:1]/x", "http://[2001:db8::1:0:0:1]/x"),
        ("http://[1:0:0:2::3]/x", "http://[1:0:0:2::3]/x"),
        ("http://[1:2:3::5:6:7:8]/x", "http://[1:2:3:0:5:6:7:8]/x"),
        ("http://[0:0:3:4:5:6:1.2.3.4]/x", "http://[::3:4:5:6:102:304]/x"),
        ("http://[::FFFF:7F00:1]/x", "http://[::ffff:127.0.0.1]/x"),
        ("http://[0:0:0:0:0:ffff:127.0.0.1]/x", "http://[::ffff:127.0.0.1]/x"),
        ("http://Bücher.example/ä", "http://xn--bcher-kva.example/ä"),
        ("http://B%c3%BCcher.example/ä", "http://xn--bcher-kva.example/ä"),
        ("http://h:/x", "http://h/x"), ("http://h/a%2fb/../c", "http://h/a%2fb/../c"),
    ])
    func `equivalent spellings of a URL have the same key form`(text: String, key: String) throws {
        #expect(try AbsoluteURL(text).normalisedForKey == key)
    }

    @Test(arguments: [
        ("bücher.example", "xn--bcher-kva.example"), ("MÜNCHEN.de", "xn--mnchen-3ya.de"),
        ("例え.テスト", "xn--r8jz45g.xn--zckzah"), ("правда.рф", "xn--80aafi6cg.xn--p1ai"),
        ("例。example", "xn--fsq.example"), ("plain.example", "plain.example"),
        ("b%C3%BCcher.example", "xn--bcher-kva.example"), ("%E4%BE%8B。example", "xn--fsq.example"),
    ])
    func `a non-ASCII host is resolved in Punycode`(host: String, ascii: String) throws {
        let url = try AbsoluteURL("http://" + host + "/")
        #expect(url.asciiHost == ascii)
        #expect(url.requestForm == "http://" + ascii + "/")
    }

    @Test func `a percent-encoded host is the same as in its script`() throws {
        let url = try AbsoluteURL("http://B%C3%BCcher.example:81/")
        #expect(url.host == "bücher.example" && url.port == 81)
        #expect(url.hasHost("xn--bcher-kva.example") && !url.hasHost("xn--bcher.example"))
        #expect(try url.origin == AbsoluteURL("http://bücher.example:81").origin)
    }

    @Test(arguments: ["[::1]", "[2001:db8::]", "[1:2:3:4:5:6:7:8]", "[::ffff:10.0.0.1]"])
    func `the host of an IPv6 literal has no brackets`(literal: String) throws {
        let url = try AbsoluteURL("http://" + literal + ":8080/x")
        #expect(url.host == String(literal.dropFirst().dropLast()))
        #expect(url.origin.description == "http://" + literal + ":8080")
        #expect(url.requestForm == "http://" + literal + ":8080/x")
    }

    @Test(arguments: [
        "[]", "[:]", "[1]", "[1:2:3:4:5:6:7:8:9]", "[1::2::3]", "[12345::]", "[::g]",
        "[1:2:3:4:5:6:7:]",
        "[::1.2.3]", "[::1.2.3.256]", "[1:2:3:4:5:6:7::8]",
    ])
    func `a malformed IPv6 literal is rejected`(literal: String) {
        #expect(throws: URIError.self) { try AbsoluteURL("http://" + literal + "/") }
    }

    @Test func `user information can be removed`() throws {
        let url = try AbsoluteURL("http://u:p@ss@h:81/x?y").withoutUserinfo
        #expect(url.text == "http://h:81/x?y")
        #expect(url.host == "h" && url.query == "y" && url.path == "/x" && url.userinfo == nil)
    }

    @Test func `the request form encodes only characters that a request line cannot contain`()
        throws
    {
        let url = try AbsoluteURL("http://u:p@h:80/a b/ü|[x]%2F%zz?q=\"1\"&r=é")
        #expect(url.requestForm == "http://h:80/a%20b/%C3%BC|[x]%2F%zz?q=\"1\"&r=%C3%A9")
    }

    @Test(arguments: [
        (
            "https://u:secret@h/v/x.m3u8?token=secret&id=secret",
            "https://h/v/x.m3u8?token=***&id=***"
        ),
        ("https://h/exp=secret~acl=secret/x.ts?secret", "https://h/exp=***/x.ts?***"),
        ("https://h/x.m3u8%3Ftoken%3Dsecret", "https://h/x.m3u8%3F***"),
        ("https://h/exp%3dsecret/x%3fsecret", "https://h/exp=***/x%3F***"),
        ("https://h/a%3", "https://h/a%3"),
        ("https://h", "https://h/"), ("https://h/a ü", "https://h/a%20%C3%BC"),
    ])
    func `the redacted form contains no secret`(text: String, redacted: String) throws {
        let url = try AbsoluteURL(text)
        #expect(url.redacted == redacted)
        #expect("\(url)" == redacted)
        #expect(url.secrets.contains { $0.contains("secret") } == text.contains("secret"))
    }

    @Test func `long paths and queries are shortened in the redacted form`() throws {
        let part = String(repeating: "s", count: 64)
        #expect(try AbsoluteURL("http://h/" + part + "/x.ts").redacted == "http://h/ssssssss…/x.ts")
        let deep = Array(repeating: "folder", count: 100).joined(separator: "/")
        #expect(try AbsoluteURL("http://h/" + deep).redacted.utf8.count < 260)
        let query = Array(repeating: "a=b", count: 50).joined(separator: "&")
        #expect(try AbsoluteURL("http://h/?" + query).redacted.utf8.count < 100)
    }

    @Test func `the length of a path is that of its characters, not of their encoding`() throws {
        let film = String(repeating: "%E6%97%A5", count: 48)
        let path = "http://h/\(film)/\(film)/\(film)/"
        #expect(try AbsoluteURL(path).redacted == path)
        #expect(try AbsoluteURL("http://h/日本語の映画").redacted.hasSuffix("%E6%98%A0%E7%94%BB"))
        #expect(try AbsoluteURL("http://h/\(film)x").redacted == "http://h/%E6%97%A…")
        #expect(try AbsoluteURL(path + film).redacted == path + "…")
        // Bytes that are no text may be a token.
        let token = String(repeating: "%FF", count: 17)
        #expect(try AbsoluteURL("http://h/" + token).redacted == "http://h/%FF%FF%F…")
    }

    @Test func `URLs are equal if their bytes are`() throws {
        #expect(try AbsoluteURL("http://h/a") == AbsoluteURL("http://h/a#x"))
        #expect(try AbsoluteURL("http://h/a") != AbsoluteURL("http://H/a"))
    }

    @Test(arguments: [
        ("http://h:80/a", "http://h:80/b?c", true), ("http://h/a", "https://h/a", false),
        ("http://h/a", "http://i/a", false), ("http://h/", "http://hh/", false),
        ("http://u@h/a", "http://h/a", false),
    ])
    func `a common authority is recognized by its bytes`(a: String, b: String, isShared: Bool)
        throws
    {
        #expect(try AbsoluteURL(a).sharesAuthority(with: AbsoluteURL(b)) == isShared)
        #expect(try AbsoluteURL(b).sharesAuthority(with: AbsoluteURL(a)) == isShared)
    }

    @Test(arguments: [
        ("http://a/x?CMCD=1", true), ("http://a/x?b=2&CMCD", true), ("http://a/x?CMC", false),
        ("http://a/x?b=CMCD", false), ("http://a/CMCD?b=2", false), ("http://a/CMCD", false),
        ("http://a/x?bCMCD=1", false), ("http://a/x?&&CMCD", true), ("http://a/x?", false),
    ])
    func `a query item is found by its prefix`(text: String, isThere: Bool) throws {
        let url = try AbsoluteURL(text)
        #expect(url.hasQueryItem(startingWith: Array("CMCD".utf8)) == isThere)
    }
}

@Suite struct `URLs read eight bytes at a time` {
    @Test func `a control byte is found at any position`() {
        for place in 0..<20 {
            for byte in [0x00, 0x0A, 0x1F, 0x7F] as [UInt8] {
                var bytes = Array("http://h/".utf8) + [UInt8](repeating: 0xC3, count: 20)
                bytes[9 + place] = byte
                #expect(throws: URIError.controlByte(offset: 9 + place)) {
                    try AbsoluteURL(bytes: bytes)
                }
            }
        }
    }

    @Test func `query and fragment are found at their delimiters`() throws {
        for length in 0..<20 {
            let path = "/" + String(repeating: "a", count: length)
            let url = try AbsoluteURL("http://h\(path)?q?\(path)#f?\(path)")
            #expect(url.path == path && url.query == "q?\(path)")
            #expect(url.text == "http://h\(path)?q?\(path)")
            #expect(try AbsoluteURL("http://h\(path)#f?q").text == "http://h\(path)")
        }
    }

    @Test(arguments: [
        ("http://missing.invalid/1.ts", true), ("http://MISSING.invalid:80/", true),
        ("http://u@missing.invalid", true), ("http://missing\u{3002}invalid/", true),
        ("http://missing.invalid.example/", false), ("http://other.invalid/", false),
        ("http://[::1]/", false),
    ])
    func `equivalent spellings of a host have one name`(_ text: String, _ isIt: Bool) throws {
        #expect(try AbsoluteURL(text).hasHost("missing.invalid") == isIt)
    }
}
