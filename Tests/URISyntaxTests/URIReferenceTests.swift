import Testing
import URISyntax

/// Splitting references into components.
@Suite struct URIReferenceTests {
    @Test func `every component is found`() throws {
        let reference = URIReference("foo://u:p@h.example:8042/over/there?name=x?y#nose#tail")
        #expect(reference.text(of: try #require(reference.scheme)) == "foo")
        #expect(reference.text(of: try #require(reference.userinfo)) == "u:p")
        #expect(reference.text(of: try #require(reference.host)) == "h.example")
        #expect(reference.text(of: try #require(reference.port)) == "8042")
        #expect(reference.text(of: reference.path) == "/over/there")
        #expect(reference.text(of: try #require(reference.query)) == "name=x?y")
        #expect(reference.text(of: try #require(reference.fragment)) == "nose#tail")
    }

    @Test(arguments: ["", "a/b:c", "./a:b", "1a:b", "%41:b", "a b:c", "?a:b", "#a:b"])
    func `a relative reference has no scheme`(text: String) {
        #expect(URIReference(text).scheme == nil)
        #expect(URIReference(text).text == text)
    }

    @Test func `an opaque URI has a path and no authority`() {
        let reference = URIReference("urn:example:a?b")
        #expect(reference.authority == nil && reference.host == nil && reference.port == nil)
        #expect(reference.text(of: reference.path) == "example:a")
    }

    @Test func `a colon within an IPv6 literal does not start a port`() throws {
        let bare = URIReference("http://[::1]/")
        #expect(bare.port == nil)
        #expect(bare.text(of: try #require(bare.host)) == "[::1]")
        let ported = URIReference("http://[::1]:81/")
        #expect(ported.text(of: try #require(ported.port)) == "81")
    }

    @Test func `an empty authority differs from an absent one`() {
        #expect(URIReference("file:///x").authority?.isEmpty == true)
        #expect(URIReference("file:/x").authority == nil)
    }

    @Test func `the request form escapes only blanks, controls and non-ASCII bytes`() {
        var output: [UInt8] = []
        PercentCoding.appendRequestForm(of: Array("a b\tc/ü|[]%zz?\"x\"".utf8), to: &output)
        #expect(output == Array("a%20b%09c/%C3%BC|[]%zz?\"x\"".utf8))
    }

    @Test(arguments: [
        ("a%20b", "a b"), ("%", "%"), ("%4", "%4"), ("%zz%41", "%zzA"), ("%e9", "\u{FFFD}"),
    ])
    func `well-formed escapes are decoded, others are kept`(text: String, decoded: String) {
        let bytes = PercentCoding.decode(Array(text.utf8)[...])
        #expect(String(decoding: bytes, as: UTF8.self) == decoded)
    }
}
