import HTTP
import Posix
import Testing
import URISyntax
import Upstream

/// What reaches the origin, and which parts of its response reach the delegate.
@Suite struct DeliveryTests {
    @Test func `a body arrives complete, with head, peer and final URL`() throws {
        let sent = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        let origin = try TestOrigin {
            $0.respond(200, ["ETag: \"a\""], body: sent); return .keep
        }
        let harness = try Harness()
        let record = try harness.fetch(origin.url("/seg.ts?a=1"))
        let isWhole = record.body == sent
        #expect(isWhole)
        #expect(record.status == 200)
        #expect(record.heads.first?.fields.first(.etag) == "\"a\"")
        #expect(record.heads.first?.finalURL.text == origin.url("/seg.ts?a=1"))
        #expect(record.timings?.hop.address?.description == "127.0.0.1:\(origin.port)")
        #expect(record.heads.first?.provesItsEnd == true)
        #expect(record.timings?.bytes == 300_000)
        #expect(record.timings?.hop.connection == .new)
        #expect(record.roundEnds > 0 && record.results.count == 1 && record.starts == 1)
        harness.stop()
        origin.stop()
    }

    @Test func `a missing resource is a response like any other`() throws {
        let origin = try TestOrigin {
            $0.respond(404, body: Array("gone".utf8)); return .keep
        }
        let harness = try Harness()
        let record = try harness.fetch(origin.url("/x"))
        #expect(record.status == 404 && record.text == "gone" && record.failure == nil)
        harness.stop()
        origin.stop()
    }

    @Test func `interim responses precede the head, and trailers are dropped`() throws {
        let origin = try TestOrigin {
            $0.send("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n")
            $0.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: T\r\n\r\n")
            $0.send("3\r\nabc\r\n2\r\nde\r\n0\r\nT: 1\r\n\r\n")
            return .keep
        }
        let harness = try Harness()
        let record = try harness.fetch(origin.url("/"))
        #expect(record.heads.count == 1 && record.status == 200 && record.text == "abcde")
        #expect(record.heads.first?.fields.contains("Link") == false)
        #expect(record.interims.map(\.status) == [.earlyHints])
        #expect(record.interims.first?.fields.first("Link") == "</x>")
        #expect(record.heads.first?.provesItsEnd == true)
        harness.stop()
        origin.stop()
    }

    @Test(
        arguments: [
            ("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", .protocolError),
            (
                String(repeating: "HTTP/1.1 102 Processing\r\n\r\n", count: 65),
                .onlyInterim(count: 65)
            ),
        ] as [(String, UpstreamError.Kind)])
    func `an unrequested protocol and endless interim responses are rejected`(
        answer: String, kind: UpstreamError.Kind
    ) throws {
        let origin = try TestOrigin {
            $0.send(answer)
            $0.respond()
            return .close
        }
        let harness = try Harness()
        let record = try harness.fetch(origin.url("/"))
        #expect(record.failure?.kind == kind && record.heads.isEmpty)
        harness.stop()
        origin.stop()
    }

    @Test func `interim responses prolong the wait for the head up to its own limit`() throws {
        let origin = try TestOrigin { exchange in
            for _ in 0..<20 {
                exchange.send("HTTP/1.1 102 Processing\r\n\r\n")
                exchange.pause(milliseconds: 50)
            }
            exchange.respond(body: [1])
            return .close
        }
        let harness = try Harness()
        let record = try harness.fetch(origin.url("/")) {
            $0.timeouts.firstByte = .milliseconds(500)
            $0.timeouts.head = .milliseconds(500)
        }
        let failure = try #require(record.failure)
        #expect(failure.kind == .onlyInterim(count: record.interims.count))
        #expect(record.interims.count < 20 && record.heads.isEmpty && !failure.isRetryable)
        #expect(failure.message.contains("(\(record.interims.count)) and no final one"))
        harness.stop()
        origin.stop()
    }

    @Test func `a HEAD request ends with the head`() throws {
        let origin = try TestOrigin {
            $0.send("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n")
            return .keep
        }
        let harness = try Harness()
        let record = try harness.fetch(origin.url("/")) { $0.method = .head }
        #expect(record.timings != nil && record.body.isEmpty)
        #expect(record.heads.first?.fields.first(.contentLength) == "99")
        #expect(origin.requests.first?.first?.hasPrefix("HEAD ") == true)
        harness.stop()
        origin.stop()
    }

