import CachePolicy
import HTTP
import Posix
import Testing

/// Which responses are stored, and which fields of their heads.
@Suite struct `What may be stored` {
    private func decide(
        _ policy: Policy, _ response: Fields, status: HTTPStatus = .ok, request: Fields = [:],
        kind: CacheKind = .private
    ) -> Storability {
        Storability.decide(
            .init(
                policy: policy, requestFields: request, status: status, responseFields: response,
                kind: kind))
    }

    @Test(arguments: Policy.allCases)
    func `no-store is respected under every policy`(_ policy: Policy) {
        #expect(decide(policy, ["Cache-Control": "no-store"]) == .streamOnly(.noStore))
    }

    @Test func `media stores responses that are private or stale`() {
        #expect(decide(.media, ["Cache-Control": "private, max-age=0"]) == .store)
        #expect(decide(.media, [:]) == .store)
    }

    // Otherwise error pages would be cached as content.
    @Test(arguments: [400, 403, 404, 410, 500, 503])
    func `media never stores an error`(_ status: UInt16) {
        #expect(
            decide(.media, ["Cache-Control": "max-age=60"], status: HTTPStatus(rawValue: status))
                == .streamOnly(.status))
    }

    @Test func `rfc stores nothing without freshness or validator`() {
        #expect(decide(.rfc, [:]) == .streamOnly(.noFreshness))
        #expect(decide(.rfc, ["ETag": "\"a\""]) == .store)
        #expect(decide(.rfc, ["Cache-Control": "max-age=1"]) == .store)
    }

    @Test func `a shared cache stores a cookie only if the origin states a lifetime or public`() {
        let heuristic: Fields = ["ETag": "\"a\"", "Set-Cookie": "a=b"]
        for kind in [CacheKind.shared, .gateway] {
            #expect(decide(.rfc, heuristic, kind: kind) == .streamOnly(.setsCookie))
            for control in ["max-age=9", "s-maxage=9", "public"] {
                var stated = heuristic
                stated.append(.cacheControl, control)
                #expect(decide(.rfc, stated, kind: kind) == .store, "\(control)")
            }
        }
        #expect(decide(.rfc, heuristic, kind: .private) == .store)
    }

    @Test
    func `a shared cache does not store private responses or those to requests with credentials`() {
        #expect(
            decide(.rfc, ["Cache-Control": "private, max-age=9"], kind: .shared)
                == .streamOnly(.isPrivate))
        #expect(
            decide(
                .rfc, ["Cache-Control": "max-age=9"], request: ["Authorization": "x"],
                kind: .shared) == .streamOnly(.authorization))
        #expect(
            decide(
                .rfc, ["Cache-Control": "public, max-age=9"], request: ["Authorization": "x"],
                kind: .shared) == .store)
    }

    @Test func `variants are stored, except with a Vary of any`() {
        #expect(
            decide(.rfc, ["Cache-Control": "max-age=9", "Vary": "Accept-Language"]) == .store)
        #expect(
            decide(.rfc, ["Cache-Control": "max-age=9", "Vary": "*"]) == .streamOnly(.varyStar))
        #expect(
            decide(.rfc, ["Cache-Control": "max-age=9", "Vary": "Accept-Encoding User-Agent"])
                == .streamOnly(.varyStar))
    }

    @Test(
        arguments: [(200, .store), (599, .streamOnly(.mustUnderstand))] as [(UInt16, Storability)])
    func `must-understand overrides no-store for known statuses`(
        _ status: UInt16, _ expected: Storability
    ) {
        let fields: Fields = ["Cache-Control": "max-age=9, no-store, must-understand"]
        #expect(decide(.rfc, fields, status: HTTPStatus(rawValue: status)) == expected)
    }

    @Test(arguments: [299, 400, 499, 500, 503, 599] as [UInt16])
    func `any final status is stored if its lifetime is stated`(_ status: UInt16) {
        let status = HTTPStatus(rawValue: status)
        #expect(decide(.rfc, ["Cache-Control": "max-age=9"], status: status) == .store)
        #expect(decide(.rfc, ["ETag": "\"a\""], status: status) == .streamOnly(.status))
    }

    @Test(arguments: [204, 404, 405, 410, 414, 501] as [UInt16])
    func `a validator suffices for statuses with a heuristic`(_ status: UInt16) {
        #expect(
            decide(.rfc, ["ETag": "\"a\""], status: HTTPStatus(rawValue: status)) == .store)
    }

    @Test(arguments: ["public", "must-revalidate", "s-maxage=5"])
    func `three directives let a shared cache store responses to requests with credentials`(
        _ directive: String
    ) {
        #expect(
            decide(
                .rfc, ["Cache-Control": "max-age=9, \(directive)"], request: ["Authorization": "x"],
                kind: .shared) == .store)
    }

    @Test func `a request with no-store stores nothing`() {
        #expect(
            decide(
                .rfc, ["Cache-Control": "max-age=9"], request: ["Cache-Control": "no-store"])
                == .streamOnly(.requestNoStore))
    }

    // RFC 9213 section 2.2.
    @Test func `a targeted directive replaces Cache-Control`() {
        let open: Fields = ["Cache-Control": "no-store", "CDN-Cache-Control": "max-age=9"]
        #expect(decide(.rfc, open, kind: .gateway) == .store)
        #expect(decide(.rfc, open, kind: .shared) == .streamOnly(.noStore))
        let closed: Fields = ["Cache-Control": "max-age=9", "CDN-Cache-Control": "private"]
        #expect(decide(.rfc, closed, kind: .gateway) == .streamOnly(.isPrivate))
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

    @Test func `a head is restored from disk`() {
        #expect(StoredHead(encoded: head.encoded) == head)
    }

    @Test(arguments: [
        (Int64(0), nil, "1 200 0 0 media https://h/\nA: b\n"),
        (
            Int64.max, CacheKind.gateway,
            "1 200 9223372036854775807 -10 gateway-media https://h/\nA: b\n"
        ),
        (Int64.min, nil, "1 200 -9223372036854775808 -10 media https://h/\nA: b\n"),
    ])
    func `a head is written in the format of former versions`(
        time: Int64, kind: CacheKind?, text: String
    ) {
        let head = StoredHead(
            status: .ok, fields: ["A": "b"], requestTime: WallTime(nanoseconds: time),
            responseTime: WallTime(nanoseconds: time == 0 ? 0 : -10), finalURL: "https://h/",
            kind: kind)
        #expect(String(decoding: head.encoded, as: UTF8.self) == text)
        if time > .min { #expect(StoredHead(encoded: head.encoded) == head) }
    }

    @Test(arguments: [nil, CacheKind.gateway])
    func `a head remembers that its playlist was live`(kind: CacheKind?) throws {
        var list = head
        list.kind = kind
        list.wasLive = true
        var read = try #require(StoredHead(encoded: list.encoded))
        #expect(read == list)
        read.update(
            from: ["ETag": "\"x\""], requestTime: WallTime(nanoseconds: 10),
            responseTime: WallTime(nanoseconds: 11))
        #expect(read.wasLive)
        // Only playlists are ever live.
        list.isPlaylist = false
        #expect(StoredHead(encoded: list.encoded)?.wasLive == false)
        let media = "1 200 5 9 media-after-live https://h/\n"
        #expect(StoredHead(encoded: Array(media.utf8)) == nil)
    }

    @Test func `a playlist is marked if it may be cut`() {
        var marked = head
        marked.mayBeCut = true
        #expect(StoredHead(encoded: marked.encoded) == marked)
        marked.hasViewerCookie = true
        marked.wasLive = true
        #expect(StoredHead(encoded: marked.encoded) == marked)
        for form in ["media-cut", "-cut", "playlist-cut-after-live"] {
            let text = "1 200 1 2 \(form) https://h/\n"
            #expect(StoredHead(encoded: Array(text.utf8)) == nil, "\(form)")
        }
    }

    @Test func `a playlist is marked if a cookie may have identified its viewer`() {
        var marked = head
        marked.hasViewerCookie = true
        #expect(StoredHead(encoded: marked.encoded) == marked)
        marked.wasLive = true
        #expect(StoredHead(encoded: marked.encoded) == marked)
        let text = "1 200 1 2 cookie-playlist https://h/\n"
        #expect(StoredHead(encoded: Array(text.utf8))?.hasViewerCookie == true)
        for form in ["cookie-media", "cookie-", "cookie", "cookie-gateway-playlist"] {
            let text = "1 200 1 2 \(form) https://h/\n"
            #expect(StoredHead(encoded: Array(text.utf8))?.hasViewerCookie != true)
        }
    }

    @Test func `a key is marked with the digest of the user information that has opened it`() {
        var key = head
        key.user = "0123456789ab"
        // Playlists have it in their cache keys.
        #expect(StoredHead(encoded: key.encoded)?.user == nil)
        key.isPlaylist = false
        #expect(StoredHead(encoded: key.encoded) == key)
        let text = "1 200 1 2 user-0123456789ab-media https://h/\n"
        #expect(StoredHead(encoded: Array(text.utf8))?.user == "0123456789ab")
        for form in ["user-a-playlist", "user-a-media-after-live", "user-media", "other-a-media"] {
            let text = "1 200 1 2 \(form) https://h/\n"
            #expect(StoredHead(encoded: Array(text.utf8)) == nil)
        }
    }

    @Test func `a damaged head is rejected`() {
        for length in 0..<20 {
            #expect(StoredHead(encoded: Array(head.encoded.prefix(length))) == nil)
        }
        #expect(StoredHead(encoded: Array("2 200 1 2 media https://h/\n".utf8)) == nil)
    }

    @Test func `fields of one hop, one viewer or another site's policy are not stored`() {
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

    @Test func `a 304 updates the head and its times`() {
        var renewed = head
        renewed.update(
            from: ["ETag": "\"x\"", "Cache-Control": "max-age=5", "Content-Type": "text/html"],
            requestTime: WallTime(nanoseconds: 20), responseTime: WallTime(nanoseconds: 30))
        #expect(renewed.fields.first(.cacheControl) == "max-age=5")
        #expect(renewed.fields.first(.contentType) == "video/mp2t")
        #expect(renewed.fields.count(of: .etag) == 1)
        #expect(renewed.responseTime == WallTime(nanoseconds: 30))
    }

    @Test func `under HTTP's rules every end-to-end field is stored byte for byte`() {
        var fields: Fields = ["Set-Cookie": "a=b", "Connection": "X-Hop", "X-Hop": "1"]
        fields.append(nameBytes: "ETag".utf8, valueBytes: [0x22, 0xFC, 0x22])
        var kept = head
        kept.kind = .gateway
        kept.fields = StoredHead.keptFields(of: fields, for: .gateway)
        #expect(kept.fields.map(\.name) == ["Set-Cookie", "ETag"])
        let read = StoredHead(encoded: kept.encoded)
        #expect(read == kept && read?.fields.valueBytes(.etag) == [0x22, 0xFC, 0x22])
    }

    @Test func `fields named by private are kept only for the requester`() {
        var kept = head
        kept.kind = .shared
        kept.fields = ["Cache-Control": "private=\"X-A\"", "X-A": "1", "X-B": "2"]
        #expect(kept.removePrivateFields().map(\.name) == ["X-A"])
        #expect(kept.fields.map(\.name) == ["Cache-Control", "X-B"])
    }

    /// Lookups of each name among all lines would take minutes.
    @Test(.timeLimit(.minutes(1)))
    func `forty thousand fields are removed or replaced at linear cost`() {
        let names = (0..<40_000).map { "x\($0)" }
        var many = Fields()
        for name in names { many.append(name, "1") }
        var kept = head
        kept.kind = .shared
        kept.fields = many
        kept.fields.append(.cacheControl, "private=\"\(names.joined(separator: ", "))\"")
        #expect(kept.removePrivateFields().count == names.count)
        kept.fields = many
        kept.update(
            from: many, requestTime: WallTime(nanoseconds: 20),
            responseTime: WallTime(nanoseconds: 30))
        #expect(kept.fields.count == names.count + 1)
    }

    @Test func `a 304 updates all fields except those that describe the bytes`() {
        var renewed = head
        renewed.kind = .gateway
        renewed.fields = ["Content-Encoding": "gzip", "Content-Type": "a/b", "X": "1"]
        renewed.update(
            from: [
                "Content-Encoding": "br", "Content-Type": "c/d", "X": "2", "Content-Length": "9",
            ],
            requestTime: WallTime(nanoseconds: 20), responseTime: WallTime(nanoseconds: 30))
        #expect(renewed.fields.first(.contentEncoding) == "gzip")
        #expect(renewed.fields.first(.contentType) == "c/d" && renewed.fields.first("X") == "2")
        #expect(!renewed.fields.contains(.contentLength))
    }

    @Test(
        arguments: [
            ("Origin, Accept-Encoding", nil), ("Origin, Cookie", .vary), ("*", .varyStar),
            ("", nil),
        ] as [(String, Storability.NoStoreReason?)])
    func `what has one form for all clients is not stored if it depends on the client`(
        _ vary: String, _ reason: Storability.NoStoreReason?
    ) {
        var fields = Fields()
        fields.append(.cacheControl, "max-age=9")
        fields.append(.vary, vary)
        var question = Storability.Question(
            policy: .rfc, requestFields: Fields(), status: .ok, responseFields: fields,
            kind: .shared)
        question.hasOneForm = true
        #expect(Storability.decide(question) == (reason.map { .streamOnly($0) } ?? .store))
    }

    @Test(arguments: [Policy.media, .refresh, .rfc])
    func `what has one form for all clients is stored under no policy if it is for one of them`(
        _ policy: Policy
    ) {
        let cases: [(response: Fields, request: Fields, reason: Storability.NoStoreReason)] = [
            (["Cache-Control": "private, max-age=9"], [:], .isPrivate),
            (["Cache-Control": "max-age=9", "Vary": "Cookie"], [:], .vary),
            (["Cache-Control": "max-age=9", "Vary": "*"], [:], .varyStar),
            (["Cache-Control": "max-age=9"], ["Authorization": "x"], .authorization),
        ]
        for (response, request, reason) in cases {
            var question = Storability.Question(
                policy: policy, requestFields: request, status: .ok, responseFields: response,
                kind: .shared)
            question.hasOneForm = true
            #expect(Storability.decide(question) == .streamOnly(reason))
        }
    }

    @Test func `a full response that is not stored ends the use of the stored one`() {
        let ended: [(UInt16, Storability.NoStoreReason)] = [
            (200, .noStore), (200, .isPrivate), (200, .varyStar), (200, .vary), (200, .noFreshness),
            (200, .setsCookie), (301, .noFreshness), (302, .status), (404, .noFreshness),
            (410, .noStore), (451, .status), (403, .status),
        ]
        for (status, reason) in ended {
            #expect(Storability.endsUseOfStored(HTTPStatus(rawValue: status), reason))
        }
        let kept: [(UInt16, Storability.NoStoreReason)] = [
            (200, .requestNoStore), (200, .authorization), (200, .noRoom), (206, .status),
            (304, .status), (401, .status), (407, .status), (416, .status), (429, .status),
            (503, .status), (200, .noLength),
        ]
        for (status, reason) in kept {
            #expect(!Storability.endsUseOfStored(HTTPStatus(rawValue: status), reason))
        }
    }
}
