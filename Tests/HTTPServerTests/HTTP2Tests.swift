// Requests and responses over HTTP/2 (RFC 9113) with a well-behaved client.
import HTTP
import HTTPServer
import Posix
import Testing

@Suite(.timeLimit(.minutes(10)))
struct HTTP2Tests {
    @Test func `a request is answered with lower-case fields, a date and a length`() throws {
        let server = try TestServer { request, _, exchange in
            exchange.respond(
                ok(("Content-Type", "video/mp2t"), ("Connection", "keep-alive")),
                body: .bytes(Array("\(request.version) \(request.path)".utf8)))
        }
        let client = server.frameClient()
        #expect(client.open())
        client.get(1, "/seg.ts")
        let answer = client.response(1)
        #expect(answer.status == 200)
        #expect(answer.text == "HTTP/2 /seg.ts")
        #expect(answer.field("content-type") == "video/mp2t")
        #expect(answer.field("content-length") == "14")
        #expect(answer.field("date") != nil)
        #expect(answer.field("connection") == nil)
        #expect(client.faults.isEmpty)
    }

    @Test(arguments: [("HEAD", 200), ("GET", 204), ("GET", 304)])
    func `a response that has no content ends with its head`(_ asked: (String, Int)) throws {
        let status = HTTPStatus(rawValue: UInt16(asked.1))
        let server = try TestServer { _, _, exchange in
            exchange.respond(ResponseHead(status: status), body: .bytes(Array("12345".utf8)))
        }
        let client = server.frameClient()
        #expect(client.open())
        client.request(1, FrameClient.fields(asked.0))
        let answer = client.response(1)
        #expect(answer.status == asked.1)
        #expect(answer.isWhole)
        #expect(answer.body.isEmpty)
        #expect(answer.field("content-length") == (asked.0 == "HEAD" ? "5" : nil))
        #expect(!client.received.contains { $0.type == Frame.Kind.data })
    }

    @Test func `a hundred concurrent streams each get their own content`() throws {
        let server = try TestServer { request, _, exchange in
            let index = Int(request.path.dropFirst()) ?? 0
            exchange.respond(ok(), body: .bytes(pattern(index * 1000)))
        }
        let client = server.frameClient()
        #expect(client.open())
        for index in 0..<100 { client.get(UInt32(index * 2 + 1), "/\(index)") }
        for index in 0..<100 {
            let answer = client.response(UInt32(index * 2 + 1))
            #expect(answer.isWhole && answer.body == pattern(index * 1000), "stream \(index)")
        }
        #expect(client.faults.isEmpty)
    }

    @Test func `content of a request is passed on as it arrives`() throws {
        let server = try TestServer { _, content, exchange in
            exchange.respond(ok(), body: .bytes(content))
        }
        let client = server.frameClient()
        #expect(client.open())
        // More than both windows allow at first: it must be read for the rest to arrive.
        let content = pattern(200_000)
        client.request(1, FrameClient.fields("POST"), endStream: false)
        var window = 65_535
        var sent = 0
        while sent < content.count {
            guard window > 0 else {
                let before = client.received.count
                #expect(client.read { $0.received[before...].contains { $0.stream == 1 } })
                window += client.received[before...].filter {
                    $0.type == Frame.Kind.windowUpdate && $0.stream == 1
                }.reduce(0) { $0 + Int(UInt32(bigEndian: $1.payload[...])) }
                continue
            }
            let count = min(16_384, window, content.count - sent)
            let isLast = sent + count == content.count
            client.write(
                .data(1, Array(content[sent..<(sent + count)]), endStream: isLast))
            sent += count
            window -= count
        }
        #expect(client.response(1).body == content)
    }

    @Test func `a response before the end of a request stops the request's content`() throws {
        let server = try TestServer(handler: {
            BareHandler { _, _, exchange in
                exchange.respond(ok(), body: .bytes(Array("no".utf8)))
            }
        })
        let client = server.frameClient()
        #expect(client.open())
        // Unread content returns its part of the connection's window each time.
        for index in 0..<20 {
            let stream = UInt32(index * 2 + 1)
            client.request(stream, FrameClient.fields("POST"), endStream: false)
            client.write(.data(stream, pattern(16_000), endStream: false))
            #expect(client.read { $0.streams[stream]?.reset != nil })
            #expect(client.streams[stream]?.reset == .noError)
            #expect(client.streams[stream]?.text == "no")
        }
        #expect(client.goAway == nil)
    }

