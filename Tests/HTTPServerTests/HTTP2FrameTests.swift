// RFC 9113, sections 6.1 to 6.8 and 6.10: what each type of frame may hold.
import HTTP
import HTTPServer
import Testing

extension HTTP2ConformanceTests {
    /// A frame of one type on a stream, with a payload of zeros.
    private static func zeros(_ type: UInt8, _ count: Int, on stream: UInt32 = 0, flags: UInt8 = 0)
        -> Frame
    {
        Frame(
            type: type, flags: flags, stream: stream, payload: [UInt8](repeating: 0, count: count))
    }

    private static let padded = Frame.Flag.padded

    @Test(arguments: [
        ConformanceCase("6.1: DATA", [.data(0, [1])], [.connection(.protocolError)]),
        ConformanceCase("6.2: HEADERS", [getFrame(0)], [.connection(.protocolError)]),
        ConformanceCase(
            "6.3: PRIORITY", [.priority(0, dependsOn: 1)], [.connection(.protocolError)]),
        ConformanceCase("6.4: RST_STREAM", [.reset(0)], [.connection(.protocolError)]),
        ConformanceCase(
            "6.10: CONTINUATION", [.continuation(0, [])], [.connection(.protocolError)]),
    ])
    func `6: a frame that needs a stream is a connection error on stream 0`(
        case one: ConformanceCase
    ) throws {
        try one.run()
    }

    @Test(arguments: [
        ConformanceCase(
            "6.5: SETTINGS", [zeros(Frame.Kind.settings, 0, on: 1)], [.connection(.protocolError)]),
        ConformanceCase(
            "6.7: PING", [zeros(Frame.Kind.ping, 8, on: 1)], [.connection(.protocolError)]),
        ConformanceCase(
            "6.8: GOAWAY", [zeros(Frame.Kind.goAway, 8, on: 1)], [.connection(.protocolError)]),
    ])
    func `6: a frame of the connection is a connection error on a stream`(
        case one: ConformanceCase
    ) throws {
        try one.run()
    }

    @Test(arguments: [
        ConformanceCase(
            "6.3: PRIORITY of 4 bytes", [zeros(Frame.Kind.priority, 4, on: 1)],
            either(.frameSizeError)),
        ConformanceCase(
            "6.3: PRIORITY of 6 bytes", [zeros(Frame.Kind.priority, 6, on: 1)],
            either(.frameSizeError)),
        ConformanceCase(
            "6.4: RST_STREAM of 3 bytes", [getFrame(), zeros(Frame.Kind.reset, 3, on: 1)],
            holdsResponses: true, [.connection(.frameSizeError)]),
        ConformanceCase(
            "6.4: RST_STREAM of 5 bytes", [getFrame(), zeros(Frame.Kind.reset, 5, on: 1)],
            holdsResponses: true, [.connection(.frameSizeError)]),
        ConformanceCase(
            "6.5: SETTINGS of 5 bytes", [zeros(Frame.Kind.settings, 5)],
            [.connection(.frameSizeError)]),
        ConformanceCase(
            "6.5: an acknowledgement of SETTINGS with a payload",
            [zeros(Frame.Kind.settings, 6, flags: Frame.Flag.acknowledgement)],
            [.connection(.frameSizeError)]),
        ConformanceCase(
            "6.7: PING of 7 bytes", [zeros(Frame.Kind.ping, 7)], [.connection(.frameSizeError)]),
        ConformanceCase(
            "6.7: PING of 9 bytes", [zeros(Frame.Kind.ping, 9)], [.connection(.frameSizeError)]),
        ConformanceCase(
            "6.8: GOAWAY of 7 bytes", [zeros(Frame.Kind.goAway, 7)],
            [.connection(.frameSizeError)]),
        ConformanceCase(
            "6.9: WINDOW_UPDATE of 3 bytes", [zeros(Frame.Kind.windowUpdate, 3)],
            [.connection(.frameSizeError)]),
        ConformanceCase(
            "6.9: WINDOW_UPDATE of 5 bytes on a stream",
            [getFrame(), zeros(Frame.Kind.windowUpdate, 5, on: 1)], holdsResponses: true,
            [.connection(.frameSizeError)]),
        ConformanceCase(
            "6.2: HEADERS without room for its priority",
            [
                zeros(
                    Frame.Kind.headers, 4, on: 1, flags: Frame.Flag.priority | Frame.Flag.endHeaders
                )
            ],
            [.connection(.frameSizeError), .connection(.protocolError)]),
        ConformanceCase(
            "6.1: DATA without room for its padding's length",
            [postFrame(), zeros(Frame.Kind.data, 0, on: 1, flags: padded)],
            [.connection(.frameSizeError), .connection(.protocolError)]),
    ])
    func `6: a frame of a wrong length is a frame size error`(case one: ConformanceCase) throws {
        try one.run()
    }

    @Test(arguments: [
        ConformanceCase(
            "6.1: DATA",
            [
                postFrame(),
                Frame(type: Frame.Kind.data, flags: padded, stream: 1, payload: [4, 1, 2, 3]),
            ], [.connection(.protocolError)]),
        ConformanceCase(
            "6.2: HEADERS",
            [
                Frame(
                    type: Frame.Kind.headers, flags: padded | Frame.Flag.endHeaders, stream: 1,
                    payload: [UInt8(getBlock.count + 1)] + getBlock)
            ], [.connection(.protocolError)]),
    ])
    func `6: padding as long as the payload is a connection error`(case one: ConformanceCase) throws
    {
        try one.run()
    }