    @Test func `a body that ends with its connection is marked as unverified`() throws {
        let origin = try TestOrigin {
            $0.send("HTTP/1.1 200 OK\r\n\r\nabc"); return .close
        }
        let harness = try Harness()
        let record = try harness.fetch(origin.url("/"))
        #expect(record.text == "abc" && record.heads.first?.provesItsEnd == false)
        harness.stop()
        origin.stop()
    }

    @Test(arguments: [
        "/a%2Fb/c%252F", "/a+b?q=1+2&r=%2B", "/a;b=c;d?x;y", "/p[1]?a[]=1|2",
        "/%E2%82%AC%e2?u=%c3%a4",
        "/a/../b/./c", "//double//slash", "/q?a=%20%23%3F&b='\"<>^`{}", "/t?u=https://x.y/z?%26",
        "/?", "/~a!b$c*d(e),f@g:h",
    ])

    func `the target reaches the origin byte for byte`(target: String) throws {
        let origin = try TestOrigin {
            $0.respond(); return .keep
        }
        let harness = try Harness()
        _ = try harness.fetch(origin.url(target))
        #expect(origin.requests.first?.first == "GET \(target) HTTP/1.1")
        harness.stop()
        origin.stop()
    }

    @Test func `request fields are sent unchanged, and nothing can be smuggled in`() throws {
        let origin = try TestOrigin {
            $0.respond(); return .keep
        }
        let harness = try Harness()
        let fields: Fields = [
            "Referer": "https://site/", "User-Agent": "Player/1", "Range": "bytes=5-9",
            "If-Range": "\"v\"", "X-Empty": "", "Connection": "X-Hop", "X-Hop": "1",
            "Host": "evil", "X-Bad": "a\r\nInjected: 1", "Accept-Encoding": "zstd",
        ]
        _ = try harness.fetch(origin.url("/")) { $0.fields = fields }
        let lines = try #require(origin.requests.first)
        for line in [
            "Referer: https://site/", "User-Agent: Player/1", "Range: bytes=5-9",
            "If-Range: \"v\"", "X-Empty:", "Accept-Encoding: identity", "Accept: */*",
            "Host: 127.0.0.1:\(origin.port)",
        ] {
            #expect(lines.contains(line), "\(line) in \(lines)")
        }
        for name in ["Connection", "X-Hop", "X-Bad", "Injected", "Expect", "Content-Type"] {
            #expect(!lines.contains { $0.hasPrefix(name + ":") }, "\(name) in \(lines)")
        }
        harness.stop()
        origin.stop()
    }

    @Test func `user information becomes an Authorization field and is removed from the URL`()
        throws
    {
        let origin = try TestOrigin {
            $0.respond(); return .keep
        }
        let harness = try Harness()
        let record = try harness.fetch("http://us%40er:pa%3Ass@127.0.0.1:\(origin.port)/x")
        let lines = try #require(origin.requests.first)
        #expect(lines.first == "GET /x HTTP/1.1")
        #expect(lines.contains("Authorization: Basic dXNAZXI6cGE6c3M="))
        #expect(record.heads.first?.finalURL.text == origin.url("/x"))
        harness.stop()
        origin.stop()
    }

    @Test func `a request's body is sent with its length and type only`() throws {
        let origin = try TestOrigin {
            $0.respond(200, body: $0.body.reversed()); return .keep
        }
        let harness = try Harness()
        let record = try harness.fetch(origin.url("/license")) {
            $0.method = .post
            $0.body = [0, 1, 2, 255]
        }
        #expect(record.body == [255, 2, 1, 0])
        #expect(origin.requests.first?.contains { $0.hasPrefix("Content-Type") } == false)
        harness.stop()
        origin.stop()
    }

    @Test func `a gzip body is decoded on request only`() throws {
        let origin = try TestOrigin {
            $0.respond(200, ["Content-Encoding: gzip"], body: Gzip.hello)
            return .keep
        }
        let harness = try Harness()
        let decoded = try harness.fetch(origin.url("/")) { $0.decodesContent = true }
        #expect(decoded.text == "#EXTM3U hello hello hello")
        #expect(decoded.heads.first?.decodedCoding == "gzip")
        #expect(decoded.heads.first?.fields.contains(.contentLength) == false)
        #expect(origin.requests.first?.contains("Accept-Encoding: gzip, deflate, br") == true)
        let raw = try harness.fetch(origin.url("/"))
        #expect(raw.body == Gzip.hello && raw.heads.first?.decodedCoding == nil)
        harness.stop()
        origin.stop()
    }
}
