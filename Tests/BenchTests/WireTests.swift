import Testing

@testable import Bench

/// How the load generator parses responses, and how configurations are filled in.
@Suite struct WireTests {
    private func head(_ text: String) -> AnswerHead? {
        Array(text.utf8).withUnsafeBytes { AnswerHead($0) }
    }

    @Test(
        arguments: [
            ("HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nbody", 200, 12, 39),
            ("HTTP/1.0 206 Partial\r\nX: 1\r\ncontent-length:7\r\n\r\n", 206, 7, 48),
            ("HTTP/1.1 304 Not Modified\n\n", 304, nil, 27),
            ("HTTP/1.1 200 OK\r\nContent-Length-X: 5\r\n\r\n", 200, nil, 40),
        ] as [(String, Int, Int?, Int)])
    func `a head is parsed into status, length and size`(
        text: String, status: Int, length: Int?, count: Int
    ) {
        let found = head(text)
        #expect(found?.status == status)
        #expect(found?.length == length)
        #expect(found?.count == count)
    }

    @Test func `an incomplete head is not a head yet`() {
        let whole = Array("HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n".utf8)
        for count in whole.indices {
            let part = Array(whole[..<count])
            #expect(part.withUnsafeBytes { AnswerHead($0) } == nil)
        }
    }

    @Test func `chunks are counted however they are split`() {
        let bytes = Array("5;x=y\r\nhello\r\nA\r\n0123456789\r\n0\r\n\r\n".utf8)
        for size in 1...bytes.count {
            var reader = ChunkReader()
            var count = 0
            for start in stride(from: 0, to: bytes.count, by: size) {
                count += reader.take(bytes[start..<min(bytes.count, start + size)])
            }
            #expect(count == 15, "in pieces of \(size)")
            #expect(reader.isOver)
        }
    }

    @Test func `placeholders between @ are replaced and others left unchanged`() {
        let text = PeerFiles.fill("a @port@ @other@ b@port@", ["port": "8080"])
        #expect(text == "a 8080 @other@ b8080")
    }
}
