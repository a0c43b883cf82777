import Testing
import URISyntax
import Upstream

@testable import DaemonService

/// The origins that may be fetched from by the settings.
@Suite struct OnlyOriginTests {
    private func isPermitted(
        _ url: String, by lists: [String: [String]]
    ) async throws -> Bool {
        let configuration = try await DaemonConfiguration(scalars: [:], lists: lists, file: nil)
        let origin = try AbsoluteURL(url).origin
        return configuration.upstream.onlyOrigins.current.refusal(of: origin) == nil
    }

    @Test(arguments: [
        ("cdn.example", "https://cdn.example/", true), ("CDN.example", "http://cdn.example/", true),
        ("cdn.example", "https://cdn.example:8443/", true),
        ("cdn.example:8443", "https://cdn.example:8443/", true),
        ("cdn.example:8443", "https://cdn.example/", false),
        ("cdn.example", "https://a.cdn.example/", false),
        ("*.cdn.example", "https://a.cdn.example/", true),
        ("*.cdn.example", "https://cdn.example/", false),
        ("2001:db8::1", "http://[2001:DB8:0::1]/", true),
        ("a?.example", "http://a1.example/", true),
    ])
    func `an origin is named as in other settings of origins`(
        _ pattern: String, _ url: String, _ expected: Bool
    ) async throws {
        #expect(try await isPermitted(url, by: ["only-origin": [pattern]]) == expected)
    }

    @Test func `all origins are permitted unless some are named`() async throws {
        #expect(try await isPermitted("http://any.example/", by: [:]))
    }

    @Test(arguments: [
        ("mount", "/demo/=https://server.example/vod/"), ("parent", "http://server.example:9000"),
        ("trusted-parent", "http://server.example/{scheme}/{host}{path}"),
        ("origin-proxy", "*=socks5h://server.example:1080"),
    ])
    func `the host of another setting is named by it`(
        _ setting: String, _ value: String
    ) async throws {
        let lists = ["only-origin": ["cdn.example"], setting: [value]]
        #expect(try await isPermitted("https://server.example/", by: lists))
        #expect(try await isPermitted("https://cdn.example/", by: lists))
        #expect(try await !isPermitted("https://other.example/", by: lists))
    }
}
