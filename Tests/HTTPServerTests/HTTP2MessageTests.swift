// RFC 9113, section 8: HTTP in frames; malformed requests are stream errors (section 8.1.1).
import HTTP
import HTTPServer
import Testing

/// A request in one HEADERS frame, with its pseudo-header fields replaced or without one.
private func request(
    without missing: String? = nil, _ fields: [(String, String)] = [], endStream: Bool = true
) -> [Frame] {
    let pseudo = FrameClient.fields().filter { $0.0 != missing }
    return [.headers(1, HeaderBlock.literal(pseudo + fields), endStream: endStream)]
}

/// Expects RST_STREAM or GOAWAY for a malformed request.
private let malformed = either(.protocolError)

extension HTTP2ConformanceTests {
    @Test(arguments: [
        ConformanceCase("no :method", request(without: ":method"), malformed),
        ConformanceCase("no :scheme", request(without: ":scheme"), malformed),
        ConformanceCase("no :path", request(without: ":path"), malformed),
        ConformanceCase(
            "an empty :path", request(without: ":path", [(":path", "")]), malformed),
        ConformanceCase(
            "two of :method", request(without: ":path", [(":method", "GET"), (":path", "/")]),
            malformed),
        ConformanceCase("two of :scheme", request([(":scheme", "http")]), malformed),
        ConformanceCase("two of :path", request([(":path", "/")]), malformed),
        ConformanceCase("two of :authority", request([(":authority", "test")]), malformed),
        ConformanceCase("an unknown one", request([(":version", "2")]), malformed),
        ConformanceCase("a response's", request([(":status", "200")]), malformed),
        ConformanceCase(
            "one after a regular field",
            request(without: ":path", [("x-field", "v"), (":path", "/")]), malformed),
        ConformanceCase(
            "one among the trailers",
            [
                postFrame(), .data(1, [1]),
                .headers(1, HeaderBlock.literal([(":method", "GET")])),
            ], malformed),
    ])
    func `8.3: a request with wrong pseudo-header fields is malformed`(
        case one: ConformanceCase
    ) throws {
        try one.run()
    }

    @Test(arguments: [
        ConformanceCase("8.2.1: an upper-case letter", request([("X-Field", "v")]), malformed),
        ConformanceCase("8.2.1: a space", request([("x field", "v")]), malformed),
        ConformanceCase("8.2.1: a control character", request([("x\u{7F}", "v")]), malformed),
        ConformanceCase("8.2.1: a colon inside", request([("x:y", "v")]), malformed),
        ConformanceCase("8.2.1: no name", request([("", "v")]), malformed),
        ConformanceCase("8.2.1: CR in a value", request([("x-field", "a\rb")]), malformed),
        ConformanceCase("8.2.1: LF in a value", request([("x-field", "a\nb")]), malformed),
        ConformanceCase("8.2.1: NUL in a value", request([("x-field", "a\0b")]), malformed),
        ConformanceCase("8.2.1: a space before a value", request([("x-field", " v")]), malformed),
        ConformanceCase("8.2.1: a tab after a value", request([("x-field", "v\t")]), malformed),
        ConformanceCase("8.2.2: connection", request([("connection", "close")]), malformed),
        ConformanceCase("8.2.2: keep-alive", request([("keep-alive", "5")]), malformed),
        ConformanceCase(
            "8.2.2: proxy-connection", request([("proxy-connection", "close")]), malformed),
        ConformanceCase(
            "8.2.2: transfer-encoding", request([("transfer-encoding", "chunked")]), malformed),
        ConformanceCase("8.2.2: upgrade", request([("upgrade", "h2c")]), malformed),
        ConformanceCase("8.2.2: te of another value", request([("te", "gzip")]), malformed),
        ConformanceCase(
            "8.2.2: te of two values", request([("te", "trailers, deflate")]), malformed),
    ])
    func `8.2: a request with a field that HTTP/2 does not allow is malformed`(
        case one: ConformanceCase
    ) throws {
        try one.run()
    }

    @Test(arguments: [
        ConformanceCase(
            "more than the content",
            request([("content-length", "2")], endStream: false)
                + [.data(1, [1], endStream: true)], malformed),
        ConformanceCase(
            "less than the content",
            request([("content-length", "1")], endStream: false)
                + [.data(1, [1]), .data(1, [2], endStream: true)], malformed),
        ConformanceCase(
            "something where there is no content", request([("content-length", "1")]), malformed),
        ConformanceCase(
            "less than the content, which has trailers",
            request([("content-length", "1")], endStream: false)
                + [.data(1, [1, 2]), .headers(1, HeaderBlock.literal([("x-sum", "v")]))],
            malformed),
        ConformanceCase(
            "no number", request([("content-length", "1x")], endStream: false), malformed),
        ConformanceCase(
            "two numbers",
            request([("content-length", "1"), ("content-length", "2")], endStream: false),
            malformed),
    ])
    func `8.1.1: a request whose content-length is wrong is malformed`(
        case one: ConformanceCase
    ) throws {
        try one.run()
    }

