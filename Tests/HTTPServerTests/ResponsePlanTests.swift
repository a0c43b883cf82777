import HTTP
@testable import HTTPServer
import Testing

/// Deciding the framing without a socket.
struct ResponsePlanTests {
    typealias AskedFraming = ResponsePlan.AskedFraming

    private func fields(_ plan: ResponsePlan, _ head: ResponseHead) -> String {
        var bytes: [UInt8] = []
        try? plan.append(head, dateLine: Array("Date: now\r\n".utf8), to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }

    @Test(arguments: [
        (HTTPVersion.http11, ResponsePlan.Content.none, ResponsePlan.Framing.length(0), false),
        (.http11, .length(7), .length(7), false),
        (.http11, .unknown, .chunked, false),
        (.http10, .length(7), .length(7), false),
        (.http10, .unknown, .untilClose, true),
    ])
    func `framing follows from version and length`(
        version: HTTPVersion, content: ResponsePlan.Content, framing: ResponsePlan.Framing,
        closes: Bool
    ) {
        let asked = AskedFraming(version: version, keepAlive: true)
        let plan = ResponsePlan(asked, status: .ok, content: content, mustClose: false)
        #expect(plan.framing == framing)
        #expect(plan.closes == closes)
    }

    @Test func `a drain closes connections that the client would keep`() {
        let asked = AskedFraming(keepAlive: true)
        let plan = ResponsePlan(asked, status: .ok, content: .none, mustClose: true)
        #expect(plan.closes)
        #expect(fields(plan, ResponseHead(status: .ok)).contains("Connection: close\r\n"))
    }

    @Test func `a head is written as expected`() {
        let asked = AskedFraming(version: .http10, keepAlive: true)
        let plan = ResponsePlan(asked, status: .ok, content: .length(3), mustClose: false)
        var head = ResponseHead(status: .ok, version: .http10)
        head.fields.append("ETag", "\"x\"")
        #expect(
            fields(plan, head) == """
                HTTP/1.1 200 OK\r\nETag: "x"\r\nDate: now\r\nContent-Length: 3\r\n\
                Connection: keep-alive\r\n\r\n
                """)
    }

    @Test(arguments: [HTTPStatus.noContent, .notModified])
    func `a status without content has no framing fields`(status: HTTPStatus) {
        let asked = AskedFraming(keepAlive: true)
        let plan = ResponsePlan(asked, status: status, content: .unknown, mustClose: false)
        #expect(plan.framing == .none)
        let text = fields(plan, ResponseHead(status: status))
        #expect(!text.contains("Transfer-Encoding"))
        #expect(!text.contains("Content-Length"))
    }

    @Test func `a length known to the handler is written if no content is sent`() {
        let asked = AskedFraming(isHead: true, keepAlive: true)
        let plan = ResponsePlan(asked, status: .ok, content: .none, mustClose: false)
        var head = ResponseHead(status: .ok)
        head.fields.append(.contentLength, "12345")
        #expect(fields(plan, head).contains("Content-Length: 12345\r\n"))
    }

    @Test func `an invalid head leaves the output unchanged`() {
        let plan = ResponsePlan(AskedFraming(), status: .ok, content: .none, mustClose: false)
        var head = ResponseHead(status: .ok)
        head.fields.append("A", "b\r\nC: d")
        var bytes: [UInt8] = [1, 2]
        #expect(throws: ResponseHeadError.self) {
            try plan.append(head, dateLine: [], to: &bytes)
        }
        #expect(bytes == [1, 2])
    }
}
