import Glibc
import HTTP
import Posix
import Testing
import URISyntax
import Upstream

/// Every failure of an origin is reported once, by its kind, with the bytes received before.
@Suite struct FailureTests {
    @Test(arguments: [
        ("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", AfterRequest.close, "truncated", 3),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", .close,
            "truncated", 3
        ),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabc", .close, "truncated", 3),
        ("", .close, "reset", 0),
        ("HTTP/1.1 200 OK\r\nContent-Len", .close, "reset", 0),
        ("SSH-2.0-OpenSSH\r\n", .close, "protocol-error", 0),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", .close, "reset", 0),
    ])
    func `a broken response is a failure with its kind`(
        answer: String, after: AfterRequest, kind: String, bytes: Int64
    ) throws {
        let origin = try TestOrigin {
            $0.send(answer); return after
        }
        let harness = try Harness()
        let record = try harness.fetch(origin.url("/"))
        #expect(record.failure?.kind.name == kind)
        #expect(record.failure?.bytesReceived == bytes)
        #expect(record.results.count == 1)
        harness.stop()
        origin.stop()
    }

    @Test func `a reset within a body is a failure that may be retried`() throws {
        let origin = try TestOrigin {
            $0.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
            $0.holdOpen(seconds: 1)
            return .reset
        }
        let harness = try Harness()
        let record = try harness.fetch(origin.url("/")) { $0.timeouts.stall = .seconds(Int64(5)) }
        #expect(record.failure?.kind == .reset || record.failure?.kind == .truncated)
        #expect(record.failure?.isRetryable == true && record.text == "abc")
        harness.stop()
        origin.stop()
    }

    @Test func `a port without a listener is a failure to connect`() throws {
        let harness = try Harness()
        let any = SocketAddress(bytes: [127, 0, 0, 1], port: 0)
        let free = try listen(on: any, sharingPort: false)
        let port = try localAddress(of: free.number).port
        _ = consume free
        let record = try harness.fetch("http://127.0.0.1:\(port)/")
        #expect(record.failure?.kind == .connect && record.failure?.isRetryable == true)
        #expect(record.failure?.message.contains("refused the connection to its port") == true)
        harness.stop()
    }

    @Test func `an IPv6 address without a route does not hide that IPv4 refuses`() throws {
        let harness = try Harness {
            var route = OriginRoute.Settings()
            // A stream has no route to multicast on any machine.
            route.addresses = ["127.0.0.1", "ff02::1"].compactMap { FixedAddress($0) }
            $0.routes = OriginRoutes { [route] _ in OriginRoute(route) }
        }
        let record = try harness.fetch("http://dual.example:1/")
        #expect(record.failure?.kind == .connect)
        #expect(record.failure?.systemCode == ECONNREFUSED)
        harness.stop()
    }

    @Test func `a name without an address is a failure to resolve`() throws {
        let harness = try Harness()
        let record = try harness.fetch("http://does-not-exist.invalid/")
        #expect(record.failure?.kind == .resolve)
        #expect(record.failure?.message.contains("does-not-exist.invalid") == true)
        harness.stop()
    }

    @Test func `an origin that never responds fails at the first-byte limit`() throws {
        let origin = try TestOrigin {
            $0.holdOpen(); return .close
        }
        let harness = try Harness()
        let record = try harness.fetch(origin.url("/")) {
            $0.timeouts.firstByte = .milliseconds(150)
        }
        #expect(record.failure?.kind == .firstByteTimeout)
        harness.stop()
        origin.stop()
    }

    @Test func `a body that stalls fails at the stall limit`() throws {
        let origin = try TestOrigin {
            $0.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
            $0.holdOpen()
            return .close
        }
        let harness = try Harness()
        let record = try harness.fetch(origin.url("/")) { $0.timeouts.stall = .milliseconds(150) }
        #expect(record.failure?.kind == .stalled && record.failure?.bytesReceived == 3)
        harness.stop()
        origin.stop()
    }

    @Test func `a slow body that continues does not stall`() throws {
        let origin = try TestOrigin {
            $0.send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n")
            for _ in 0..<6 {
                $0.pause(milliseconds: 100)
                $0.send("x")
            }
            return .keep
        }
        let harness = try Harness()
        let record = try harness.fetch(origin.url("/")) { $0.timeouts.stall = .milliseconds(400) }
        #expect(record.text == "xxxxxx" && record.failure == nil)
        harness.stop()
        origin.stop()
    }

    @Test func `bytes that came while the loop was held are read before a body counts as stalled`()
        throws
    {
        let origin = try TestOrigin {
            $0.send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc")
            $0.pause(milliseconds: 200)
            $0.send("def")
            return .keep
        }
        // Sockets of large bodies are read last in a round.
        let harness = try Harness { $0.bulkBytes = 1 }
        let script = Script(
            onBytes: { _, number in
                if number == 1 { usleep(600_000) }
            })
        let record = try harness.fetch(
            origin.url("/"), { $0.timeouts.stall = .milliseconds(150) }, script: script)
        #expect(record.text == "abcdef" && record.failure == nil)
        harness.stop()
        origin.stop()
    }

    @Test func `a decompression bomb fails at the limit`() throws {
        let origin = try TestOrigin {
            $0.respond(200, ["Content-Encoding: gzip"], body: Gzip.bomb)
            return .keep
        }
        let harness = try Harness { $0.maxDecodedBytes = 100_000 }
        let record = try harness.fetch(origin.url("/")) { $0.decodesContent = true }
        #expect(record.failure?.kind == .tooLarge(limit: 100_000) && record.body.count <= 100_000)
        harness.stop()
        origin.stop()
    }

    @Test func `a body longer than the request allows fails at the limit`() throws {
        let origin = try TestOrigin {
            $0.respond(200, body: Array(repeating: 7, count: 50_000))
            return .keep
        }
        let harness = try Harness()
        let record = try harness.fetch(origin.url("/")) { $0.bodyLimit = 20_000 }
        #expect(record.failure?.kind == .tooLarge(limit: 20_000) && record.body.count <= 20_000)
        #expect(record.failure?.message.contains("20000 bytes") == true)
        harness.stop()
        origin.stop()
    }

    @Test func `a body in an unrequested coding is not decoded`() throws {
        let origin = try TestOrigin {
            $0.respond(200, ["Content-Encoding: squeeze"], body: [1, 2, 3])
            return .keep
        }
        let harness = try Harness()
        let record = try harness.fetch(origin.url("/")) { $0.decodesContent = true }
        #expect(record.failure?.kind == .unsupportedEncoding)
        harness.stop()
        origin.stop()
    }

    @Test func `a head without end is rejected`() throws {
        let origin = try TestOrigin {
            $0.send("HTTP/1.1 200 OK\r\n")
            for number in 0..<4000 { $0.send("X-\(number): 0123456789\r\n") }
            return .close
        }
        let harness = try Harness { $0.maxHeadBytes = 8192 }
        let record = try harness.fetch(origin.url("/"))
        #expect(record.failure?.kind == .headTooLarge(limit: 8192) && record.heads.isEmpty)
        harness.stop()
        origin.stop()
    }

    @Test(arguments: [1, 200])
    func `a head of 200 kB is rejected with its own message`(lines: Int) throws {
        let origin = try TestOrigin {
            $0.send("HTTP/1.1 200 OK\r\n")
            let value = String(repeating: "x", count: 200_000 / lines)
            for number in 0..<lines { $0.send("X-\(number): \(value)\r\n") }
            $0.send("Content-Length: 0\r\n\r\n")
            return .keep
        }
        let harness = try Harness { $0.maxHeadBytes = 128 << 10 }
        let record = try harness.fetch(origin.url("/"))
        let failure = try #require(record.failure)
        #expect(failure.kind == .headTooLarge(limit: 128 << 10) && failure.fault == .origin)
        #expect(failure.message.contains("131072 bytes") && !failure.isRetryable)
        #expect(!failure.message.contains("memory"))
        harness.stop()
        origin.stop()
    }

    @Test func `endless trailers are rejected at the limit of a head`() throws {
        let origin = try TestOrigin { peer in
            peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n")
            let lines = String(repeating: "a:b\r\n", count: 1_000)
            for _ in 0..<1_000 { peer.send(lines) }
            return .close
        }
        let harness = try Harness { $0.maxHeadBytes = 8192 }
        let record = try harness.fetch(origin.url("/"))
        #expect(record.failure?.kind == .headTooLarge(limit: 8192) && record.text == "x")
        harness.stop()
        origin.stop()
    }

    @Test func `a DNS server that does not answer is told from an origin that does not`() throws {
        // It waits for the end of a request's head, which the first bytes of TLS do not have.
        let server = try TestOrigin { _ in .close }
        let url = "https://127.0.0.1:\(server.port)/dns-query"
        let harness = try Harness { $0.dohURL = url }
        let record = try harness.fetch("http://film.test/") {
            $0.timeouts.connect = .milliseconds(500)
        }
        let failure = try #require(record.failure)
        #expect(failure.kind == .resolve && failure.isSilence, "\(failure)")
        #expect(failure.message.contains("--doh-url failed, not the origin"), "\(failure)")
        harness.stop()
        server.stop()
    }

    @Test(arguments: ["http", "socks5h"])
    func `a proxy that does not answer is told from an origin that does not`(
        scheme: String
    ) throws {
        let proxy = try TestOrigin {
            $0.holdOpen(); return .close
        }
        let failure = try #require(try fetch(through: proxy, scheme).failure)
        #expect(failure.kind == .proxy && failure.isSilence, "\(failure)")
        #expect(failure.message.contains("made no connection to the origin in time"), "\(failure)")
        proxy.stop()
    }

    @Test func `an origin that does not answer behind a tunnel is told from its proxy`()
        throws
    {
        // It waits for the end of a request's head, which the first bytes of TLS do not have.
        let proxy = try TestOrigin {
            $0.send("HTTP/1.1 200 X\r\n\r\n"); return .keep
        }
        let failure = try #require(try fetch(through: proxy, "http").failure)
        #expect(failure.kind == .connectTimeout, "\(failure)")
        #expect(failure.message.contains("did not answer the TLS handshake"), "\(failure)")
        proxy.stop()
    }

    /// Requests something through a proxy from an origin with TLS.
    private func fetch(through proxy: TestOrigin, _ scheme: String) throws -> Record {
        let way = try OriginProxy("\(scheme)://127.0.0.1:\(proxy.port)")
        let harness = try Harness { configuration in
            configuration.routes = OriginRoutes { _ in
                var route = OriginRoute.Settings()
                route.proxy = way
                return OriginRoute(route)
            }
        }
        let record = try harness.fetch("https://origin.test/") {
            $0.timeouts.connect = .milliseconds(500)
        }
        harness.stop()
        return record
    }

    @Test func `a TLS handshake without a reply is told from a connection that is not accepted`()
        throws
    {
        // It waits for the end of a request's head, which the first bytes of TLS do not have.
        let origin = try TestOrigin { _ in .close }
        let harness = try Harness()
        let record = try harness.fetch("https://127.0.0.1:\(origin.port)/") {
            $0.timeouts.connect = .milliseconds(500)
        }
        #expect(record.failure?.kind == .connectTimeout)
        #expect(record.failure?.message.contains("did not answer the TLS handshake") == true)
        harness.stop()
        origin.stop()
    }

    @Test func `a TLS handshake with a server without TLS fails as such`() throws {
        let origin = try TestOrigin { _ in .close }
        let harness = try Harness()
        let record = try harness.fetch("https://127.0.0.1:\(origin.port)/") {
            $0.timeouts.connect = .milliseconds(500)
        }
        #expect([.tls, .connectTimeout].contains(record.failure?.kind))
        harness.stop()
        origin.stop()
    }
}
