// RFC 9113, sections 5 and 7: states of streams, their numbers, errors and extensions.
import Testing

// MARK: 5.1. Stream states

extension HTTP2ConformanceTests {
    @Test(arguments: [
        ConformanceCase("DATA", [.data(1, [1])], [.connection(.protocolError)]),
        ConformanceCase("RST_STREAM", [.reset(1)], [.connection(.protocolError)]),
        ConformanceCase("WINDOW_UPDATE", [.windowUpdate(1, 1)], [.connection(.protocolError)]),
        ConformanceCase(
            "CONTINUATION", [.continuation(1, getBlock)], [.connection(.protocolError)]),
        ConformanceCase("PRIORITY, which is allowed", [.priority(1, dependsOn: 0)], [.ignored]),
    ])
    func `5.1: on an idle stream only HEADERS and PRIORITY are allowed`(
        case one: ConformanceCase
    ) throws {
        try one.run()
    }

    @Test(arguments: [
        ConformanceCase(
            "DATA", [getFrame(), .data(1, [1])], holdsResponses: true, either(.streamClosed)),
        ConformanceCase(
            "HEADERS", [getFrame(), getFrame()], holdsResponses: true, either(.streamClosed)),
        ConformanceCase(
            "CONTINUATION", [getFrame(), .continuation(1, getBlock)], holdsResponses: true,
            [.connection(.protocolError)]),
        ConformanceCase(
            "WINDOW_UPDATE, PRIORITY and RST_STREAM, which are allowed",
            [getFrame(), .windowUpdate(1, 1), .priority(1, dependsOn: 0), .reset(1)],
            holdsResponses: true, [.ignored]),
    ])
    func `5.1: on a half-closed (remote) stream DATA and HEADERS are errors`(
        case one: ConformanceCase
    ) throws {
        try one.run()
    }

    @Test(arguments: [
        ("DATA", Frame.data(1, [1]), either(.streamClosed) + [.ignored]),
        ("HEADERS", getFrame(), either(.streamClosed) + [.connection(.protocolError), .ignored]),
        ("CONTINUATION", .continuation(1, getBlock), [.connection(.protocolError)]),
        ("WINDOW_UPDATE", .windowUpdate(1, 1), [.ignored]),
        ("RST_STREAM", .reset(1), [.ignored]),
        ("PRIORITY", .priority(1, dependsOn: 0), [.ignored]),
    ])
    func `5.1: frames on a closed stream do no harm`(
        name: String, frame: Frame, allowed: [HTTP2Session.Outcome]
    ) throws {
        let session = try HTTP2Session()
        session.client.get(1)
        #expect(session.client.response(1).isWhole)
        session.client.write(frame)
        session.expect(allowed)
        #expect(session.client.streams[1]?.body == Array("/".utf8))
    }

    @Test(arguments: [
        ("DATA", Frame.data(1, [1]), either(.streamClosed) + [.ignored]),
        ("HEADERS", getFrame(), either(.streamClosed) + [.connection(.protocolError), .ignored]),
        ("PRIORITY", .priority(1, dependsOn: 0), [.ignored]),
    ])
    func `5.1: frames on a stream that the client has reset do not reopen it`(
        name: String, frame: Frame, allowed: [HTTP2Session.Outcome]
    ) throws {
        let session = try HTTP2Session.withoutWindow()
        session.client.write(getFrame(), .reset(1), frame)
        session.expect(allowed)
        #expect(session.client.streams[1]?.isWhole != true)
    }
}

// MARK: 5.1.1 and 5.1.2. Numbers and concurrency

extension HTTP2ConformanceTests {
    @Test(arguments: [
        ConformanceCase(
            "an even number", [getFrame(2)], on: 2, [.connection(.protocolError)]),
        ConformanceCase("number 0", [getFrame(0)], on: 0, [.connection(.protocolError)]),
    ])
    func `5.1.1: a stream whose number a client may not use is an error`(
        case one: ConformanceCase
    ) throws {
        try one.run()
    }

    @Test func `5.1.1: a number below an earlier one opens no stream`() throws {
        let session = try HTTP2Session.withoutWindow()
        session.client.write(getFrame(5), getFrame(3))
        // RFC 9113 asks for a connection error. libnghttp2 discards the block instead: without a
        // list of all numbers it cannot distinguish it from trailers of a stream that the server
        // has reset.
        session.expect(
            either(.streamClosed) + [.connection(.protocolError), .ignored], on: 3)
        #expect(session.client.streams[3]?.blocks.isEmpty != false)
    }

    @Test func `5.1.1: a client may skip numbers, up to the highest`() throws {
        let session = try HTTP2Session()
        for stream: UInt32 in [7, 1001, 0x7FFF_FFFF] {
            session.client.get(stream, "/\(stream)")
            #expect(session.client.response(stream).text == "/\(stream)")
        }
    }