    @Test func `8.1: a second header block that does not end the stream is malformed`() throws {
        let session = try HTTP2Session()
        session.client.write(
            postFrame(), .data(1, [1]),
            .headers(1, HeaderBlock.literal([("x-sum", "v")]), endStream: false))
        session.expect(malformed)
    }

    @Test func `8.1: trailers end a request with complete content`() throws {
        let session = try HTTP2Session()
        session.client.write(
            postFrame(), .data(1, Array("con".utf8)), .data(1, []), .data(1, Array("tent".utf8)),
            .headers(1, HeaderBlock.literal([("x-sum", "v")])))
        #expect(session.client.response(1).text == "content")
    }

    @Test
    func
        `8.1: a response before the end of the request ends with RST_STREAM NO_ERROR or is complete`()
        throws
    {
        let server = try TestServer(handler: {
            BareHandler { request, _, exchange in
                exchange.respond(ok(), body: .bytes(Array(request.path.utf8)))
            }
        })
        let client = server.frameClient()
        try #require(client.open())
        client.write(postFrame(), .data(1, [1]))
        let answer = client.response(1)
        #expect(answer.isWhole && answer.text == "/")
        client.write(.data(1, [2], endStream: true))
        client.get(3, "/next")
        #expect(client.response(3).text == "/next")
        #expect(client.streams[1]?.reset == nil || client.streams[1]?.reset == .noError)
    }

    @Test func `8.2.2: te of trailers is allowed`() throws {
        let session = try HTTP2Session()
        session.client.get(1, "/", [("te", "trailers")])
        #expect(session.client.response(1).status == 200)
    }

    @Test func `8.2.2: a response has no field of a connection`() throws {
        let session = try HTTP2Session { _, _, exchange in
            exchange.respond(ok(("Connection", "close"), ("X-Kept", "v")), body: .bytes([1]))
        }
        session.client.get(1)
        let answer = session.client.response(1)
        let names = answer.head.map(\.name)
        #expect(names.first == ":status" && answer.field("x-kept") == "v")
        for name in ["connection", "keep-alive", "transfer-encoding", "upgrade"] {
            #expect(!names.contains(name))
        }
        #expect(names.allSatisfy { $0 == $0.lowercased() })
    }

    @Test func `8.2.3: parts of a cookie reach the handler as one field`() throws {
        let session = try HTTP2Session { request, _, exchange in
            let cookies = request.fields.all("Cookie").joined(separator: "|")
            exchange.respond(ok(), body: .bytes(Array(cookies.utf8)))
        }
        session.client.get(1, "/", [("cookie", "a=1"), ("x-other", "v"), ("cookie", "b=2")])
        #expect(session.client.response(1).text == "a=1; b=2")
    }

    @Test func `8.3.1: authority and Host are one host for the handler`() throws {
        let session = try HTTP2Session { request, _, exchange in
            let hosts = request.fields.all("Host").joined(separator: "|")
            exchange.respond(ok(), body: .bytes(Array(hosts.utf8)))
        }
        let client = session.client
        client.get(1)
        #expect(client.response(1).text == "test")
        let plain = FrameClient.fields().filter { $0.0 != ":authority" }
        client.request(3, plain + [("host", "other")])
        #expect(client.response(3).text == "other")
        client.get(5, "/", [("host", "test")])
        #expect(client.response(5).text == "test")
    }

    @Test func `8.3.1: a Host that differs from the authority is rejected`() throws {
        let session = try HTTP2Session()
        session.client.get(1, "/", [("host", "other")])
        let answer = session.client.response(1)
        #expect(answer.status == 400 || answer.reset == .protocolError)
    }

    @Test(arguments: [
        ("CONNECT with :path", FrameClient.fields("CONNECT")),
        ("CONNECT without :authority", [(":method", "CONNECT")]),
        (
            "extended CONNECT without its setting",
            FrameClient.fields("CONNECT") + [(":protocol", "websocket")]
        ),
    ])
    func `8.5: a malformed CONNECT is a stream error`(
        name: String, fields: [(String, String)]
    ) throws {
        let session = try HTTP2Session()
        session.client.request(1, fields, endStream: false)
        session.expect(malformed)
    }

    @Test func `8.5: CONNECT reaches no handler`() throws {
        let session = try HTTP2Session()
        session.client.request(
            1, [(":method", "CONNECT"), (":authority", "test:443")], endStream: false)
        let answer = session.client.response(1)
        #expect(answer.status >= 400 || answer.reset != nil)
        #expect(session.client.roundTrip())
    }

    @Test func `8.1: a response to HEAD and one without content end with their head`() throws {
        let session = try HTTP2Session { request, _, exchange in
            if request.path == "/none" {
                return exchange.respond(ResponseHead(status: .notModified), body: .none)
            }
            exchange.respond(ok(), body: .bytes(pattern(1000)))
        }
        session.client.request(1, FrameClient.fields("HEAD"))
        let head = session.client.response(1)
        #expect(head.isWhole && head.body.isEmpty && head.field("content-length") == "1000")
        session.client.get(3, "/none")
        #expect(session.client.response(3).isWhole)
        #expect(session.client.received.allSatisfy { $0.type != Frame.Kind.data })
    }
}
