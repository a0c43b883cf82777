// The cases of RFC 9113, section by section, as far as a client can see them: sections 3 and 4.
import Testing

@Suite(.timeLimit(.minutes(5)))
struct HTTP2ConformanceTests {}

// MARK: 3. Starting HTTP/2

extension HTTP2ConformanceTests {
    @Test func `3.4: the server's first frame is SETTINGS, and it acknowledges the client's`()
        throws
    {
        let session = try HTTP2Session()
        let first = try #require(session.client.received.first)
        #expect(first.type == Frame.Kind.settings && !first.has(Frame.Flag.acknowledgement))
        #expect(first.stream == 0 && first.payload.count % 6 == 0)
        #expect(session.client.received.contains(Frame.settingsAcknowledgement))
    }

    @Test func `3.4: a request may follow the preface before any answer to it`() throws {
        let server = try TestServer(HTTP2Session.echo)
        let client = server.frameClient()
        client.write(
            FrameClient.preface + Frame.settings().bytes() + getFrame().bytes())
        #expect(client.response(1).text == "/")
    }

    @Test func `3.4: a preface that arrives byte by byte is accepted`() throws {
        let server = try TestServer(HTTP2Session.echo)
        let client = server.frameClient()
        let bytes = FrameClient.preface + Frame.settings().bytes() + getFrame().bytes()
        for byte in bytes { client.write([byte]) }
        #expect(client.response(1).text == "/")
    }

    @Test(arguments: ["PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\rX"])
    func `3.4: a wrong preface ends the connection`(preface: String) throws {
        let server = try TestServer(HTTP2Session.echo)
        let client = server.frameClient()
        client.write(Array(preface.utf8) + Frame.settings().bytes())
        #expect(client.readToEnd())
    }

    @Test func `3.4: a first frame other than SETTINGS is a connection error`() throws {
        let server = try TestServer(HTTP2Session.echo)
        let client = server.frameClient()
        client.write(FrameClient.preface + Frame.ping().bytes())
        #expect(client.readToEnd())
        #expect(client.goAway?.code == .protocolError)
    }
}

// MARK: 4. HTTP frames

extension HTTP2ConformanceTests {
    @Test func `4.1: unknown types, undefined flags and the reserved bit are ignored`() throws {
        let session = try HTTP2Session(), client = session.client
        client.write(
            Frame(type: 0x16, flags: 0xFF, payload: [1, 2, 3]),
            Frame(type: 0x16, stream: 0x8000_0007),
            Frame(type: Frame.Kind.ping, flags: 0x16, stream: 0x8000_0000, payload: pattern(8)))
        client.read { $0.received.last?.type == Frame.Kind.ping }
        let answer = try #require(client.received.last)
        #expect(answer.has(Frame.Flag.acknowledgement) && answer.payload == pattern(8))
        var request = getFrame()
        request.stream |= 0x8000_0000
        request.flags |= 0x42
        client.write(request)
        #expect(client.response(1).text == "/")
    }

    @Test func `4.2: DATA as long as the server allows is accepted`() throws {
        let session = try HTTP2Session(), client = session.client
        let bytes = pattern(min(session.frameLimit, 65535))
        client.write(postFrame(), .data(1, bytes, endStream: true))
        #expect(client.response(1).body == bytes)
    }

    @Test(arguments: [Frame.Kind.data, Frame.Kind.headers, Frame.Kind.settings, 0x16])
    func `4.2: a frame longer than the server allows is an error`(type: UInt8) throws {
        let session = try HTTP2Session(), limit = session.frameLimit
        if type == Frame.Kind.data { session.client.write(postFrame()) }
        let stream: UInt32 = type == Frame.Kind.settings ? 0 : 1
        session.client.write(
            Frame(
                type: type, flags: Frame.Flag.endHeaders, stream: stream,
                payload: [UInt8](repeating: 0, count: limit + 6 - limit % 6)))
        session.expect(
            type == Frame.Kind.data
                ? either(.frameSizeError) : [.connection(.frameSizeError)])
    }

    @Test(arguments: [
        ConformanceCase(
            "a block that cannot be decoded", [.headers(1, [0x40, 0x7F, 0xFF])],
            [.connection(.compressionError)]),
        ConformanceCase(
            "PRIORITY between the frames of a block",
            [.headers(1, getBlock, endHeaders: false), .priority(1, dependsOn: 0)],
            [.connection(.protocolError)]),
        ConformanceCase(
            "an unknown frame between the frames of a block",
            [.headers(1, getBlock, endHeaders: false), Frame(type: 0x16, stream: 1)],
            [.connection(.protocolError)]),
        ConformanceCase(
            "HEADERS of another stream between the frames of a block",
            [.headers(1, getBlock, endHeaders: false), getFrame(3)],
            [.connection(.protocolError)]),
        ConformanceCase(
            "CONTINUATION of another stream",
            [.headers(1, getBlock, endHeaders: false), .continuation(3, [])],
            [.connection(.protocolError)]),
        ConformanceCase(
            "DATA between the frames of a block",
            [.headers(1, postBlock, endStream: false, endHeaders: false), .data(1, [1])],
            [.connection(.protocolError)]),
    ])
    func `4.3: a broken or interrupted header block is a connection error`(
        case one: ConformanceCase
    ) throws {
        try one.run()
    }

