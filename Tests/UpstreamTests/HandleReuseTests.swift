import CCurl
import HTTP
import Synchronization
import Testing
import URISyntax
@testable import Upstream

/// Settings of one transfer must not affect the next one that reuses its libcurl handle.
@Suite struct HandleReuseTests {
    /// Fetches one after the other, so that all use the same handle.
    private func lines(
        _ changes: [@Sendable (inout TransferRequest) -> Void], userinfo: Set<Int> = []
    ) throws -> [[String]] {
        let origin = try TestOrigin {
            $0.respond(body: Array("x".utf8)); return .keep
        }
        let harness = try Harness()
        for (number, change) in changes.enumerated() {
            var url = origin.url("/\(number)")
            if userinfo.contains(number) {
                url = url.replacing("http://", with: "http://me:secret@")
            }
            #expect(try harness.fetch(url, change).status == 200)
        }
        let requests = origin.requests
        harness.stop()
        origin.stop()
        return requests
    }

    @Test func `fields are set anew for each request`() throws {
        let requests = try lines([
            { $0.fields = ["X-A": "1", "Range": "bytes=1-"] },
            { $0.fields = ["X-A": "2"] },
            { $0.fields = ["X-A": "2"] },
            { _ in },
        ])
        #expect(requests.map { $0.contains("X-A: 1") } == [true, false, false, false])
        #expect(requests.map { $0.contains("X-A: 2") } == [false, true, true, false])
        #expect(requests.map { $0.contains("Range: bytes=1-") } == [true, false, false, false])
        for (number, request) in requests.enumerated() {
            #expect(request.first == "GET /\(number) HTTP/1.1")
            #expect(request.contains("Accept-Encoding: identity"))
            #expect(!request.contains { $0.hasPrefix("Expect") || $0.hasPrefix("Content-Type") })
        }
    }