    @Test func `a client that expects 100-continue gets it`() throws {
        let server = try TestServer { _, content, exchange in
            exchange.respond(ok(), body: .bytes(content))
        }
        let client = server.frameClient()
        #expect(client.open())
        client.request(
            1, FrameClient.fields("POST") + [("expect", "100-continue")], endStream: false)
        #expect(client.read { $0.streams[1]?.blocks.isEmpty == false })
        #expect(client.streams[1]?.blocks[0].first?.value == "100")
        client.write(.data(1, Array("abc".utf8), endStream: true))
        #expect(client.response(1).text == "abc")
    }

    @Test func `a stream without a window delays no other and uses no memory`() throws {
        let record = Record()
        let server = try TestServer { request, _, exchange in
            guard request.path == "/endless" else { return echoPath(request, [], exchange) }
            exchange.respond(ok(), body: .source(EndlessSource(record), length: nil))
        }
        let client = server.frameClient()
        client.acknowledgesData = false
        client.open([(Frame.Setting.initialWindowSize, 1000)])
        client.get(1, "/endless")
        for index in 0..<50 {
            let stream = UInt32(index * 2 + 3)
            client.get(stream, "/\(index)")
            #expect(client.response(stream).text == "/\(index)")
        }
        #expect(client.streams[1]?.body.count == 1000)
        #expect(client.streams[1]?.isWhole == false)
    }

    @Test func `a reset ends its reader at once`() throws {
        let record = Record()
        let server = try TestServer { _, _, exchange in
            exchange.onCancel = { record.note("cancelled") }
            exchange.onFinish = { record.note($0) }
            exchange.respond(ok(), body: .source(EndlessSource(record), length: nil))
        }
        let client = server.frameClient()
        client.acknowledgesData = false
        #expect(client.open())
        client.get(1)
        #expect(client.read { ($0.streams[1]?.body.count ?? 0) == 65_535 })
        client.write(.reset(1, .cancel))
        #expect(eventually { record.count("cancelled") == 1 })
        #expect(eventually { record.outcomes.count == 1 })
        #expect(record.outcomes.first?.ending == .aborted)
        #expect(record.outcomes.first?.bodyBytes == 65_535)
        #expect(client.roundTrip())
    }

    @Test func `the end of the connection ends every reader`() throws {
        let record = Record()
        let server = try TestServer { _, _, exchange in
            exchange.onFinish = { record.note($0) }
            exchange.respond(ok(), body: .source(EndlessSource(record), length: nil))
        }
        let client = server.frameClient()
        #expect(client.open())
        for index in 0..<10 { client.get(UInt32(index * 2 + 1)) }
        #expect(client.read { $0.streams.count == 10 })
        client.transport.close()
        #expect(eventually { record.outcomes.count == 10 })
        #expect(record.outcomes.allSatisfy { $0.ending == .aborted })
        #expect(eventually { server.server.connectionCount == 0 })
    }

    @Test func `a failed source resets its stream and no other`() throws {
        let server = try TestServer { request, _, exchange in
            guard request.path == "/broken" else { return echoPath(request, [], exchange) }
            exchange.respond(
                ok(),
                body: .source(
                    PieceSource([pattern(50_000)], breaks: true, on: exchange.loop),
                    length: 100_000))
        }
        let client = server.frameClient()
        #expect(client.open())
        client.get(1, "/broken")
        let answer = client.response(1)
        #expect(answer.reset == ErrorCode(rawValue: 2))
        #expect(!answer.isWhole)
        client.get(3, "/good")
        #expect(client.response(3).text == "/good")
    }

    @Test func `parts of a cookie are one field, and the authority is the host`() throws {
        let server = try TestServer { request, _, exchange in
            let text = "\(request.fields.first("Cookie") ?? "") \(request.host ?? "")"
            exchange.respond(ok(), body: .bytes(Array(text.utf8)))
        }
        let client = server.frameClient()
        #expect(client.open())
        client.get(1, "/", [("cookie", "a=1"), ("cookie", "b=2")])
        #expect(client.response(1).text == "a=1; b=2 test")
    }

    @Test func `a head over a limit is answered, and the connection continues`() throws {
        let server = try TestServer(echoPath)
        let client = server.frameClient()
        #expect(client.open())
        client.get(1, "/" + String(repeating: "a", count: 20_000))
        #expect(client.response(1).status == 414)
        client.get(3, "/", (0..<150).map { ("x-\($0)", "1") })
        #expect(client.response(3).status == 431)
        let long = String(repeating: "b", count: 40_000)
        client.get(5, "/", [("x-long", long), ("x-longer", long)])
        #expect(client.response(5).status == 431)
        client.get(7, "/", [("host", "other")])
        #expect(client.response(7).status == 400)
        client.get(9, "/fine")
        #expect(client.response(9).text == "/fine")
    }

