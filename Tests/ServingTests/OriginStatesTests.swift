import CachePolicy
import HTTP
import Posix
import Routing
import SharedStore
import Testing
import URISyntax
import Upstream

@testable import Model
@testable import Serving

/// Whether what is served is reduced to what is stored, and whose state counts.
@Suite struct OriginStatesTests {
    private func list() throws -> Resource {
        let url = "https://cdn.test/l.m3u8"
        return Resource(
            .init(
                url: try AbsoluteURL(url), cacheKey: CacheKey(url: url),
                session: Session(id: SessionID(7), fields: Fields()), policy: .media,
                forwardedFields: Fields()))
    }

    /// Notes that a name server gave no answer in time.
    private func fail(_ url: String, in health: OriginHealth) throws {
        let origin = try AbsoluteURL(url).origin
        var error = UpstreamError(.resolve, host: origin.host)
        error.isSilence = true
        let start = Monotonic(nanoseconds: 5_000_000_000_000)
        _ = health.failed(
            OriginHealth.Failure(
                origin: origin, error: error, silentSince: start, now: start + .seconds(5 as Int64)
            ))
    }

    @Test func `a playlist is reduced while any origin is down`() throws {
        let origins = OriginStates(Parents(), sharedStore: nil)
        let list = try list()
        #expect(!origins.mustReduce(list) && origins.state(of: list) == .up)
        try fail("https://other.test/", in: origins.health)
        #expect(origins.mustReduce(list) && origins.state(of: list) == .up)
        try fail("https://cdn.test/", in: origins.health)
        #expect(origins.state(of: list) == .down)
    }

    @Test func `nothing is reduced while the shared store answers, which may have the rest`() throws
    {
        let shared = SharedStoreReport(try BucketLocation("s3://films/tier"))
        let origins = OriginStates(Parents(), sharedStore: shared)
        try fail("https://cdn.test/", in: origins.health)
        #expect(!origins.mustReduce(try list()) && !origins.hasDown)
        shared.note(isUp: false)
        #expect(origins.mustReduce(try list()))
    }

    @Test func `a parent that answers stands for an origin that is down`() throws {
        let parents = Parents([try Parent("http://parent.test:9000", isTrusted: false)])
        let origins = OriginStates(parents, sharedStore: nil)
        try fail("https://cdn.test/", in: origins.health)
        let list = try list()
        #expect(origins.hasDown && !origins.mustReduce(list) && origins.state(of: list) == .up)
        try fail("http://parent.test:9000/", in: origins.parents.health)
        #expect(origins.mustReduce(list) && origins.state(of: list) == .down)
    }
}
