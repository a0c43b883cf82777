import HTTP
@testable import HTTPServer
import Testing

/// Parsing requests from bytes, wherever they are split.
struct RequestReaderTests {
    private static let stream = """
        GET /a HTTP/1.1\r\nHost: t\r\n\r\n\
        POST /b HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\n\r\nhello\
        PUT /c HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n3;x\r\ncde\r\n0\r\n\r\n\
        \r\nGET /d HTTP/1.1\r\nHost: t\r\n\r\n
        """

    private func reader() -> RequestReader {
        RequestReader(limits: RequestLimits(), bodyBytes: 1000, discardBytes: 1000)
    }

    /// The targets with their content, or without where it is discarded.
    private func requests(
        _ stream: [UInt8], cutEvery size: Int, limit: Int = .max, discards: Bool = false
    ) -> [String] {
        var reader = reader()
        var found: [String] = []
        for start in stride(from: 0, to: stream.count, by: size) {
            let piece = Array(stream[start..<min(start + size, stream.count)])
            let collects = reader.hasOpenContent && !discards
            if collects { reader.add(piece.span) }
            var outcome: RequestReader.Outcome? = collects ? nil : reader.take(piece.span)
            reading: while true {
                switch outcome {
                case nil:
                    do throws(RequestError) {
                        guard try take(&reader, limit, into: &found) else { break reading }
                    } catch {
                        return found + ["failed \(error.status.rawValue)"]
                    }
                case .needsMore: break reading
                case .request(let head): found.append("\(head.target) ")
                case .failed(let error): return found + ["failed \(error.status.rawValue)"]
                }
                outcome = reader.hasOpenContent && !discards ? nil : reader.next()
            }
        }
        return found
    }

    /// Reads content; false if more is needed.
    private func take(
        _ reader: inout RequestReader, _ limit: Int, into found: inout [String]
    ) throws(RequestError) -> Bool {
        while true {
            switch try reader.content(limit: limit) {
            case .bytes(let bytes):
                #expect(bytes.count <= limit)
                found[found.count - 1] += String(decoding: bytes, as: UTF8.self)
            case .needsMore: return false
            case .end: return true
            }
        }
    }

    @Test(arguments: [1, 2, 3, 5, 7, 16, 40, 64, 1000])
    func `requests are parsed alike wherever the bytes are split`(size: Int) {
        let found = requests(Array(Self.stream.utf8), cutEvery: size)
        #expect(found == ["/a ", "/b hello", "/c abcde", "/d "])
        for limit in [1, 2, 4] {
            #expect(requests(Array(Self.stream.utf8), cutEvery: size, limit: limit) == found)
        }
    }

    @Test(arguments: [1, 2, 3, 5, 7, 16, 40, 64, 1000])
    func `unwanted content is skipped wherever the bytes are split`(size: Int) {
        let found = requests(Array(Self.stream.utf8), cutEvery: size, discards: true)
        #expect(found == ["/a ", "/b ", "/c ", "/d "])
    }

    @Test(arguments: [1, 8, 1000])
    func `a chunked body over the limit fails with 413`(size: Int) {
        let chunk = "190\r\n" + String(repeating: "x", count: 400) + "\r\n"
        let text = "PUT / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n"
        let found = requests(Array((text + chunk + chunk + chunk).utf8), cutEvery: size)
        #expect(found.last == "failed 413")
    }

    @Test func `a client that sends its content immediately gets no 100`() {
        let head = "PUT /x HTTP/1.1\r\nHost: t\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n"
        let bytes = Array((head + "body").utf8)
        var waiting = reader()
        _ = waiting.take(bytes.span.extracting(0..<head.utf8.count))
        #expect(waiting.mustSendContinue)
        waiting.noteContinueSent()
        #expect(!waiting.mustSendContinue && waiting.hasOpenContent)
        var sending = reader()
        _ = sending.take(bytes.span)
        #expect(!sending.mustSendContinue && sending.hasOpenContent)
    }

    @Test func `no bytes are held between requests`() {
        var reader = reader()
        let bytes = Array("GET / HTTP/1.1\r\nHost: t\r\n\r\n".utf8)
        _ = reader.take(bytes.span)
        #expect(reader.heldCount == 0)
        #expect(reader.place == .betweenRequests)
        _ = reader.take(bytes.span.extracting(0..<5))
        #expect(reader.heldCount == 5)
        #expect(reader.place == .head)
    }

    @Test func `an empty line after a body does not begin a request`() {
        var reader = reader()
        let body = Array("POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 3\r\n\r\nabc\r\n".utf8)
        _ = reader.take(body.span)
        guard case .needsMore = reader.next() else {
            Issue.record("the empty line is taken for a request")
            return
        }
        #expect(reader.place == .betweenRequests)
        _ = reader.take(body.span.extracting(0..<1))
        #expect(reader.place == .head)
        guard case .request(let head) = reader.take(body.span.extracting(1...)) else {
            Issue.record("the request after the empty line is not read")
            return
        }
        #expect(head.target == "/")
    }
}
