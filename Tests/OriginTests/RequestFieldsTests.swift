import CachePolicy
import HTTP
@testable import Model
@testable import Origin
import Posix
import Routing
import Testing

/// What requests to an origin say of their session and of what is stored.
@Suite struct RequestFieldsTests {
    private static let now = WallTime(seconds: 1_700_000_000)

    private func head(_ fields: Fields) -> StoredHead {
        StoredHead(
            status: .ok, fields: fields, requestTime: Self.now, responseTime: Self.now,
            finalURL: "http://h/a.ts")
    }

    private func fields(
        cookie: String? = nil, for change: (inout Resource.Parts) -> Void = { _ in }
    ) -> RequestFields {
        RequestFields(for: FlightStory.resource(change), cookie: cookie)
    }

    @Test func `a session's cookies replace the client's, which stay where it has none`() {
        let own: (inout Resource.Parts) -> Void = { $0.forwardedFields = ["Cookie": "own=1"] }
        #expect(fields(cookie: "jar=2", for: own).fields.all(.cookie) == ["jar=2"])
        #expect(fields(for: own).fields.all(.cookie) == ["own=1"])
    }

    @Test func `a session's fields replace the client's, and the given cookies replace both`() {
        let request = fields(cookie: "jar=3") {
            $0.forwardedFields = ["Referer": "http://own/", "Cookie": "own=1", "Accept": "*/*"]
            $0.session = Session(
                id: SessionID(1), fields: ["Referer": "http://entry/", "Cookie": "entry=2"])
        }
        #expect(request.fields.all("Referer") == ["http://entry/"])
        #expect(request.fields.all(.cookie) == ["jar=3"])
        #expect(request.fields.first("Accept") == "*/*")
    }

    @Test func `conditions of the client follow its other fields, unchanged and in their order`() {
        let conditions: Fields = ["If-None-Match": "\"a\"", "If-Match": "\"b\", \"c\""]
        var request = fields { $0.forwardedFields = ["Accept": "*/*", "User-Agent": "player"] }
        request.add(conditions: conditions)
        request.limit(to: "bytes=5-", of: head(["ETag": "\"d\""]))
        let expected: Fields = [
            "Accept": "*/*", "User-Agent": "player", "If-None-Match": "\"a\"",
            "If-Match": "\"b\", \"c\"", "Range": "bytes=5-", "If-Range": "\"d\"",
        ]
        #expect(request.fields == expected)
    }

    @Test func `titles between the bytes are requested under HTTP's rules only`() {
        let radio: Fields = ["Icy-MetaData": "1"]
        #expect(!fields { $0.forwardedFields = radio }.fields.contains("Icy-MetaData"))
        let mounted = fields {
            $0.forwardedFields = radio
            $0.kind = .gateway
        }
        #expect(mounted.fields.first("Icy-MetaData") == "1")
    }

    @Test func `a revalidation names the stored response and all variants`() {
        var request = fields()
        let date = "Tue, 14 Nov 2023 21:13:20 GMT"
        request.revalidate(
            head(["ETag": "W/\"a\"", "Last-Modified": date]), tags: ["\"b\"", "W/\"c\""])
        #expect(request.fields.all(.ifNoneMatch) == ["W/\"a\", \"b\", W/\"c\""])
        #expect(request.fields.first(.ifModifiedSince) == date)
        var variants = fields()
        variants.revalidate(nil, tags: ["\"b\""])
        #expect(variants.fields.all(.ifNoneMatch) == ["\"b\""])
        #expect(!variants.fields.contains(.ifModifiedSince))
        var unnamed = fields()
        unnamed.revalidate(head([:]), tags: [])
        #expect(!unnamed.fields.contains(.ifNoneMatch))
    }

    @Test func `a rest is bound to its version by a strong validator, unless it grows`() {
        var strong = fields()
        strong.limit(to: "bytes=5-", of: head(["ETag": "\"a\""]))
        #expect(strong.fields.first(.range) == "bytes=5-")
        #expect(strong.fields.first(.ifRange) == "\"a\"" && strong.rangeCondition == "\"a\"")
        var weak = fields()
        weak.limit(to: "bytes=5-", of: head(["ETag": "W/\"a\""]))
        #expect(weak.fields.first(.range) == "bytes=5-")
        #expect(!weak.fields.contains(.ifRange) && weak.rangeCondition == nil)
        var growing = fields { $0.live.growth = .init(end: 1_000) }
        growing.limit(to: "bytes=5-", of: head(["ETag": "\"a\""]))
        #expect(!growing.fields.contains(.ifRange))
    }
}