    @Test func `6.1 and 6.2: padding and priority are not part of the content`() throws {
        let session = try HTTP2Session(), client = session.client
        let flags = Frame.Flag.padded | Frame.Flag.priority | Frame.Flag.endHeaders
        client.write(
            Frame(
                type: Frame.Kind.headers, flags: flags, stream: 1,
                payload: [7, 0x80, 0, 0, 0, 99] + postBlock + pattern(7)),
            Frame(
                type: Frame.Kind.data, flags: Frame.Flag.padded, stream: 1,
                payload: [3, 0x61, 0x62, 0, 0, 0]),
            Frame(
                type: Frame.Kind.data, flags: Frame.Flag.padded | Frame.Flag.endStream, stream: 1,
                payload: [255, 0x63] + [UInt8](repeating: 0, count: 255)))
        #expect(client.response(1).text == "abc")
    }

    @Test(arguments: [
        ("ENABLE_PUSH of 2", Frame.Setting.enablePush, UInt32(2), ErrorCode.protocolError),
        (
            "INITIAL_WINDOW_SIZE over 2^31-1", Frame.Setting.initialWindowSize, 1 << 31,
            .flowControlError
        ),
        ("MAX_FRAME_SIZE below 2^14", Frame.Setting.maxFrameSize, 16383, .protocolError),
        ("MAX_FRAME_SIZE over 2^24-1", Frame.Setting.maxFrameSize, 1 << 24, .protocolError),
    ])
    func `6.5.2: a setting out of its range is a connection error`(
        name: String, identifier: UInt16, value: UInt32, code: ErrorCode
    ) throws {
        let session = try HTTP2Session()
        session.client.write(.settings([(identifier, value)]))
        session.expect([.connection(code)])
    }

    @Test
    func `6.5: settings apply in order, unknown ones are ignored, each frame is acknowledged once`()
        throws
    {
        let session = try HTTP2Session(), client = session.client
        let acknowledged = { client.received.count { $0 == Frame.settingsAcknowledgement } }
        #expect(acknowledged() == 1)
        let size = Frame.Setting.initialWindowSize
        let values: [(UInt16, UInt32)] = [(size, 0), (0xFF, 7), (size, 2)]
        client.write(.settings(values), .settings())
        #expect(client.roundTrip() && acknowledged() == 3)
        client.acknowledgesData = false
        client.get(1, "/path")
        client.read { $0.streams[1]?.body.count == 2 }
        #expect(client.roundTrip() && client.streams[1]?.text == "/p")
    }

    @Test func `6.6: PUSH_PROMISE of a client is a connection error`() throws {
        let session = try HTTP2Session()
        session.client.write(
            getFrame(),
            Frame(
                type: Frame.Kind.pushPromise, flags: Frame.Flag.endHeaders, stream: 1,
                payload: [0, 0, 0, 2] + getBlock))
        session.expect([.connection(.protocolError)])
    }

    @Test func `6.4: RST_STREAM ends the response and its source only`() throws {
        let record = Record()
        let session = try HTTP2Session { request, content, exchange in
            guard request.path == "/endless" else {
                return HTTP2Session.echo(request, content, exchange)
            }
            exchange.respond(ok(), body: .source(EndlessSource(record), length: nil))
        }
        let client = session.client
        client.get(1, "/endless")
        client.read { ($0.streams[1]?.body.count ?? 0) > 200_000 }
        client.write(.reset(1))
        #expect(eventually { record.count("source cancelled") == 1 })
        client.get(3)
        #expect(client.response(3).text == "/")
    }

    @Test func `6.7: PING is answered with its own bytes, an acknowledgement is not answered`()
        throws
    {
        let session = try HTTP2Session(), client = session.client
        client.write(
            Frame(
                type: Frame.Kind.ping, flags: Frame.Flag.acknowledgement, payload: pattern(8)),
            .ping([9, 8, 7, 6, 5, 4, 3, 2]))
        #expect(client.roundTrip())
        let pings = client.received.filter { $0.type == Frame.Kind.ping }
        #expect(pings.first?.payload == [9, 8, 7, 6, 5, 4, 3, 2] && pings.count == 2)
        #expect(pings.allSatisfy { $0.has(Frame.Flag.acknowledgement) })
    }

    @Test func `6.8: streams opened before the client's GOAWAY are answered completely`() throws {
        let session = try HTTP2Session.withoutWindow(), client = session.client
        client.get(1)
        client.write(.goAway(last: 0, debug: Array("leaving".utf8)), .windowUpdate(1, 100))
        #expect(client.response(1).text == "/")
    }

    @Test(arguments: [
        ConformanceCase(
            "without HEADERS", [getFrame(), .continuation(1, [])], holdsResponses: true,
            [.connection(.protocolError)]),
        ConformanceCase(
            "after CONTINUATION with END_HEADERS",
            [
                .headers(1, getBlock, endHeaders: false), .continuation(1, []),
                .continuation(1, []),
            ], holdsResponses: true, [.connection(.protocolError)]),
        ConformanceCase(
            "after DATA", [postFrame(), .data(1, [1]), .continuation(1, [])],
            [.connection(.protocolError)]),
    ])
    func `6.10: CONTINUATION without an open header block is a connection error`(
        case one: ConformanceCase
    ) throws {
        try one.run()
    }

    @Test func `6.10: an endless header block ends the connection`() throws {
        let session = try HTTP2Session(), client = session.client
        let piece = HeaderBlock.literal([("x-long", String(repeating: "a", count: 4000))])
        client.write(.headers(1, getBlock, endHeaders: false))
        // 40 MB; the server answers long before, and then takes no more.
        for _ in 0..<10_000 {
            guard client.writeIfTaken(.continuation(1, piece, endHeaders: false)) else { break }
        }
        client.readToEnd()
        #expect(client.end != nil)
    }
}
