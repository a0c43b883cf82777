import FuzzSupport
import HTTP
import Testing

struct `Request parser` {
    static let typical =
        "GET /s/abc/seg-1.ts?_HLS_msn=3 HTTP/1.1\r\nHost: localhost:8080\r\n"
        + "User-Agent: AppleCoreMedia/1.0\r\nAccept: */*\r\nRange: bytes=0-1023\r\n"
        + "Accept-Encoding: identity\r\nConnection: keep-alive\r\n\r\n"

    @Test func `a typical head is parsed into method, target, version and fields`() throws {
        let head = try #require(parse(Self.typical).head)
        #expect(head.method == .get)
        #expect(head.target == "/s/abc/seg-1.ts?_HLS_msn=3")
        #expect(head.version == .http11)
        #expect(
            head.fields
                == fields(
                    ("Host", "localhost:8080"), ("User-Agent", "AppleCoreMedia/1.0"),
                    ("Accept", "*/*"), ("Range", "bytes=0-1023"),
                    ("Accept-Encoding", "identity"), ("Connection", "keep-alive")))
    }

    @Test(arguments: [
        typical,
        "\r\nHEAD / HTTP/1.0\r\n\r\n",
        "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET",
        "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX: b\rc\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\n\r\n",
        "GET / HTTP/2.0\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n",
    ])
    func `a head is parsed alike wherever it is split`(text: String) {
        let bytes = Array(text.utf8)
        let whole = parse(bytes)
        for cut in 0...bytes.count {
            #expect(parse(bytes, pieces: [cut]) == whole)
        }
        #expect(parse(bytes, pieces: Array(0...bytes.count)) == whole)
    }

    @Test func `limits apply alike wherever the head is split`() {
        let limits = RequestLimits(requestLine: 256, head: 512, fieldCount: 3)
        let samples = [
            "GET /" + String(repeating: "a", count: 243) + " HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET /" + String(repeating: "a", count: 242) + " HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nX: " + String(repeating: "b", count: 479) + "\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nX: " + String(repeating: "b", count: 480) + "\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\nX: 2\r\nX: 3\r\n\r\n",
        ]
        for text in samples {
            let bytes = Array(text.utf8)
            let whole = parse(bytes, limits: limits)
            for cut in 0...bytes.count {
                #expect(parse(bytes, pieces: [cut], limits: limits) == whole)
            }
        }
    }

    @Test func `a head ends before the next request`() throws {
        let first = "GET /1 HTTP/1.1\r\nHost: a\r\n\r\n"
        let bytes = Array((first + "GET /2 HTTP/1.1\r\nHost: b\r\n\r\n").utf8)
        var parser = RequestParser()
        guard case .head(let one, let consumed) = try parser.parse(bytes.span) else {
            Issue.record("no first head")
            return
        }
        #expect(one.target == "/1")
        #expect(consumed == first.utf8.count)
        let rest = bytes.span.extracting(consumed..<bytes.count)
        guard case .head(let two, let length) = try parser.parse(rest) else {
            Issue.record("no second head")
            return
        }
        #expect(two.target == "/2")
        #expect(consumed + length == bytes.count)
    }

    @Test func `content behind the head is not examined`() {
        let text = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n\u{0}\n"
        #expect(parse(text).head?.bodyFraming == .length(2))
    }

    @Test func `an incomplete head reports how far it has been examined`() throws {
        let bytes = Array("GET / HTTP/1.1\r\nHo".utf8)
        var parser = RequestParser()
        #expect(!parser.isMidHead)
        #expect(try parser.parse(bytes.span) == .incomplete(examined: bytes.count))
        #expect(parser.isMidHead)
    }

    @Test func `a carriage return at the end of the input waits for the line feed`() throws {
        let bytes = Array("GET / HTTP/1.1\r".utf8)
        var parser = RequestParser()
        #expect(try parser.parse(bytes.span) == .incomplete(examined: bytes.count - 1))
    }

    @Test func `a shorter input is parsed from its start without a trap`() throws {
        var parser = RequestParser()
        let long = Array("GET /long-target HTTP/1.1\r\nHost: a".utf8)
        _ = try parser.parse(long.span)
        let short = Array("GET / HTTP/1.1\r\nHost: b\r\n\r\n".utf8)
        guard case .head(let head, _) = try parser.parse(short.span) else {
            Issue.record("no head")
            return
        }
        #expect(head.host == "b")
    }

    @Test func `one empty line before the request is accepted, two are not`() {
        #expect(parse("\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n").head != nil)
        #expect(parse("\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n").status == 400)
    }

    @Test func `white space around a value is removed, within it is kept`() {
        let head = parse("GET / HTTP/1.1\r\nHost:\t a \t\r\nX:  b  c \r\nY:\r\nZ: \t \r\n\r\n").head
        #expect(head?.fields.first("host") == "a")
        #expect(head?.fields.first("x") == "b  c")
        #expect(head?.fields.first("y") == "")
        #expect(head?.fields.first("z") == "")
    }

    @Test func `non-ASCII bytes are kept in values and encoded in the target`() {
        var bytes = Array("GET /".utf8) + [0xC3, 0xA9, 0xFF]
        bytes += Array(" HTTP/1.1\r\nHost: a\r\nX: ".utf8) + [0xE9] + Array("\r\n\r\n".utf8)
        let head = parse(bytes).head
        #expect(head?.target == "/%C3%A9%FF")
        #expect(head?.fields.valueBytes("x") == [0xE9])
    }

    @Test(arguments: [
        ("GET", HTTPMethod.get), ("HEAD", .head), ("POST", .post), ("PUT", .put),
        ("DELETE", .delete), ("PATCH", .patch), ("OPTIONS", .options), ("TRACE", .trace),
        ("get", .other("get")), ("PROPFIND", .other("PROPFIND")), ("M-SEARCH", .other("M-SEARCH")),
    ])
    func `methods are case-sensitive`(name: String, method: HTTPMethod) {
        #expect(parse("\(name) / HTTP/1.1\r\nHost: a\r\n\r\n").head?.method == method)
        #expect(method.name == name)
    }

    @Test(arguments: [
        "GET /https://cdn.example.com/v.m3u8?token=x HTTP/1.1",
        "GET http://a/ HTTP/1.1", "GET HTTPS://a:443/b?c HTTP/1.1", "OPTIONS * HTTP/1.1",
        "GET //double HTTP/1.1", "GET /a{b}|\"<>\\^` HTTP/1.1", "CONNECT a:443 HTTP/1.1",
        "GET http://[::1]:80/ HTTP/1.1", "GET / HTTP/1.9",
    ])
    func `targets of every form are accepted`(line: String) {
        let head = parse("\(line)\r\nHost: a\r\n\r\n").head
        #expect(head?.target == String(line.split(separator: " ")[1]))
    }

    @Test func `random bytes never trap, wherever they are split`() {
        var random = SeededNumbers(seed: 1)
        let alphabet = Array(
            "GET /a HTTP/1.1\r\n\r\nHost: a:,\t\u{0}chunked;Transfer-Encoding0".utf8)
        for _ in 0..<3000 {
            let count = Int.random(in: 0...80, using: &random)
            let bytes = (0..<count).map { _ in
                Bool.random(using: &random)
                    ? alphabet.randomElement(using: &random) ?? 0
                    : UInt8.random(in: 0...255, using: &random)
            }
            let cut = Int.random(in: 0...count, using: &random)
            #expect(parse(bytes, pieces: [cut]) == parse(bytes))
        }
    }

    @Test func `a head with one changed byte never traps and is parsed alike when split`() {
        var random = SeededNumbers(seed: 2)
        let original = Array(
            ("POST /x?y=%zz HTTP/1.1\r\nHost: [::1]:80\r\nContent-Length: 9223372036854775807\r\n"
                + "Connection: close, x\r\nExpect: 100-continue\r\n\r\n").utf8)
        for index in original.indices {
            for _ in 0..<12 {
                var bytes = original
                bytes[index] = UInt8.random(in: 0...255, using: &random)
                let cut = Int.random(in: 0...bytes.count, using: &random)
                let whole = parse(bytes)
                #expect(parse(bytes, pieces: [cut]) == whole)
                guard let head = whole.head else { continue }
                _ = (head.host, head.keepAlive, head.bodyFraming, head.expectsContinue)
                _ = (head.path, head.queryItems.map { $0.value(plusAsSpace: true) })
            }
        }
    }
}
