// The tests' own frames and header blocks, compared with the examples of the RFCs.
import Testing

struct FrameTests {
    @Test func `a frame is written with its length, type, flags and stream`() {
        let frame = Frame(type: 0x16, flags: 0x25, stream: 0x8000_0107, payload: [1, 2, 3])
        #expect(frame.bytes() == [0, 0, 3, 0x16, 0x25, 0x80, 0, 1, 7, 1, 2, 3])
        #expect(frame.bytes(length: 0x01_02_03).prefix(3) == [1, 2, 3])
        #expect(
            Frame.settings([(4, 0x0102_0304)]).bytes() == [
                0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 1, 2, 3, 4,
            ])
    }

    @Test func `padding and priority are removed, and padding that is too long is detected`() {
        let flags = Frame.Flag.padded | Frame.Flag.priority
        var frame = Frame(type: Frame.Kind.headers, flags: flags, stream: 1)
        frame.payload = [2, 0, 0, 0, 3, 15, 7, 8, 0, 0]
        #expect(frame.content.map(Array.init) == [7, 8])
        frame.payload = [5, 0, 0, 0, 3, 15, 7, 8, 0, 0]
        #expect(frame.content == nil)
        frame.payload = []
        #expect(frame.content == nil)
    }

    @Test func `integers are written as in RFC 7541, appendix C.1`() {
        #expect(HeaderBlock.integer(10, prefix: 5, pattern: 0) == [10])
        #expect(HeaderBlock.integer(1337, prefix: 5, pattern: 0) == [0x1F, 0x9A, 0x0A])
        #expect(HeaderBlock.integer(31, prefix: 5, pattern: 0x20) == [0x3F, 0])
    }

    @Test
    func `fields are decoded as they were encoded, later blocks by the table of earlier ones`() {
        let decoder = HeaderDecoder()
        let long = String(repeating: "v", count: 5000)
        let fields = FrameClient.fields() + [("x-long", long), ("x-empty", "")]
        #expect(
            decoder.decode(HeaderBlock.literal(fields))
                == fields.map { HeaderField(name: $0.0, value: $0.1) })
        let kept = HeaderField(name: "x-kept", value: "1")
        #expect(decoder.decode(HeaderBlock.indexing("x-kept", "1")) == [kept])
        #expect(
            decoder.decode(HeaderBlock.indexed(62) + HeaderBlock.indexed(2)) == [
                kept, HeaderField(name: ":method", value: "GET"),
            ])
        #expect(decoder.decode([]) == [])
        #expect(decoder.decode(HeaderBlock.indexed(70)) == nil)
    }

    @Test func `a block of RFC 7541, appendix C.4.1, with Huffman coding is decoded`() {
        let block: [UInt8] = [
            0x82, 0x86, 0x84, 0x41, 0x8C, 0xF1, 0xE3, 0xC2, 0xE5, 0xF2, 0x3A, 0x6B, 0xA0, 0xAB,
            0x90,
            0xF4, 0xFF,
        ]
        #expect(
            HeaderDecoder().decode(block) == [
                HeaderField(name: ":method", value: "GET"),
                HeaderField(name: ":scheme", value: "http"),
                HeaderField(name: ":path", value: "/"),
                HeaderField(name: ":authority", value: "www.example.com"),
            ])
    }
}