    @Test func `method and body belong to one request only`() throws {
        let requests = try lines([
            { _ in },
            {
                $0.method = .post
                $0.body = Array("abc".utf8)
            },
            { _ in },
            { $0.method = .head },
            { _ in },
        ])
        #expect(
            requests.map { $0.first?.prefix { $0 != " " } } == [
                "GET", "POST", "GET", "HEAD", "GET",
            ])
        #expect(
            requests.map { $0.contains { $0.hasPrefix("Content-Length") } } == [
                false, true, false, false, false,
            ])
    }

    @Test func `codings are requested only for transfers that decode`() throws {
        let requests = try lines([
            { $0.decodesContent = true }, { _ in }, { $0.isTransparent = true },
            { $0.decodesContent = true },
        ])
        let asked = requests.map { request in
            request.first { $0.hasPrefix("Accept-Encoding: ") }?.dropFirst(17)
        }
        #expect(asked == ["gzip, deflate, br", "identity", nil, "gzip, deflate, br"])
    }

    @Test func `user information of one URL is not sent with the next`() throws {
        let requests = try lines([{ _ in }, { _ in }, { _ in }], userinfo: [1])
        #expect(
            requests.map { $0.contains { $0.hasPrefix("Authorization: Basic") } } == [
                false, true, false,
            ])
    }

    /// libcurl repeats such a request, and gives up at the sixth of its handle.
    @Test func `kept connections that end at reuse cost no request, however many`() throws {
        let answered = Mutex<Set<CInt>>([])
        let origin = try TestOrigin { exchange in
            let isFirst = answered.withLock { answered in
                guard answered.insert(exchange.socket).inserted else {
                    answered.remove(exchange.socket)
                    return false
                }
                return true
            }
            guard isFirst else { return .close }
            exchange.respond(body: Array("x".utf8))
            return .keep
        }
        let harness = try Harness()
        for number in 0..<16 {
            #expect(try harness.fetch(origin.url("/\(number)")).status == 200)
        }
        #expect(origin.connections == 16)
        harness.stop()
        origin.stop()
    }

    @Test func `the late body of a response to HEAD costs no request on its connection`() throws {
        let awaited = Mutex<Set<CInt>>([])
        let origin = try TestOrigin { exchange in
            if awaited.withLock({ $0.remove(exchange.socket) }) != nil {
                exchange.send("late")
                return .keep
            }
            if exchange.method == "HEAD" {
                awaited.withLock { _ = $0.insert(exchange.socket) }
            }
            exchange.respond(body: Array("body".utf8))
            return .keep
        }
        let harness = try Harness()
        #expect(try harness.fetch(origin.url("/a"), { $0.method = .head }).status == 200)
        let next = try harness.fetch(origin.url("/b"))
        #expect(next.status == 200 && next.text == "body")
        #expect(origin.requests.map { $0.first?.prefix(7) } == ["HEAD /a", "GET /b ", "GET /b "])
        #expect(origin.connections == 2)
        harness.stop()
        origin.stop()
    }

    @Test func `a request that failed on a kept connection is repeated on a new one`() throws {
        let kept = Mutex<[Exchange]>([])
        let origin = try TestOrigin { exchange in
            guard exchange.target == "/c" else {
                // Both at once, so that each has a connection of its own.
                let both: [Exchange] = kept.withLock { kept in
                    kept.append(exchange)
                    return kept.count == 2 ? kept : []
                }
                for exchange in both { exchange.respond(body: Array("x".utf8)) }
                return .keep
            }
            let isKept = kept.withLock { kept in
                let index = kept.firstIndex { $0.socket == exchange.socket }
                if let index { kept.remove(at: index) }
                return index != nil
            }
            if isKept {
                exchange.send("late")
            } else {
                exchange.respond(body: Array("body".utf8))
            }
            return .keep
        }
        let harness = try Harness()
        for probe in try ["/a", "/b"].map({ try harness.start(origin.url($0)) }) { probe.wait() }
        let next = try harness.fetch(origin.url("/c"))
        #expect(next.status == 200 && next.text == "body")
        #expect(origin.connections == 3)
        harness.stop()
        origin.stop()
    }

    @Test func `an origin that stops sending HTTP is asked twice, not for ever`() throws {
        let origin = try TestOrigin { exchange in
            if exchange.target == "/a" {
                exchange.respond(body: Array("body".utf8))
            } else {
                exchange.send("junk")
            }
            return .keep
        }
        let harness = try Harness()
        #expect(try harness.fetch(origin.url("/a")).status == 200)
        #expect(try harness.fetch(origin.url("/b")).failure?.kind == .protocolError)
        #expect(origin.requests.count == 3)
        harness.stop()
        origin.stop()
    }

    /// Two hops end at once: the first leads on, while the second, which is cancelled, leaves its
    /// handle to the hop that follows.
    @Test func `the end of a hop is not taken for that of another one with its handle`() throws {
        let origin = try TestOrigin { exchange in
            if exchange.target == "/next" {
                exchange.respond(body: Array("x".utf8))
                return .keep
            }
            exchange.holdOpen()
            return .close
        }
        let harness = try Harness()
        let first = try harness.start(origin.url("/first"))
        let second = try harness.start(origin.url("/second"))
        #expect(comesTrue { origin.requests.count == 2 })
        let next = try AbsoluteURL(origin.url("/next"))
        harness.act { client in
            // Leaves room for one more handle, the second one's: the first one's is not kept.
            while client.idleHandles.count < 15, let easy = CurlEasy() {
                client.idleHandles.append(easy)
            }
            let transfers = client.live.values.sorted { $0.id < $1.id }
            let ended = transfers.compactMap(\.easy).map {
                CurlMulti.Ended(handle: $0.handle, code: CURLE_OK)
            }
            transfers[0].redirect = transfers[0].redirect(to: next)
            transfers[0].hopState.phase = .redirect
            client.curlWillRun()
            transfers[1].cancel()
            client.curlDidRun(ended: ended)
        }
        #expect(first.wait().status == 200)
        #expect(second.wait().failure?.kind == .cancelled)
        harness.stop()
        origin.stop()
    }
}
