/// Requests out of bytes, however they are cut.
import HTTP
@testable import HTTPServer
import Testing

struct RequestReaderTests {
    private static let stream = """
        GET /a HTTP/1.1\r\nHost: t\r\n\r\n\
        POST /b HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\n\r\nhello\
        PUT /c HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n3;x\r\ncde\r\n0\r\n\r\n\
        \r\nGET /d HTTP/1.1\r\nHost: t\r\n\r\n
        """

    private func requests(_ stream: [UInt8], cutEvery size: Int) -> [String] {
        var reader = RequestReader(limits: RequestLimits(), bodyBytes: 1000)
        var found: [String] = []
        for start in stride(from: 0, to: stream.count, by: size) {
            let piece = Array(stream[start..<min(start + size, stream.count)])
            var outcome = reader.take(piece.span)
            reading: while true {
                switch outcome {
                case .needsMore: break reading
                case .wantsContinue: found.append("continue")
                case .request(let head, let body):
                    found.append("\(head.target) \(String(decoding: body, as: UTF8.self))")
                case .failed(let error):
                    return found + ["failed \(error.status.rawValue)"]
                }
                outcome = reader.next()
            }
        }
        return found
    }

    @Test(arguments: [1, 2, 3, 5, 7, 16, 40, 64, 1000])
    func `the same requests come out however the bytes are cut`(size: Int) {
        let found = requests(Array(Self.stream.utf8), cutEvery: size)
        #expect(found == ["/a ", "/b hello", "/c abcde", "/d "])
    }

    @Test(arguments: [1, 8, 1000])
    func `a chunked body over the limit fails with 413`(size: Int) {
        let chunk = "190\r\n" + String(repeating: "x", count: 400) + "\r\n"
        let text = "PUT / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n"
        let found = requests(Array((text + chunk + chunk + chunk).utf8), cutEvery: size)
        #expect(found == ["failed 413"])
    }

    @Test func `the client is told to go on once, and only when it waits`() {
        let head = "PUT /x HTTP/1.1\r\nHost: t\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n"
        let bytes = Array((head + "body").utf8)
        #expect(requests(bytes, cutEvery: head.utf8.count) == ["continue", "/x body"])
        #expect(requests(bytes, cutEvery: 1000) == ["/x body"])
    }

    @Test func `nothing is kept between requests`() {
        var reader = RequestReader(limits: RequestLimits(), bodyBytes: 1000)
        let bytes = Array("GET / HTTP/1.1\r\nHost: t\r\n\r\n".utf8)
        _ = reader.take(bytes.span)
        #expect(reader.heldCount == 0)
        #expect(reader.place == .betweenRequests)
        _ = reader.take(bytes.span.extracting(0..<5))
        #expect(reader.heldCount == 5)
        #expect(reader.place == .head)
    }
}
