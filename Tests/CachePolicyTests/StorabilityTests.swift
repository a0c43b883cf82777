/// What may be stored, and what of a head is kept.
import CachePolicy
import HTTP
import Posix
import Testing

@Suite struct `What may be stored` {
    private func decide(
        _ policy: Policy, _ response: Fields, status: HTTPStatus = .ok, request: Fields = [:],
        isShared: Bool = false
    ) -> Storability {
        Storability.decide(
            .init(
                policy: policy, requestFields: request, status: status, responseFields: response,
                isShared: isShared))
    }

    @Test(arguments: Policy.allCases)
    func `no-store is obeyed under every policy`(_ policy: Policy) {
        #expect(decide(policy, ["Cache-Control": "no-store"]) == .streamOnly(.noStore))
    }

    @Test func `media keeps what the origin calls private or stale`() {
        #expect(decide(.media, ["Cache-Control": "private, max-age=0"]) == .store)
        #expect(decide(.media, [:]) == .store)
    }

    // Trap 80: error pages cached as content.
    @Test(arguments: [400, 403, 404, 410, 500, 503])
    func `media never keeps an error`(_ status: UInt16) {
        #expect(
            decide(.media, ["Cache-Control": "max-age=60"], status: HTTPStatus(rawValue: status))
                == .streamOnly(.status))
    }

    @Test func `rfc keeps nothing without freshness or validator`() {
        #expect(decide(.rfc, [:]) == .streamOnly(.noFreshness))
        #expect(decide(.rfc, ["ETag": "\"a\""]) == .store)
        #expect(decide(.rfc, ["Cache-Control": "max-age=1"]) == .store)
    }

    @Test func `a shared cache leaves private responses and credentials alone`() {
        #expect(
            decide(.rfc, ["Cache-Control": "private, max-age=9"], isShared: true)
                == .streamOnly(.isPrivate))
        #expect(
            decide(
                .rfc, ["Cache-Control": "max-age=9"], request: ["Authorization": "x"],
                isShared: true) == .streamOnly(.authorization))
        #expect(
            decide(
                .rfc, ["Cache-Control": "public, max-age=9"], request: ["Authorization": "x"],
                isShared: true) == .store)
    }

    // Trap 55.
    @Test func `Vary on Origin or codings does not split the cache, others are not kept`() {
        #expect(
            decide(.rfc, ["Cache-Control": "max-age=9", "Vary": "Origin, Accept-Encoding"])
                == .store)
        #expect(
            decide(.rfc, ["Cache-Control": "max-age=9", "Vary": "Accept-Language"])
                == .streamOnly(.vary))
        #expect(
            decide(.rfc, ["Cache-Control": "max-age=9", "Vary": "*"]) == .streamOnly(.varyStar))
    }
}

@Suite struct `Stored heads` {
    private let head = StoredHead(
        status: .ok,
        fields: [
            "Content-Type": "video/mp2t", "ETag": "\"x\"", "Date": "Thu, 01 Jan 2026 00:00:10 GMT",
        ],
        requestTime: WallTime(nanoseconds: 5), responseTime: WallTime(nanoseconds: 9),
        finalURL: "https://h/a b?c",
        isPlaylist: true)

    @Test func `a head comes back from disk as it was`() {
        #expect(StoredHead(encoded: head.encoded) == head)
    }

    @Test func `a damaged head is not believed`() {
        for length in 0..<20 {
            #expect(StoredHead(encoded: Array(head.encoded.prefix(length))) == nil)
        }
        #expect(StoredHead(encoded: Array("2 200 1 2 media https://h/\n".utf8)) == nil)
    }

    // Trap 53.
    @Test func `fields of one hop, one viewer or another site's policy are not kept`() {
        let kept = StoredHead.keptFields(of: [
            "Set-Cookie": "a=b", "Strict-Transport-Security": "x", "Alt-Svc": "x",
            "Content-Security-Policy": "x",
            "Link": "x", "Access-Control-Allow-Origin": "*", "Connection": "X-Hop", "X-Hop": "1",
            "Transfer-Encoding": "chunked", "Content-Length": "3", "Content-Type": "a/b",
            "X-Mine": "1",
        ])
        #expect(kept.map(\.name) == ["Content-Type", "X-Mine"])
    }

    @Test func `a date is a strong validator only if it is older than the response`() {
        var dated = head
        dated.fields = [
            "Last-Modified": "Thu, 01 Jan 2026 00:00:10 GMT",
            "Date": "Thu, 01 Jan 2026 00:00:10 GMT",
        ]
        #expect(dated.strongValidator == nil)
        dated.fields = [
            "Last-Modified": "Thu, 01 Jan 2026 00:00:09 GMT",
            "Date": "Thu, 01 Jan 2026 00:00:10 GMT",
        ]
        #expect(dated.strongValidator == "Thu, 01 Jan 2026 00:00:09 GMT")
        dated.fields = ["ETag": "W/\"x\""]
        #expect(dated.strongValidator == nil)
    }

    @Test func `a 304 renews the head and its times`() {
        var renewed = head
        renewed.update(
            from: ["ETag": "\"x\"", "Cache-Control": "max-age=5", "Content-Type": "text/html"],
            requestTime: WallTime(nanoseconds: 20), responseTime: WallTime(nanoseconds: 30))
        #expect(renewed.fields.first(.cacheControl) == "max-age=5")
        #expect(renewed.fields.first(.contentType) == "video/mp2t")
        #expect(renewed.fields.count(of: .etag) == 1)
        #expect(renewed.responseTime == WallTime(nanoseconds: 30))
    }
}