    @Test func `5.1.2: a stream over the server's limit is an error`() throws {
        let session = try HTTP2Session.withoutWindow(), client = session.client
        let limit = try #require(
            client.serverSettings[Frame.Setting.maxConcurrentStreams],
            "the server announces no limit")
        try #require(limit <= 10_000)
        for index in 0..<limit { client.get(2 * index + 1) }
        #expect(client.roundTrip())
        #expect(client.goAway == nil && client.streams.values.allSatisfy { $0.reset == nil })
        client.get(2 * limit + 1)
        session.expect(either(.protocolError) + either(.refusedStream), on: 2 * limit + 1)
    }

    @Test func `5.1.2: reset streams make room for others`() throws {
        let session = try HTTP2Session.withoutWindow(), client = session.client
        let limit = client.serverSettings[Frame.Setting.maxConcurrentStreams] ?? 100
        for round: UInt32 in 0..<2 {
            let numbers = (0..<limit).map { 2 * ($0 + round * limit) + 1 }
            for stream in numbers { client.get(stream) }
            for stream in numbers { client.read { $0.streams[stream] != nil } }
            #expect(numbers.allSatisfy { client.streams[$0]?.status == 200 })
            for stream in numbers { client.write(.reset(stream)) }
        }
        #expect(client.roundTrip() && client.goAway == nil)
    }
}

// MARK: 5.3 to 5.5, and 7. Priority, errors and extensions

extension HTTP2ConformanceTests {
    @Test(arguments: [
        ConformanceCase(
            "PRIORITY", [.priority(1, dependsOn: 1)], [.ignored] + either(.protocolError)),
        ConformanceCase(
            "HEADERS",
            [
                Frame(
                    type: Frame.Kind.headers,
                    flags: Frame.Flag.priority | Frame.Flag.endHeaders | Frame.Flag.endStream,
                    stream: 1, payload: [0, 0, 0, 1, 15] + getBlock)
            ], [.ignored] + either(.protocolError)),
    ])
    func `5.3.1: a stream that depends on itself is ignored or a protocol error`(
        case one: ConformanceCase
    ) throws {
        // RFC 9113 removed the scheme of RFC 7540, which had called this a stream error.
        try one.run()
    }

    @Test(arguments: [
        ConformanceCase("PRIORITY_UPDATE", [.priorityUpdate(1, "u=1, i"), getFrame()], [.ignored]),
        ConformanceCase(
            "PRIORITY_UPDATE of a stream to come", [.priorityUpdate(7, "u=0")], [.ignored]),
        ConformanceCase(
            "PRIORITY_UPDATE with an unreadable value", [.priorityUpdate(1, "\u{1}=")], [.ignored]),
    ])
    func `RFC 9218: a priority signal is used or ignored`(case one: ConformanceCase) throws {
        try one.run()
    }

    @Test func `5.4.1: a connection error contains the last answered stream`() throws {
        let session = try HTTP2Session()
        session.client.get(1)
        session.client.get(3)
        #expect(session.client.response(1).isWhole && session.client.response(3).isWhole)
        session.client.write(.data(0, []))
        session.expect([.connection(.protocolError)])
        #expect(session.client.goAway?.lastStream == 3)
    }

    @Test func `5.4.2: a stream error does not affect other streams`() throws {
        let session = try HTTP2Session(), client = session.client
        client.write(postFrame(1))
        client.write(.headers(3, HeaderBlock.literal([(":method", "GET")])))
        session.expect([.stream(.protocolError)], on: 3)
        client.write(.data(1, Array("content".utf8), endStream: true))
        #expect(client.response(1).text == "content")
    }

    @Test func `5.5: unknown frames are ignored in every state of a stream`() throws {
        let session = try HTTP2Session(), client = session.client
        let unknown = Frame(type: 0xF0, flags: 0x5, stream: 1, payload: pattern(100))
        client.write(unknown, postFrame(), unknown, .data(1, [1], endStream: true), unknown)
        #expect(client.response(1).body == [1])
        client.write(unknown)
        #expect(client.roundTrip() && client.goAway == nil)
    }

    @Test func `7: unknown error codes have no special effect`() throws {
        let session = try HTTP2Session.withoutWindow(), client = session.client
        client.write(getFrame(), .reset(1, ErrorCode(rawValue: 0xFF)))
        #expect(client.roundTrip())
        client.writeSettings([(Frame.Setting.initialWindowSize, 100)])
        client.write(getFrame(3), .goAway(last: 0, 0xFF))
        #expect(client.response(3).text == "/")
    }
}
