import HTTP
import Testing
import URISyntax

struct `Media types` {
    @Test(arguments: [
        ("video/mp2t", "video/mp2t"),
        ("Application/VND.Apple.MpegURL", "application/vnd.apple.mpegurl"),
        (" text/html ; charset=utf-8", "text/html"), ("a/b;", "a/b"), ("a/b;;x=y", "a/b"),
        ("image/svg+xml", "image/svg+xml"), ("a/b;=", "a/b"),
    ])
    func `type and subtype are in lower case`(value: String, essence: String) {
        #expect(MediaType(value)?.essence == essence)
    }

    @Test(arguments: [
        "", "video", "video/", "/mp4", "a b/c", "a/b c", "a//b", "a/b,c/d", "\"a\"/b",
    ])
    func `other text is not a media type`(value: String) {
        #expect(MediaType(value) == nil)
    }

    @Test func `parameters keep their case without their quotes`() {
        let type = MediaType("video/mp4; Codecs=\"avc1.64001f, \\\"x\\\"\";q=A ; broken; z=1")
        #expect(type?.parameter("codecs") == "avc1.64001f, \"x\"")
        #expect(type?.parameter("Q") == "A")
        #expect(type?.parameter("z") == nil)
        #expect(type?.parameters.count == 2)
    }

    @Test func `a written media type is parsed as the same one`() {
        let type = MediaType(
            type: "Video", subtype: "MP4",
            parameters: [.init(name: "a", value: "x\"\\,y"), .init(name: "b", value: "c")])
        #expect(type.description == "video/mp4; a=\"x\\\"\\\\,y\"; b=c")
        #expect(MediaType(type.description) == type)
        #expect(MediaType.parse(["Content-Type": "a/B"])?.essence == "a/b")
    }
}

struct `Accept-Encoding` {
    @Test(arguments: [
        ("gzip", true), ("GZIP", true), ("x-gzip", true), ("deflate, gzip;q=1.0, *;q=0.5", true),
        ("gzip;q=0", false), ("gzip;q=0.0", false), ("gzip;q=0.001", true), ("gzip; q=0.5", true),
        ("gzip ;q=0.5", true), ("identity", false), ("identity;q=1, gzip;q=0.5", false),
        ("identity;q=0, gzip;q=0.5", true), ("*", true), ("*;q=0", false), ("*, gzip;q=0", false),
        ("br, *;q=0.1", true), ("", false), ("br", false), ("gzip;q=2", false), ("gzip;q=x", false),
        ("gzip;q=", false), ("gzip;q=0.0000", false), ("gzip;x=1", false), ("gzipped", false),
        ("gzip;q=1.5", true), ("gzip;Q=0.4", true), ("gzip;q=-1", false), ("gzip;q=0.3333", true),
        ("gzip;q=0.3x", false), ("gzip;q=0.3333x", false), ("gzip;q=00.5", false),
    ])
    func `gzip is used if its weight allows it`(value: String, expected: Bool) {
        #expect(ContentCoding.acceptsGzip(["Accept-Encoding": value]) == expected)
    }

    @Test(arguments: [
        ("gzip", "gzip", true), ("gzip", "x-gzip", true), ("X-GZIP", "gzip", true),
        ("gzip", "br", false), ("gzip", "*", true), ("gzip", "*;q=0", false),
        ("gzip", "*, gzip;q=0", false), ("gzip", "gzip;q=0.1, identity", true),
        ("gzip", "", false), ("br", "gzip", false), ("br, gzip", "gzip, br", true),
        ("br, gzip", "gzip", false), ("identity", "gzip", true), ("", "identity", true),
    ])
    func `a body is accepted if each of its codings is`(
        codings: String, value: String, expected: Bool
    ) {
        let response: Fields = ["Content-Encoding": codings]
        #expect(
            ContentCoding.accepts(codingsOf: response, ["Accept-Encoding": value]) == expected)
    }

    @Test func `a request without Accept-Encoding gets no coding`() {
        #expect(!ContentCoding.accepts(codingsOf: ["Content-Encoding": "br"], Fields()))
        #expect(ContentCoding.accepts(codingsOf: Fields(), Fields()))
        #expect(!ContentCoding.acceptsGzip(Fields()))
        let lines = fields(("Accept-Encoding", "br"), ("Accept-Encoding", "gzip"))
        #expect(ContentCoding.acceptsGzip(lines))
    }
}