    @Test func `4.3: a header block may be split anywhere, also into empty pieces`() throws {
        let session = try HTTP2Session(), client = session.client
        let middle = getBlock.count / 2
        client.write(
            .headers(1, [], endHeaders: false),
            .continuation(1, Array(getBlock[..<1]), endHeaders: false),
            .continuation(1, Array(getBlock[1..<middle]), endHeaders: false),
            .continuation(1, [], endHeaders: false), .continuation(1, Array(getBlock[middle...])))
        #expect(client.response(1).text == "/")
    }
}

// MARK: RFC 7541: HPACK

extension HTTP2ConformanceTests {
    @Test(arguments: [
        ConformanceCase(
            "2.3.3: index 0", [.headers(1, getBlock + [0x80])], [.connection(.compressionError)]),
        ConformanceCase(
            "2.3.3: an index beyond both tables",
            [.headers(1, getBlock + HeaderBlock.indexed(70))], [.connection(.compressionError)]),
        ConformanceCase(
            "2.3.3: a name's index beyond both tables",
            [.headers(1, getBlock + [0x0F, 0x37] + HeaderBlock.string("v"))],
            [.connection(.compressionError)]),
        ConformanceCase(
            "4.2: a table size after a field",
            [.headers(1, getBlock + HeaderBlock.tableSize(0))], [.connection(.compressionError)]),
        ConformanceCase(
            "5.1: an integer without an end",
            [.headers(1, getBlock + [0xFF] + [UInt8](repeating: 0xFF, count: 20))],
            [.connection(.compressionError)]),
        ConformanceCase(
            "5.2: a string longer than its block",
            [.headers(1, getBlock + [0x00, 0x05, 0x61])], [.connection(.compressionError)]),
        // `a` in Huffman coding is the five bits 00011.
        ConformanceCase(
            "5.2: padding of eight bits",
            [.headers(1, getBlock + [0x00, 0x82, 0x1F, 0xFF, 0x01, 0x61])],
            [.connection(.compressionError)]),
        ConformanceCase(
            "5.2: padding of zeros",
            [.headers(1, getBlock + [0x00, 0x81, 0x18, 0x01, 0x61])],
            [.connection(.compressionError)]),
        ConformanceCase(
            "5.2: the end-of-string symbol in a string",
            [.headers(1, getBlock + [0x00, 0x84, 0xFF, 0xFF, 0xFF, 0xFF, 0x01, 0x61])],
            [.connection(.compressionError)]),
    ])
    func `HPACK: a block that cannot be decoded is a connection error`(
        case one: ConformanceCase
    ) throws {
        try one.run()
    }

    @Test func `HPACK 6.3: a table size over the server's setting is a connection error`() throws {
        let session = try HTTP2Session()
        let most = session.client.serverSettings[Frame.Setting.headerTableSize] ?? 4096
        session.client.write(.headers(1, HeaderBlock.tableSize(Int(most) + 1) + getBlock))
        session.expect([.connection(.compressionError)])
    }

    @Test func `HPACK 2.3.2: fields of one request can be referenced by the next`() throws {
        let session = try HTTP2Session(), client = session.client
        client.write(
            .headers(
                1,
                HeaderBlock.literal(Array(FrameClient.fields().dropLast()))
                    + HeaderBlock.indexing(":authority", "test")))
        #expect(client.response(1).status == 200)
        client.write(
            .headers(
                3,
                HeaderBlock.literal(Array(FrameClient.fields(path: "/next").dropLast()))
                    + HeaderBlock.indexed(62)))
        #expect(client.response(3).text == "/next")
    }

    @Test func `HPACK 4.2: a smaller table size evicts entries, which are then out of range`()
        throws
    {
        let session = try HTTP2Session(), client = session.client
        client.write(.headers(1, getBlock + HeaderBlock.indexing("x-kept", "v")))
        #expect(client.response(1).status == 200)
        client.write(
            .headers(
                3,
                HeaderBlock.tableSize(0) + HeaderBlock.tableSize(4096) + getBlock
                    + HeaderBlock.indexed(62)))
        session.expect([.connection(.compressionError)], on: 3)
    }

    @Test func `HPACK 4.2: a small table of the client's decoder is respected`() throws {
        let session = try HTTP2Session([(Frame.Setting.headerTableSize, 0)])
        for stream: UInt32 in [1, 3, 5] {
            session.client.get(stream, "/\(stream)")
            #expect(session.client.response(stream).text == "/\(stream)")
        }
        #expect(session.client.faults.isEmpty)
    }
}
