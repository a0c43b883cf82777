import Glibc
import HTTP
import Posix
import Synchronization
import Testing
import URISyntax
import Upstream

/// Request bodies that are streamed to the origin.
@Suite struct UploadTests {
    private func write(_ bytes: [UInt8], to pipe: BytePipe) {
        let room = Mutex(true)
        let gate = Gate()
        for start in stride(from: 0, to: bytes.count, by: 10_000) {
            let piece = bytes[start..<min(start + 10_000, bytes.count)]
            let hasRoom = piece.withUnsafeBytes { raw in pipe.write(raw) { gate.open() } }
            room.withLock { $0 = hasRoom }
            if !hasRoom { gate.wait() }
        }
        pipe.end(isWhole: true)
    }

    /// A counting gate: a test's thread waits until it is opened.
    private final class Gate: Sendable {
        private let count = Mutex(0)
        func open() { count.withLock { $0 += 1 } }
        func wait() {
            comesTrue {
                count.withLock { count in
                    guard count > 0 else { return false }
                    count -= 1
                    return true
                }
            }
        }
    }

    private func request(
        _ url: String, _ method: String, _ pipe: BytePipe, length: Int64?
    ) throws -> TransferRequest {
        var request = TransferRequest(url: try AbsoluteURL(url))
        request.method = HTTPMethod(method)
        request.upload = Upload(pipe: pipe, length: length)
        request.isTransparent = true
        request.usesFreshConnection = true
        return request
    }

    @Test(arguments: [1, 5000, 3_000_000])
    func `a body of known length reaches the origin whole, in pieces`(count: Int) throws {
        let sent = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        let origin = try TestOrigin {
            $0.respond(body: Array("\($0.method) \($0.body == sent)".utf8)); return .keep
        }
        let harness = try Harness()
        let pipe = BytePipe()
        let probe = harness.start(
            try request(origin.url(), "PUT", pipe, length: Int64(count)))
        write(sent, to: pipe)
        #expect(probe.wait().text == "PUT true")
        #expect(origin.requests.first?.contains { $0.hasPrefix("Expect") } == false)
        harness.stop()
        origin.stop()
    }

    @Test func `a body of unknown length is sent chunked`() throws {
        let origin = try TestOrigin {
            $0.respond(body: $0.body); return .keep
        }
        let harness = try Harness()
        let pipe = BytePipe()
        let probe = harness.start(try request(origin.url(), "POST", pipe, length: nil))
        write(Array("hello".utf8), to: pipe)
        #expect(probe.wait().text == "5\r\nhello\r\n0\r\n\r\n")
        #expect(origin.requests.first?.contains { $0.hasPrefix("Content-Length") } == false)
        harness.stop()
        origin.stop()
    }

    @Test(arguments: ["PATCH", "DELETE", "QUERY", "X-Any_Token!", "GET"])
    func `any method may have a body`(method: String) throws {
        let origin = try TestOrigin {
            $0.respond(body: Array($0.method.utf8) + $0.body); return .keep
        }
        let harness = try Harness()
        let pipe = BytePipe()
        let probe = harness.start(try request(origin.url(), method, pipe, length: 2))
        write(Array("-b".utf8), to: pipe)
        #expect(probe.wait().text == method + "-b")
        harness.stop()
        origin.stop()
    }

    @Test func `a body is read only when the origin accepts it, in pieces`() throws {
        let origin = try TestOrigin {
            $0.respond(body: $0.body); return .keep
        }
        let harness = try Harness()
        // So small that written bytes fill it until they are read.
        let pipe = BytePipe(capacity: 1)
        let wanted = Mutex(false), taken = Mutex(false)
        pipe.whenWanted { wanted.withLock { $0 = true } }
        let probe = harness.start(try request(origin.url(), "PUT", pipe, length: 6))
        #expect(comesTrue { wanted.withLock { $0 } })
        _ = [UInt8]([1, 2, 3]).withUnsafeBytes { bytes in
            pipe.write(bytes) { taken.withLock { $0 = true } }
        }
        #expect(comesTrue { taken.withLock { $0 } })
        write([4, 5, 6], to: pipe)
        #expect(probe.wait().body == [1, 2, 3, 4, 5, 6])
        harness.stop()
        origin.stop()
    }

    @Test func `an origin is asked first whether it accepts the body if the client waits for that`()
        throws
    {
        let origin = try TestOrigin {
            $0.respond(body: $0.body); return .keep
        }
        let harness = try Harness()
        let pipe = BytePipe()
        var asking = try request(origin.url(), "PUT", pipe, length: 5)
        asking.upload = Upload(pipe: pipe, length: 5, expectsContinue: true)
        let probe = harness.start(asking)
        write(Array("hello".utf8), to: pipe)
        // It says nothing, and gets the body after a second.
        #expect(probe.wait().text == "hello")
        #expect(origin.requests.first?.contains("Expect: 100-continue") == true)
        harness.stop()
        origin.stop()
    }

    @Test func `an incomplete request body does not end the request`() throws {
        let origin = try TestOrigin {
            $0.respond(); return .keep
        }
        let harness = try Harness()
        let pipe = BytePipe()
        let probe = harness.start(try request(origin.url(), "PUT", pipe, length: 10))
        _ = [UInt8](repeating: 1, count: 5).withUnsafeBytes { pipe.write($0) {} }
        pipe.end(isWhole: false)
        #expect(probe.wait().failure != nil)
        #expect(origin.requests.isEmpty)
        harness.stop()
        origin.stop()
    }

    @Test func `an unsafe request uses its own connection and is never repeated`() throws {
        let origin = try TestOrigin {
            if $0.method == "GET" { $0.respond(); return .keep }
            return .close
        }
        let harness = try Harness()
        _ = try harness.fetch(origin.url("/a"))
        let record = try harness.fetch(origin.url("/b")) {
            $0.method = .post
            $0.usesFreshConnection = true
        }
        #expect(record.failure?.kind == .reset)
        #expect(origin.requests.count == 2 && origin.connections == 2)
        harness.stop()
        origin.stop()
    }

    @Test func `an origin that does not read a request body fails in time`() throws {
        let origin = try TestOrigin {
            $0.respond(); return .keep
        }
        let harness = try Harness()
        let pipe = BytePipe()
        var request = try request(origin.url(), "PUT", pipe, length: 1000)
        request.timeouts.firstByte = .milliseconds(300)
        let probe = harness.start(request)
        // No timeout runs while our side has to supply the body.
        usleep(500_000)
        #expect(probe.record.withLock { $0.results.isEmpty })
        write([UInt8](repeating: 1, count: 1000), to: pipe)
        #expect(probe.wait().status == 200)
        harness.stop()
        origin.stop()
    }

    @Test func `a transparent request adds no fields`() throws {
        let origin = try TestOrigin {
            $0.respond(); return .keep
        }
        let harness = try Harness()
        _ = try harness.fetch(origin.url()) {
            $0.isTransparent = true
            $0.fields.append("Accept-Encoding", "br")
        }
        let lines = origin.requests.first ?? []
        #expect(
            lines.map { $0.prefix { $0 != ":" } } == ["GET / HTTP/1.1", "Host", "Accept-Encoding"])
        harness.stop()
        origin.stop()
    }
}
