@testable import Model
@testable import Serving
import Testing
import URISyntax

@Suite struct `Origins to connect to early` {
    private static func origins(
        _ urls: [String], list: String = "http://list.test/a.m3u8",
        _ change: (inout ProxySettings) -> Void = { _ in }
    ) throws -> [String] {
        var settings = ProxySettings()
        change(&settings)
        var early = EarlyOrigins(settings, list: try AbsoluteURL(list))
        for url in urls { early.add(try AbsoluteURL(url)) }
        return early.origins.map(\.description)
    }

    @Test func `the first two origins are taken, each once`() throws {
        let urls = ["https://a.test/1", "https://a.test/2", "https://b.test/1", "https://c.test/1"]
        #expect(try Self.origins(urls) == ["https://a.test", "https://b.test"])
        #expect(try Self.origins(urls) { $0.connectsEarly = false } == [])
    }

    @Test func `a public playlist causes no connection to a private network`() throws {
        let urls = ["http://nas.lan/1", "http://b.test/1"]
        let allow: (inout ProxySettings) -> Void = { $0.privateHosts = ["nas.lan"] }
        #expect(try Self.origins(urls, allow) == ["http://b.test"])
        let ownList = try Self.origins(urls, list: "http://nas.lan/a.m3u8", allow)
        #expect(ownList == ["http://nas.lan", "http://b.test"])
    }
}
