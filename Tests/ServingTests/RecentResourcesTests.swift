import CachePolicy
import HTTP
@testable import Model
@testable import Serving
import Routing
import Testing
import URISyntax

/// What the proxy remembers of a hit besides the store: resources by target, IDs of sessions.
@Suite struct `Requests that come again` {
    private static func resource(_ target: String, agent: String) throws -> Resource {
        Resource(
            .init(
                url: try AbsoluteURL("http://h\(target)"), cacheKey: CacheKey(url: target),
                session: Session(id: SessionID(1), fields: Fields()), policy: .media,
                forwardedFields: ["User-Agent": agent]))
    }

    private static func request(_ target: String, agent: String = "player") -> RequestHead {
        RequestHead(method: .get, target: target, fields: ["User-Agent": agent])
    }

    @Test func `a target is recognized from its second occurrence on`() throws {
        var recent = RecentResources()
        let (request, made) = (Self.request("/a"), try Self.resource("/a", agent: "player"))
        recent.remember(made, for: request)
        #expect(recent.resource(for: request, keys: 0) == nil)
        recent.remember(made, for: request)
        #expect(recent.resource(for: request, keys: 0) === made)
        #expect(recent.resource(for: Self.request("/b"), keys: 0) == nil)
    }

    @Test func `a request of another player or under other key rules is routed again`() throws {
        var recent = RecentResources()
        let (request, made) = (Self.request("/a"), try Self.resource("/a", agent: "player"))
        for _ in 0..<2 { recent.remember(made, for: request) }
        #expect(recent.resource(for: Self.request("/a", agent: "other"), keys: 0) == nil)
        #expect(recent.resource(for: request, keys: 1) == nil)
    }

    @Test func `requests through another proxy are not remembered`() throws {
        var recent = RecentResources()
        var request = Self.request("/a")
        request.fields.append("CDN-Loop", "other")
        for _ in 0..<2 {
            recent.remember(try Self.resource("/a", agent: "player"), for: request)
        }
        #expect(recent.resource(for: request, keys: 0) == nil)
    }

    @Test func `a session without headers derives its ID from its entry`()
        throws
    {
        let url = try AbsoluteURL("http://h/list.m3u8?token=a")
        let session = Session(startingAt: url)
        #expect(session.id == Session(startingAt: url).id && session.id == session.id)
        #expect(SessionTable.starts(session, at: url))
        #expect(session.id != Session(startingAt: try AbsoluteURL("http://h/other.m3u8")).id)
    }
}
