import CachePolicy
import HTTP
import Posix
import Testing

/// Directives that an origin addresses to caches in front of it (RFC 9213).
@Suite struct `Targeted directives` {
    private func lifetime(_ fields: Fields, _ kind: CacheKind = .gateway) -> Int64 {
        ReuseRules(
            StoredHead(
                status: .ok, fields: fields, requestTime: WallTime(seconds: 0),
                responseTime: WallTime(seconds: 0), finalURL: "https://h/a"), kind: kind
        ).lifetime
    }

    // RFC 9213 section 2.
    @Test(arguments: [
        ("max-age=600", 600), ("max-age=0", 0), ("foo, max-age=600;x=\"y\"", 600),
        ("max-age=999999999999999", 1 << 31),
        // Malformed or empty values are ignored.
        ("max-age=600, &&&", 5), ("max-age =600", 5), ("MAX-AGE=600", 5), ("", 5),
        ("max-age=600,", 5), ("a=(1 2", 5), ("a=:zz", 5), ("a=\"x", 5),
        ("max-age=9999999999999999", 5),
        // Well-formed with a wrong type: the directive is ignored.
        ("max-age=\"600\"", 0), ("max-age=1.5", 0), ("max-age", 0),
    ])
    func `a well-formed CDN-Cache-Control takes precedence over Cache-Control`(
        _ value: String, _ seconds: Int64
    ) {
        #expect(
            lifetime(["Cache-Control": "max-age=5", "CDN-Cache-Control": value]) == seconds)
    }

    @Test(arguments: [("", true), (" , ", true), ("X-A", false)])
    func `no-cache that names no field restricts the whole response`(
        _ names: String, _ isWhole: Bool
    ) {
        let head = StoredHead(
            status: .ok, fields: ["CDN-Cache-Control": "max-age=60, no-cache=\"\(names)\""],
            requestTime: WallTime(seconds: 0), responseTime: WallTime(seconds: 0),
            finalURL: "https://h/a")
        #expect(ReuseRules(head, kind: .gateway).requiresRevalidation == isWhole)
    }

    @Test func `CDN-Cache-Control takes precedence over Expires, in gateways only`() {
        let fields: Fields = ["CDN-Cache-Control": "max-age=60", "Expires": "0"]
        #expect(lifetime(fields) == 60)
        #expect(lifetime(fields, .shared) == 0)
    }
}
