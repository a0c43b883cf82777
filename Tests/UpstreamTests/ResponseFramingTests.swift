import HTTP
import Synchronization
import Testing
@testable import Upstream

/// Response heads that two parsers could read differently have one reading, or none.
@Suite struct ResponseFramingTests {
    private func parse(_ lines: [String]) -> (HeadParser, HeadParser.Event) {
        var parser = HeadParser()
        var event = HeadParser.Event.more
        for line in lines + [""] where event == .more {
            event = parser.take(Array((line + "\r\n").utf8)[...])
        }
        return (parser, event)
    }

    @Test(arguments: [
        ["Content-Length: 5", "Content-Length: 6"], ["Content-Length: 5, 6"],
        ["Content-Length: +5"], ["Content-Length: -1"], ["Content-Length: 0x5"],
        ["Content-Length: 5 5"], ["Content-Length: 99999999999999999999"], ["Content-Length: "],
        ["Content-Length : 5"], ["Content-Length:", " 5"], ["Transfer-Encoding : chunked"],
        ["Transfer-Encoding:", "\tchunked"], ["Transfer-Encoding: chunked, chunked"],
        ["Transfer-Encoding: chunked, gzip"], ["Transfer-Encoding: "],
    ])
    func `an ambiguous length is rejected`(lines: [String]) {
        #expect(parse(["HTTP/1.1 200 OK"] + lines).1 == .malformed)
    }

    @Test func `HTTP/1.0 has no transfer coding`() {
        #expect(parse(["HTTP/1.0 200 OK", "Transfer-Encoding: chunked"]).1 == .malformed)
    }

    @Test(arguments: [["Content-Length: 5", "Content-Length: 5"], ["Content-Length: 5, 5"]])
    func `equal lengths are merged`(lines: [String]) {
        let (parser, event) = parse(["HTTP/1.1 200 OK"] + lines)
        #expect(event == .complete)
        #expect(parser.fields.all(.contentLength) == ["5"])
    }

    /// Also on connections that replace one which was given up for that.
    @Test func `unrequested bytes of an origin do not answer the next request`() throws {
        let read = Atomic(0)
        let spoken = Atomic(0)
        let origin = try TestOrigin { exchange in
            exchange.respond(body: Array("good".utf8))
            if exchange.number < 3 {
                comesTrue { read.load(ordering: .acquiring) > exchange.number }
                exchange.send("HTTP/1.1 408 X\r\nContent-Length: 4\r\n\r\nevil")
                spoken.add(1, ordering: .releasing)
            }
            return .keep
        }
        let harness = try Harness()
        for number in 0..<6 {
            let record = try harness.fetch(origin.url())
            #expect(record.text == "good" && record.status == 200)
            read.add(1, ordering: .releasing)
            if number < 3 { #expect(comesTrue { spoken.load(ordering: .acquiring) > number }) }
        }
        #expect(origin.connections == 4)
        harness.stop()
        origin.stop()
    }

    @Test func `the status line of a station is read as one of HTTP/1.0, and only as the first`() {
        let (station, event) = parse(["ICY 200 OK", "icy-name:Radio", "content-type:audio/mpeg"])
        #expect(event == .complete && station.status == .ok && station.version == .http10)
        #expect(station.fields.first("icy-name") == "Radio")
        let (other, _) = parse(["HTTP/1.1 404 X", "Content-Length: 3", "ICY 200 OK"])
        #expect(other.status == .notFound && other.fields.contains(.contentLength))
    }

    @Test func `a stream of a station is received`() throws {
        let origin = try TestOrigin { exchange in
            exchange.send("ICY 200 OK\r\nContent-Type: audio/mpeg\r\n\r\nsound")
            return .close
        }
        let harness = try Harness()
        let record = try harness.fetch(origin.url())
        #expect(record.status == 200 && record.text == "sound")
        harness.stop()
        origin.stop()
    }

    @Test func `a length beside a transfer coding is dropped`() {
        let (parser, event) = parse([
            "HTTP/1.1 200 OK", "Content-Length: 5", "Transfer-Encoding: Chunked",
        ])
        #expect(event == .complete && parser.isChunked)
        #expect(!parser.fields.contains(.contentLength))
    }

    @Test func `a folded field is joined into one line`() {
        let (parser, _) = parse(["HTTP/1.1 200 OK", "X: a", " \t b", "\tc", "Y: d"])
        #expect(parser.fields.first("X") == "a b c")
        #expect(parser.fields.first("Y") == "d")
    }

    @Test func `blanks before a colon are removed`() {
        let (parser, event) = parse(["HTTP/1.1 200 OK", "ETag \t: \"a\""])
        #expect(event == .complete)
        #expect(parser.fields.first(.etag) == "\"a\"")
    }

    @Test(arguments: ["no colon", ": no name", "a b: c", "X: a\u{0}b", "X: a\rb"])
    func `a line that is not a field is dropped`(line: String) {
        let (parser, event) = parse(["HTTP/1.1 200 OK", line, "Y: d"])
        #expect(event == .complete)
        #expect(parser.fields.count == 1 && parser.fields.first("Y") == "d")
    }
}
