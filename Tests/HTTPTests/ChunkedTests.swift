import FuzzSupport
import HTTP
import Testing

struct `Chunked bodies` {
    enum Outcome: Equatable {
        case whole(content: [UInt8], consumed: Int)
        case partial(content: [UInt8])
        case refused(UInt16)
    }

    /// Decodes bytes that arrive in pieces that end at `cuts`.
    static func decode(
        _ bytes: [UInt8], cuts: [Int] = [], limits: RequestLimits = RequestLimits()
    ) -> Outcome {
        var decoder = ChunkedDecoder(limits: limits)
        var content: [UInt8] = []
        var position = 0
        for end in cuts + [bytes.count] {
            while position < end {
                let input = bytes.span.extracting(position..<end)
                do throws(RequestError) {
                    switch try decoder.decode(input) {
                    case .needsMore(let consumed):
                        position += consumed
                    case .content(let range):
                        content +=
                            bytes[(position + range.lowerBound)..<(position + range.upperBound)]
                        position += range.upperBound
                    case .end(let consumed):
                        return .whole(content: content, consumed: position + consumed)
                    }
                } catch {
                    return .refused(error.status.rawValue)
                }
            }
        }
        return .partial(content: content)
    }

    static func decode(_ text: String, limits: RequestLimits = RequestLimits()) -> Outcome {
        decode(Array(text.utf8), limits: limits)
    }

    @Test(arguments: [
        ("0\r\n\r\n", ""), ("3\r\nabc\r\n0\r\n\r\n", "abc"), ("003\r\nabc\r\n00\r\n\r\n", "abc"),
        ("A\r\n0123456789\r\n1\r\nx\r\n0\r\n\r\n", "0123456789x"),
        ("a;x=y;z=\"q\"\r\n0123456789\r\n0;last\r\n\r\n", "0123456789"),
        ("3 ;x\r\nabc\r\n0\r\n\r\n", "abc"), ("3\r\nabc\r\n0\r\nX: y\r\nZ:\r\n\r\n", "abc"),
        ("2\r\n\r\n\r\n0\r\n\r\n", "\r\n"),
    ])
    func `a whole body is decoded to the same content wherever it is split`(
        text: String, content: String
    ) {
        let bytes = Array(text.utf8)
        let expected = Outcome.whole(content: Array(content.utf8), consumed: bytes.count)
        #expect(Self.decode(bytes + Array("GET".utf8)) == expected)
        for cut in 0...bytes.count {
            #expect(Self.decode(bytes, cuts: [cut]) == expected)
        }
        #expect(Self.decode(bytes, cuts: Array(0...bytes.count)) == expected)
    }

    @Test(arguments: [
        "\r\n", "g\r\n", "-1\r\n", "+1\r\n", "0x1\r\n", " 1\r\n", "1\n", "1\ra", "1 \r\n",
        "1 a\r\n",
        "1\r\nab", "1\r\na\n", "1\r\na\ra", "1;\u{0}\r\n", "1;\n", "1;a\rb", ";a\r\n",
        "0\r\n\n", "0\r\n\ra", "0\r\n X: y\r\n", "0\r\n: y\r\n", "0\r\nX y: z\r\n", "0\r\nX\r\n",
        "0\r\nX: y\n", "0\r\nX: y\rz", "0\r\nX: \u{0}\r\n", "1\r\na0\r\n\r\n", "1,1\r\n", "1_0\r\n",
    ])
    func `malformed framing gives 400`(text: String) {
        #expect(Self.decode(text) == .refused(400))
    }

    @Test(arguments: ["8000000000000000", "ffffffffffffffff", "10000000000000000"])
    func `a chunk size too large to represent gives 413`(size: String) {
        #expect(Self.decode(size + "\r\n") == .refused(413))
    }

    @Test func `the largest chunk size that can be represented is accepted`() {
        #expect(Self.decode("7fffffffffffffff\r\nab") == .partial(content: Array("ab".utf8)))
    }

    @Test func `extensions and leading zeros of the whole body share one limit`() {
        let limits = RequestLimits(chunkExtensions: 8)
        let chunk = "1;abc\r\nx\r\n"
        #expect(Self.decode(chunk + chunk, limits: limits) == .partial(content: Array("xx".utf8)))
        #expect(Self.decode(chunk + chunk + chunk, limits: limits) == .refused(400))
        #expect(Self.decode("0000000000001\r\n", limits: limits) == .refused(400))
    }

    @Test func `trailers are limited`() {
        let limits = RequestLimits(trailers: 10)
        #expect(
            Self.decode("0\r\nX: 4567\r\n\r\n", limits: limits)
                == .whole(content: [], consumed: 14))
        #expect(Self.decode("0\r\nX: 45678901\r\n\r\n", limits: limits) == .refused(431))
    }

    @Test func `random bytes never trap, wherever they are split`() {
        var random = SeededNumbers(seed: 3)
        let alphabet = Array("0123aF\r\n\r\n\r\n;:x ".utf8)
        for _ in 0..<3000 {
            let count = Int.random(in: 0...40, using: &random)
            let bytes = (0..<count).map { _ in alphabet.randomElement(using: &random) ?? 0 }
            let cut = Int.random(in: 0...count, using: &random)
            #expect(Self.decode(bytes, cuts: [cut]) == Self.decode(bytes))
        }
    }

    @Test func `the decoder reads what the encoder writes`() {
        var random = SeededNumbers(seed: 4)
        var wire: [UInt8] = []
        var content: [UInt8] = []
        for size in [1, 9, 10, 15, 16, 17, 255, 256, 4096, 65537] {
            let chunk = (0..<size).map { _ in UInt8.random(in: 0...255, using: &random) }
            let before = wire.count
            ChunkedEncoding.appendHeader(size: size, to: &wire)
            wire += chunk
            ChunkedEncoding.appendTrailer(to: &wire)
            #expect(wire.count - before - size <= ChunkedEncoding.maximumOverhead)
            content += chunk
        }
        ChunkedEncoding.appendLastChunk(to: &wire)
        #expect(Self.decode(wire) == .whole(content: content, consumed: wire.count))
    }

    @Test func `a size line is hexadecimal without leading zeros`() {
        var bytes: [UInt8] = []
        ChunkedEncoding.appendHeader(size: 0x1AF0, to: &bytes)
        #expect(bytes == Array("1af0\r\n".utf8))
        bytes = []
        ChunkedEncoding.appendHeader(size: Int.max, to: &bytes)
        #expect(bytes == Array("7fffffffffffffff\r\n".utf8))
    }

    @Test func `a decoder counts its content and recognizes the end`() throws {
        var decoder = ChunkedDecoder()
        let bytes = Array("2\r\nab\r\n0\r\n\r\n".utf8)
        #expect(try decoder.decode(bytes.span) == .content(3..<5))
        #expect(decoder.contentLength == 2 && !decoder.isAtEnd)
        #expect(try decoder.decode(bytes.span.extracting(5..<bytes.count)) == .end(consumed: 7))
        #expect(decoder.isAtEnd)
        #expect(try decoder.decode(bytes.span) == .end(consumed: 0))
    }
}
