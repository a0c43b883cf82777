// Heads that are repeated byte for byte are recognized without parsing, and never confused with
// others.
import HTTP
import Reactor
import Testing

@testable import HTTPServer

@Suite(.timeLimit(.minutes(5)))
struct RepeatedHeadsTests {
    private func bytes(_ target: String) -> [UInt8] {
        Array("GET \(target) HTTP/1.1\r\nHost: test\r\n\r\n".utf8)
    }

    private func hash(of bytes: [UInt8]) -> UInt64 {
        RepeatedHeads.hash(bytes.span, over: .http1) ?? 0
    }

    private func isKnown(_ bytes: [UInt8], _ hash: UInt64, _ heads: inout RepeatedHeads) -> Bool {
        heads.find(bytes.span, hash: hash) != nil
    }

    /// Notes a head as a connection does, and returns whether it was known.
    private func sees(_ target: String, _ heads: inout RepeatedHeads) -> Bool {
        let input = bytes(target)
        let hash = hash(of: input)
        if let known = heads.find(input.span, hash: hash) {
            #expect(known.head.target == target)
            return true
        }
        _ = heads.note(RequestHead(method: .get, target: target), input.span, hash: hash)
        return false
    }

    @Test func `a head is recognized from its third occurrence on`() {
        var heads = RepeatedHeads()
        #expect((0..<4).map { _ in sees("/a", &heads) } == [false, false, true, true])
    }

    @Test func `a known head is not found by other bytes, whatever their hash`() {
        var heads = RepeatedHeads()
        for _ in 0..<3 { _ = sees("/a", &heads) }
        let hash = hash(of: bytes("/a"))
        #expect(isKnown(bytes("/b"), hash, &heads) == false)
        #expect(isKnown(bytes("/ab"), hash, &heads) == false)
    }

    @Test func `heads that occur once do not displace repeated ones`() {
        var heads = RepeatedHeads()
        for _ in 0..<2 { for index in 0..<64 { _ = sees("/list\(index)", &heads) } }
        for index in 0..<10_000 {
            _ = sees("/segment\(index)", &heads)
            #expect(sees("/list\(index % 64)", &heads))
        }
    }

    @Test(arguments: ["", "short", String(repeating: "x", count: 3_000)])
    func `too short and too long heads are parsed each time`(text: String) {
        #expect(hash(of: Array(text.utf8)) == 0)
    }

    @Test func `the handler's note is returned with the same head, and only with it`() throws {
        let server = try TestServer { request, _, exchange in
            let found = exchange.repeated?.finding as? Finding
            if let repeated = exchange.repeated { repeated.finding = Finding(request.target) }
            exchange.respond(ok(), body: .bytes(Array((found?.text ?? "-").utf8)))
        }
        let client = server.client()
        var answers: [String] = []
        for _ in 0..<4 {
            for target in ["/one", "/two"] {
                client.get(target)
                answers.append(client.answer()?.text ?? "none")
            }
        }
        #expect(answers == ["-", "-", "-", "-", "/one", "/two", "/one", "/two"])
    }

    @Test func `two heads received together are two requests each time`() throws {
        let server = try TestServer(echoPath)
        let client = server.client()
        for _ in 0..<4 {
            client.write("GET /a HTTP/1.1\r\nHost: t\r\n\r\nGET /b HTTP/1.1\r\nHost: t\r\n\r\n")
            #expect(client.answer()?.text == "/a")
            #expect(client.answer()?.text == "/b")
        }
    }

    private final class Finding {
        let text: String
        init(_ text: String) { self.text = text }
    }
}