    @Test func `a long response head is sent, and one that is too long resets its stream`() throws {
        let record = Record()
        let server = try TestServer { request, _, exchange in
            guard request.path != "/fine" else { return echoPath(request, [], exchange) }
            exchange.onFinish = { record.note($0) }
            var head = ok()
            // Each field is one that a client's decoder accepts.
            for index in 0..<(request.path == "/long" ? 5 : 200) {
                head.fields.append("x-\(index)", String(repeating: "v", count: 20_000))
            }
            exchange.respond(head, body: .bytes([1]))
        }
        let client = server.frameClient()
        #expect(client.open())
        client.get(1, "/long")
        let answer = client.response(1)
        #expect(answer.status == 200 && answer.body == [1])
        #expect((0..<5).allSatisfy { answer.field("x-\($0)")?.count == 20_000 })
        client.get(3, "/too-long")
        #expect(client.response(3).reset == ErrorCode(rawValue: 0x2))
        #expect(eventually { record.outcomes.map(\.ending) == [.complete, .broken] })
        client.get(5, "/fine")
        #expect(client.response(5).text == "/fine")
        #expect(client.faults.isEmpty)
    }

    @Test func `a more urgent response overtakes a waiting one`() throws {
        let server = try TestServer { request, _, exchange in
            let type =
                request.path.hasSuffix("m3u8") ? "application/vnd.apple.mpegurl" : "video/mp2t"
            exchange.respond(ok(("Content-Type", type)), body: .bytes(pattern(300_000)))
        }
        let client = server.frameClient()
        client.acknowledgesData = false
        // The streams' windows have room, the connection's has not.
        client.open([(Frame.Setting.initialWindowSize, 1 << 20)])
        client.get(1, "/1.ts")
        client.get(3, "/2.ts")
        client.get(5, "/list.m3u8")
        client.get(7, "/told.ts", [("priority", "u=0")])
        #expect(client.read { $0.streams.count == 4 })
        let before = client.received.count
        client.write(.windowUpdate(0, 1 << 21))
        #expect(client.read { $0.streams.values.allSatisfy(\.isWhole) })
        let ends = client.received[before...].filter {
            $0.type == Frame.Kind.data && $0.has(Frame.Flag.endStream)
        }
        #expect(ends.map(\.stream) == [7, 5, 1, 3])
    }

    @Test func `a priority update moves a response forward`() throws {
        let server = try TestServer { _, _, exchange in
            exchange.respond(ok(), body: .bytes(pattern(300_000)))
        }
        let client = server.frameClient()
        client.acknowledgesData = false
        client.open([(Frame.Setting.initialWindowSize, 1 << 20)])
        client.get(1)
        client.get(3)
        #expect(client.read { $0.streams.count == 2 })
        client.write(.priorityUpdate(3, "u=1"))
        #expect(client.roundTrip())
        let before = client.received.count
        client.write(.windowUpdate(0, 1 << 20))
        #expect(client.read { $0.streams.values.allSatisfy(\.isWhole) })
        let ends = client.received[before...].filter { $0.has(Frame.Flag.endStream) }
        #expect(ends.map(\.stream) == [3, 1])
    }

    @Test func `a drain lets responses end, and closes`() throws {
        let gate = Record()
        let server = try TestServer { request, _, exchange in
            let source = PieceSource(
                [[1]], pause: .milliseconds(10), on: exchange.loop,
                mayGoOn: { _ in gate.count("open") > 0 })
            exchange.respond(ok(), body: .source(source, length: nil))
        }
        let client = server.frameClient()
        #expect(client.open())
        client.get(1)
        #expect(client.read { $0.streams[1] != nil })
        let drained = Record()
        server.server.drain(within: .seconds(10 as Int64)) { drained.note("drained") }
        #expect(client.read { $0.goAway != nil })
        #expect(client.goAway?.code == .noError)
        #expect(client.goAway?.lastStream == 1)
        #expect(drained.all.isEmpty)
        gate.note("open")
        #expect(client.response(1).isWhole)
        #expect(client.readToEnd())
        #expect(eventually { drained.count("drained") == 1 })
    }
}
