import CachePolicy
import HTTP
import Posix
import Routing
import Testing
import URISyntax
import Upstream

@testable import Model

/// Which requests a parent gets.
@Suite struct ParentChoiceTests {
    private let session = Session(id: SessionID(7), fields: Fields())

    private func choice(isTrusted: Bool = false) throws -> ParentChoice {
        ParentChoice(Parents([try Parent("http://parent.test:9000", isTrusted: isTrusted)]))
    }

    private func resource(_ url: String, forwarding fields: Fields = Fields()) throws -> Resource {
        Resource(
            .init(
                url: try AbsoluteURL(url), cacheKey: CacheKey(url: url), session: session,
                policy: .media, forwardedFields: fields))
    }

    @Test func `a parent that does not answer takes nothing`() throws {
        let choice = try choice()
        let list = try resource("https://cdn.test/l.m3u8")
        #expect(choice.isUp && choice.parent(for: list) != nil && choice.takesTitle(of: list))
        let (origin, now) = (try AbsoluteURL("http://parent.test:9000/").origin, Monotonic.now())
        let error = UpstreamError(.connect, host: "parent.test")
        _ = choice.health.failed(
            OriginHealth.Failure(origin: origin, error: error, silentSince: now, now: now))
        #expect(!choice.isUp && choice.parent(for: list) == nil && !choice.takesTitle(of: list))
        _ = choice.health.answered(origin, now: now)
        #expect(choice.parent(for: list) != nil)
        #expect(!ParentChoice(Parents()).isUp)
    }

    @Test(arguments: [false, true])
    func `credentials of a request go to a trusted parent or to none`(_ isTrusted: Bool) throws {
        let choice = try choice(isTrusted: isTrusted)
        var fields = Fields()
        fields.append(.authorization, "Basic eDp5")
        let requests = [
            try resource("https://cdn.test/l.m3u8", forwarding: fields),
            try resource("https://user:word@cdn.test/l.m3u8"),
        ]
        #expect(requests.allSatisfy { (choice.parent(for: $0) != nil) == isTrusted })
    }

    @Test(arguments: [false, true])
    func `cookies of a session go to a trusted parent or to none`(_ isTrusted: Bool) throws {
        let choice = try choice(isTrusted: isTrusted)
        let list = try resource("https://cdn.test/a/l.m3u8")
        let other = try resource("https://cdn.test/b/l.m3u8")
        let isNew = choice.jars.receive(
            "id=7; Path=/a", from: list.url, of: session.id, now: .now())
        #expect(isNew && (choice.parent(for: list) != nil) == isTrusted)
        // What the other list names may be among that for which there is a cookie.
        #expect(choice.parent(for: other) != nil && choice.takesTitle(of: other) == isTrusted)
    }
}
