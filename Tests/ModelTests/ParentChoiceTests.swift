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

    @Test func `requests with header fields of a mount go to no parent`() throws {
        var mount = try Mount("/own/=https://cdn.test/")
        try mount.add(Entry.Header(name: "X-Api-Key", value: "s3cret"))
        let users = MountUsers()
        users.replace([mount])
        let plain = try resource("https://mount*%2Fown%2F@cdn.test/l.m3u8")
        let list = plain.changing { $0.mountUser = users.user(of: $0.url) }
        #expect(list.mountUser != nil)
        for isTrusted in [false, true] {
            let choice = try choice(isTrusted: isTrusted)
            #expect(choice.parent(for: list) == nil && !choice.takesTitle(of: list))
            #expect((choice.parent(for: plain) != nil) == isTrusted)
        }
    }

    @Test func `a parent that is not trusted is left out, and an origin stays up`() throws {
        let choice = try choice()
        let list = try resource("https://cdn.test/l.m3u8")
        let origin = try AbsoluteURL("http://parent.test:9000/").origin
        let error = UpstreamError(.tls, host: "parent.test")
        let start = Monotonic(nanoseconds: 5_000_000_000_000)
        func failed(_ health: OriginHealth, at now: Monotonic) -> OriginHealth.State? {
            health.failed(
                OriginHealth.Failure(origin: origin, error: error, silentSince: now, now: now))?
                .after
        }
        #expect(failed(choice.health, at: start) == .suspected)
        #expect(choice.parent(for: list) == nil)
        #expect(failed(choice.health, at: start + .milliseconds(500)) == .down)
        #expect(failed(OriginHealth(), at: start) == nil)
    }

    @Test(arguments: ["text", "title", "host", "prefix", "written"])
    func `a parent is asked past what it had when something was purged`(_ kind: String) throws {
        let purges = ParentPurges()
        let start = Monotonic(nanoseconds: 5_000_000_000_000)
        let url = "https://cdn.test/a.ts"
        let resource = try resource(url)
        let other = Resource(
            .init(
                url: try AbsoluteURL("https://other.test/a.ts"),
                cacheKey: CacheKey(url: "https://other.test/a.ts"),
                session: Session(id: SessionID(8), fields: Fields()), policy: .media,
                forwardedFields: Fields()))
        func control(_ seconds: Int64, _ resource: Resource) -> String? {
            purges.control(for: resource, now: start + .seconds(seconds))
        }
        #expect(control(0, resource) == nil)
        switch kind {
        case "text": purges.add(.texts([url]), now: start)
        case "title": purges.add(.titles([7]), now: start)
        case "written": purges.add(.written(url), now: start)
        case "prefix":
            purges.add(.prefixes([try #require(PurgePrefix("https://cdn.test/"))]), now: start)
        default: purges.add(.host(try #require(PurgeHost("cdn.test"))), now: start)
        }
        #expect(control(0, resource) == "no-cache" && control(1, resource) == "no-cache")
        #expect(control(2, resource) == "max-age=1" && control(100, resource) == "max-age=99")
        #expect(control(864_000, resource) == "max-age=863999" && control(2, other) == nil)
        // Another purge changes nothing for it.
        purges.add(.texts(["https://cdn.test/b.ts"]), now: start + .seconds(50 as Int64))
        #expect(control(100, resource) == "max-age=99")
        guard kind != "written" else { return }
        // Nor do clients that change very many.
        for number in 0..<5_000 { purges.add(.written("https://cdn.test/\(number)"), now: start) }
        #expect(control(100, resource) == "max-age=99")
    }

    @Test func `a title is taken by the parents that answer, or by none if an origin is asked`()
        throws
    {
        let choice = ParentChoice(
            Parents([
                try Parent("http://one.test:9000", isTrusted: false),
                try Parent("http://two.test:9000", isTrusted: true),
            ]))
        func takers(_ list: Resource) -> [String] {
            choice.takers(ofTitle: list).map(\.origin.host)
        }
        let list = try resource("https://cdn.test/l.m3u8")
        let secret = try resource("https://user:word@cdn.test/l.m3u8")
        #expect(takers(list) == ["one.test", "two.test"] && takers(secret) == ["two.test"])
        let (origin, now) = (try AbsoluteURL("http://two.test:9000/").origin, Monotonic.now())
        let error = UpstreamError(.connect, host: "two.test")
        _ = choice.health.failed(
            OriginHealth.Failure(origin: origin, error: error, silentSince: now, now: now))
        #expect(takers(list) == ["one.test"] && takers(secret) == [])
        _ = choice.jars.receive(
            "id=7; Path=/", from: list.url, of: session.id, now: now, date: .now())
        #expect(takers(list) == [])
    }

    @Test func `an answer of a parent counts for the titles that it is asked for`() throws {
        let choice = try choice()
        let list = try resource("https://cdn.test/l.m3u8")
        let secret = try resource("https://user:word@cdn.test/l.m3u8")
        let origin = try AbsoluteURL("http://parent.test:9000/").origin
        let start = Monotonic(nanoseconds: 5_000_000_000_000)
        func isHeard(_ list: Resource, after wait: Int64) -> Bool {
            choice.hasTaker(
                ofTitle: list, heardWithin: .milliseconds(1_000), now: start + .milliseconds(wait))
        }
        #expect(!isHeard(list, after: 0))
        _ = choice.health.answered(origin, now: start)
        #expect(isHeard(list, after: 0) && isHeard(list, after: 999))
        #expect(!isHeard(list, after: 1_000) && !isHeard(secret, after: 0))
        let (error, now) = (UpstreamError(.connect, host: "parent.test"), start + .milliseconds(9))
        _ = choice.health.failed(
            OriginHealth.Failure(origin: origin, error: error, silentSince: now, now: now))
        #expect(!isHeard(list, after: 10))
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
            "id=7; Path=/a", from: list.url, of: session.id, now: .now(), date: .now())
        #expect(isNew && (choice.parent(for: list) != nil) == isTrusted)
        // What the other list names may be among that for which there is a cookie.
        #expect(choice.parent(for: other) != nil && choice.takesTitle(of: other) == isTrusted)
    }
}
