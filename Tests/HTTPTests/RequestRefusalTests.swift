import HTTP
import Testing

/// Requests that a parser must reject, because another one could read them differently (RFC 9112
/// section 11.2).
struct `Refused requests` {
    static func get(_ lines: String) -> String {
        "GET / HTTP/1.1\r\nHost: a\r\n\(lines)\r\n\r\n"
    }

    @Test(arguments: [
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 5",
        "Content-Length: 5\r\nContent-Length: 6",
        "Content-Length: 5\r\nContent-Length: 5",
        "Content-Length: 5, 5", "Content-Length: 5,6", "Content-Length: +5",
        "Content-Length: -5", "Content-Length: 0x5", "Content-Length: 5 5", "Content-Length:",
        "Content-Length: 5a", "Content-Length: \"5\"", "Content-Length: 1_000",
        "Transfer-Encoding: chunked, chunked", "Transfer-Encoding: chunked, identity",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding:", "Transfer-Encoding: ,", "Transfer-Encoding: chunked;q=1",
        "Transfer-Encoding: \"chunked\"", "Transfer-Encoding: chunked x",
    ])
    func `framing that is ambiguous between readers gives 400`(lines: String) {
        #expect(parse(Self.get(lines)).status == 400)
    }

    @Test(arguments: [
        "Transfer-Encoding: gzip", "Transfer-Encoding: identity",
        "Transfer-Encoding: gzip, chunked", "Transfer-Encoding: xchunked",
        "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked",
    ])
    func `a transfer coding other than chunked gives 501`(lines: String) {
        #expect(parse(Self.get(lines)).status == 501)
    }

    @Test(arguments: [
        "Transfer-Encoding : chunked", "Transfer-Encoding\t: chunked",
        " Transfer-Encoding: chunked", "\tX: y", "X: a\r\n b", "X: a\r\n\tb",
        "X Y: a", ": a", "Xa", "X\u{0}: a", "X: a\u{0}b", "X: a\u{1}b", "X: a\u{7F}b",
        "X: a\u{B}b", "X: a\u{C}b", "X: a\rb", "X: a\nb", "X: a\nContent-Length: 5",
        "X(: a", "X,: a", "X/: a", "X@: a", "\"X\": a", "X[]: a", "X{}: a", "Xé: a",
    ])
    func `a malformed field line gives 400`(lines: String) {
        #expect(parse(Self.get(lines)).status == 400)
    }

    @Test(arguments: [
        "GET / HTTP/1.1\n", "\nGET / HTTP/1.1\r\n", "GET / HTTP/1.1\r\r\n", "GET  / HTTP/1.1\r\n",
        "GET /  HTTP/1.1\r\n", "GET / HTTP/1.1 \r\n", " GET / HTTP/1.1\r\n", "GET /\r\n",
        "GET\r\n", "GET \r\n", "GET / \r\n", "GET\t/ HTTP/1.1\r\n", "GET /\tHTTP/1.1\r\n",
        "GET / a HTTP/1.1\r\n", "GET / http/1.1\r\n", "GET / HTTP/1.10\r\n", "GET / HTTP/11\r\n",
        "GET / HTTP/1\r\n", "GET / HTTP/1.\r\n", "GET / HTTP/+1.1\r\n", "GET / HTTP /1.1\r\n",
        "G(T / HTTP/1.1\r\n", "GET /\u{0} HTTP/1.1\r\n", "GET a HTTP/1.1\r\n",
        "GET * HTTP/1.1\r\n", "GET ftp://a/ HTTP/1.1\r\n", "GET http:///a HTTP/1.1\r\n",
        "GET http://u@a/ HTTP/1.1\r\n", "GET http://a:b/ HTTP/1.1\r\n", "CONNECT /a HTTP/1.1\r\n",
        "GET http://a\\b/ HTTP/1.1\r\n", "\u{16}\u{3}\u{1}",
    ])
    func `a malformed request line gives 400`(line: String) {
        #expect(parse(line + "Host: a\r\n\r\n").status == 400)
    }

    @Test(arguments: ["0.9", "2.0", "3.0", "9.9"])
    func `another major version gives 505`(version: String) {
        #expect(parse("GET / HTTP/\(version)\r\nHost: a\r\n\r\n").status == 505)
    }

