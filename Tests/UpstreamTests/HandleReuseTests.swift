import HTTP
import Testing
import URISyntax
import Upstream

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
}
