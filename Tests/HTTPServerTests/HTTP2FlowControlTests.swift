// RFC 9113, sections 5.2 and 6.9: windows of the connection and of streams.
import Glibc
import HTTP
import HTTPServer
import Posix
import Testing

extension HTTP2ConformanceTests {
    private static let mostWindow: UInt32 = 0x7FFF_FFFF
    private static let initialSize = Frame.Setting.initialWindowSize

    @Test(arguments: [
        ConformanceCase(
            "of nothing on a stream", [getFrame(), .windowUpdate(1, 0)], holdsResponses: true,
            either(.protocolError)),
        ConformanceCase(
            "of nothing on the connection", [.windowUpdate(0, 0)], [.connection(.protocolError)]),
        ConformanceCase(
            "that makes a stream's window too large",
            [getFrame(), .windowUpdate(1, mostWindow), .windowUpdate(1, 1)], holdsResponses: true,
            either(.flowControlError)),
        ConformanceCase(
            "that makes the connection's window too large",
            [.windowUpdate(0, mostWindow), .windowUpdate(0, 1)],
            [.connection(.flowControlError)]),
    ])
    func `6.9: WINDOW_UPDATE out of range is an error of its stream or connection`(
        case one: ConformanceCase
    ) throws {
        try one.run()
    }

    @Test func `6.9.1: the reserved bit of an increment is ignored`() throws {
        let session = try HTTP2Session.withoutWindow()
        session.client.write(getFrame(), .windowUpdate(1, 0x8000_0001))
        #expect(session.client.response(1).text == "/")
    }

    @Test func `6.9.2: an initial size that makes an open stream's window too large is an error`()
        throws
    {
        let session = try HTTP2Session.withoutWindow()
        session.client.write(postFrame(5), .windowUpdate(5, Self.mostWindow))
        session.client.writeSettings([(Self.initialSize, 1)])
        // RFC 9113 asks for a connection error; libnghttp2 resets the streams that it concerns.
        session.expect(either(.flowControlError), on: 5)
    }

    @Test func `6.9.1: a response has no more content than its stream's window`() throws {
        let session = try HTTP2Session([(Self.initialSize, 3)]), client = session.client
        client.acknowledgesData = false
        client.get(1, "/0123456789")
        client.read { $0.streams[1]?.body.count == 3 }
        #expect(client.roundTrip() && client.streams[1]?.text == "/01")
        client.write(.windowUpdate(1, 4))
        client.read { $0.streams[1]?.body.count == 7 }
        #expect(client.roundTrip() && client.streams[1]?.text == "/012345")
        client.write(.windowUpdate(1, 100))
        #expect(client.response(1).text == "/0123456789")
    }

    @Test func `6.9.1: responses together have no more content than the connection's window`()
        throws
    {
        let bytes = pattern(100_000)
        let session = try HTTP2Session([(Self.initialSize, Self.mostWindow)]) { _, _, exchange in
            exchange.respond(ok(), body: .bytes(bytes))
        }
        let client = session.client
        client.acknowledgesData = false
        let total = { client.streams.values.reduce(0) { $0 + $1.body.count } }
        for stream: UInt32 in [1, 3, 5] { client.get(stream) }
        client.read { _ in total() >= 65535 }
        #expect(client.roundTrip() && total() == 65535)
        client.write(.windowUpdate(0, 300_000))
        for stream: UInt32 in [1, 3, 5] { #expect(client.response(stream).body == bytes) }
    }

    @Test func `6.9.2: a larger initial size opens the windows of waiting streams`() throws {
        let session = try HTTP2Session.withoutWindow(), client = session.client
        client.acknowledgesData = false
        client.get(1, "/one")
        client.get(3, "/two")
        #expect(client.roundTrip())
        #expect(client.streams.values.allSatisfy { $0.body.isEmpty })
        client.writeSettings([(Self.initialSize, 1)])
        client.read { $0.streams[1]?.body.count == 1 && $0.streams[3]?.body.count == 1 }
        #expect(
            client.roundTrip() && client.streams[1]?.text == "/" && client.streams[3]?.text == "/")
        client.writeSettings([(Self.initialSize, 100)])
        #expect(client.response(1).text == "/one" && client.response(3).text == "/two")
    }

