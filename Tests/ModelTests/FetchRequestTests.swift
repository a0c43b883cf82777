import CachePolicy
import HLS
import HTTP
import Model
import Testing
import URISyntax
import Upstream

/// Which flights answer a request.
@Suite struct FetchRequestTests {
    private func resource(_ token: String) throws -> Resource {
        let url = "https://cdn.test/s.ts"
        return Resource(
            .init(
                url: try AbsoluteURL("\(url)?token=\(token)"), cacheKey: CacheKey(url: url),
                session: Session(startingAt: try AbsoluteURL("https://cdn.test/l.m3u8")),
                role: .segment, policy: .media, forwardedFields: Fields()))
    }

    @Test func `a request at a renewed URL is not answered by a flight for the expired one`() throws
    {
        let (old, new) = (try resource("a"), try resource("b"))
        var request = FetchRequest(
            resource: new, wanted: .whole, repliesAt: .head, lane: .playback)
        // Tokens differ among players that share a flight.
        #expect(request.takesURL(of: old) && request.takesURL(of: new))
        request.terms.needsOwnURL = true
        #expect(!request.takesURL(of: old) && request.takesURL(of: new))
    }
}