    @Test func `the preface of HTTP/2 gives 505`() {
        #expect(parse("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").status == 505)
    }

    @Test(arguments: [
        "GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nX: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nHOST: a\r\n\r\n",
        "GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", "GET / HTTP/1.1\r\nHost: u@a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a:8:0\r\n\r\n", "GET / HTTP/1.1\r\nHost: a:x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: [::1\r\n\r\n", "GET / HTTP/1.1\r\nHost: [::1]x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: :80\r\n\r\n", "GET / HTTP/1.1\r\nHost: a?b\r\n\r\n",
    ])
    func `a missing, repeated or malformed Host gives 400`(text: String) {
        #expect(parse(text).status == 400)
    }

    @Test(arguments: ["a", "a:80", "a.example:", "127.0.0.1:8080", "[::1]", "[fe80::1]:80", ""])
    func `a well-formed Host is accepted`(host: String) {
        #expect(parse("GET / HTTP/1.1\r\nHost: \(host)\r\n\r\n").head?.host == host)
    }

    @Test func `HTTP/1.0 requires no Host and has no transfer coding`() {
        #expect(parse("GET / HTTP/1.0\r\n\r\n").head?.host == nil)
        #expect(parse("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n").status == 400)
    }

    @Test func `a length too large to represent gives 413`() {
        #expect(parse(Self.get("Content-Length: 9223372036854775807")).status == 413)
        #expect(parse(Self.get("Content-Length: 9007199254740992")).status == 413)
        #expect(parse(Self.get("Content-Length: 99999999999999999999999")).status == 413)
        #expect(
            parse(Self.get("Content-Length: 9007199254740991")).head?.bodyFraming
                == .length(9_007_199_254_740_991))
    }

    @Test func `a request line over the limit gives 414 before it ends`() {
        let limits = RequestLimits(requestLine: 300)
        let line = "GET /" + String(repeating: "a", count: 300)
        #expect(parse(line, limits: limits).status == 414)
        let fits = "GET /" + String(repeating: "a", count: 286) + " HTTP/1.1"
        #expect(fits.utf8.count == 300)
        #expect(parse(fits + "\r\nHost: a\r\n\r\n", limits: limits).head != nil)
        #expect(parse(fits + "1\r\nHost: a\r\n\r\n", limits: limits).status == 414)
    }

    @Test func `a head over the limit gives 431 before it ends`() {
        let limits = RequestLimits(head: 600)
        let start = "GET / HTTP/1.1\r\nHost: a\r\nX: "
        let room = 600 - start.utf8.count - 4
        let fits = start + String(repeating: "b", count: room) + "\r\n\r\n"
        #expect(parse(fits, limits: limits).head != nil)
        let over = start + String(repeating: "b", count: room + 1) + "\r\n\r\n"
        #expect(parse(over, limits: limits).status == 431)
        #expect(parse(start + String(repeating: "b", count: 700), limits: limits).status == 431)
    }

    @Test func `more fields than allowed give 431`() {
        let hundred = "GET / HTTP/1.1\r\nHost: a\r\n" + String(repeating: "X: y\r\n", count: 99)
        #expect(parse(hundred + "\r\n").head?.fields.count == 100)
        #expect(parse(hundred + "X: y\r\n\r\n").status == 431)
    }

    @Test func `limits are clamped to their ranges`() {
        let low = RequestLimits(
            requestLine: -1, head: 0, fieldCount: 0, chunkExtensions: -1, trailers: Int.min)
        #expect([low.requestLine, low.head, low.fieldCount] == [256, 512, 1])
        #expect([low.chunkExtensions, low.trailers] == [0, 0])
        let high = RequestLimits(requestLine: Int.max, head: Int.max, fieldCount: Int.max)
        #expect([high.requestLine, high.head, high.fieldCount] == [1 << 20, 4 << 20, 10000])
    }

    @Test func `a refusal states the error and repeats nothing of the request`() {
        guard case .refused(let error) = parse(Self.get("X<script>: a")) else {
            Issue.record("accepted")
            return
        }
        #expect(error.reason == "A field name contains a forbidden character.")
        #expect(error.description == "400: \(error.reason)")
    }
}