    @Test func `6.9.2: a smaller initial size makes a window negative, which updates fill first`()
        throws
    {
        let session = try HTTP2Session([(Self.initialSize, 3)]), client = session.client
        client.acknowledgesData = false
        client.get(1, "/0123456789")
        client.read { $0.streams[1]?.body.count == 3 }
        client.writeSettings([(Self.initialSize, 1)])
        client.write(.windowUpdate(1, 2))
        #expect(client.roundTrip() && client.streams[1]?.text == "/01")
        client.write(.windowUpdate(1, 1))
        client.read { $0.streams[1]?.body.count == 4 }
        #expect(client.roundTrip() && client.streams[1]?.text == "/012")
    }

    @Test func `6.9: a closed window delays neither heads nor responses without content`() throws {
        let session = try HTTP2Session.withoutWindow { request, content, exchange in
            guard request.path == "/none" else {
                return HTTP2Session.echo(request, content, exchange)
            }
            exchange.respond(ok(), body: .none)
        }
        session.client.get(1, "/some")
        session.client.get(3, "/none")
        #expect(session.client.response(3).status == 200)
        session.client.read { $0.streams[1]?.status == 200 }
        #expect(session.client.streams[1]?.isWhole == false)
    }

    @Test func `5.2: the loop does not spin while a window is closed`() throws {
        let session = try HTTP2Session.withoutWindow(), client = session.client
        for index: UInt32 in 0..<20 { client.get(2 * index + 1, "/\(index)") }
        #expect(client.roundTrip() && client.roundTrip())
        let before = session.server.loopTime().nanoseconds, start = ContinuousClock.now
        // The time in which the loop's own time is measured.
        usleep(300_000)
        let used = Duration.nanoseconds(session.server.loopTime().nanoseconds - before)
        #expect(used * 2 < ContinuousClock.now - start, "the loop spins while a window is closed")
    }

    @Test func `6.9.1: content beyond the server's windows is a flow control error`() throws {
        let record = Record()
        let server = try TestServer(handler: {
            BareHandler { _, body, _ in
                // The content is left unread, so the windows do not open again.
                record.note(body == nil ? "no content" : "content")
            }
        })
        let client = server.frameClient()
        try #require(client.open())
        client.write(postFrame())
        #expect(eventually { record.count("content") == 1 })
        #expect(client.roundTrip())
        let stream = client.serverSettings[Self.initialSize] ?? 65535
        var connection: UInt32 = 65535
        for frame in client.received
        where frame.type == Frame.Kind.windowUpdate && frame.stream == 0 {
            connection += UInt32(bigEndian: frame.payload[...])
        }
        var left = Int(min(stream, connection))
        try #require(left <= 64 << 20)
        while left > 0 {
            let count = min(left, 16384)
            guard client.writeIfTaken(.data(1, [UInt8](repeating: 0, count: count))) else { break }
            left -= count
        }
        #expect(client.roundTrip() && client.goAway == nil && client.streams[1]?.reset == nil)
        client.write(.data(1, [0]))
        client.read { $0.goAway != nil || $0.streams[1]?.reset != nil }
        #expect((client.goAway?.code ?? client.streams[1]?.reset) == .flowControlError)
    }

    @Test func `6.9: the server opens its windows as content is read`() throws {
        let session = try HTTP2Session(), client = session.client
        let bytes = pattern(1 << 20)
        client.write(postFrame())
        var sent = 0, stream = Int(client.serverSettings[Self.initialSize] ?? 65535)
        var connection = 65535, seen = 0
        while sent < bytes.count {
            for frame in client.received[seen...] where frame.type == Frame.Kind.windowUpdate {
                let increment = Int(UInt32(bigEndian: frame.payload[...]))
                if frame.stream == 0 { connection += increment } else { stream += increment }
            }
            seen = client.received.count
            let count = min(16384, stream, connection, bytes.count - sent)
            if count <= 0 {
                try #require(client.readFrame() != nil, "the windows stay closed at \(sent) bytes")
                continue
            }
            let isLast = sent + count == bytes.count
            client.write(.data(1, Array(bytes[sent..<(sent + count)]), endStream: isLast))
            sent += count
            stream -= count
            connection -= count
        }
        #expect(client.response(1).body == bytes)
    }
}
