import Posix
import Testing
import URISyntax
import Upstream

@testable import Model

/// After which failures an origin is down.
@Suite struct OriginHealthTests {
    /// The state after one failure.
    private func state(after error: UpstreamError) throws -> OriginHealth.State {
        let health = OriginHealth()
        let origin = try AbsoluteURL("https://cdn.test/").origin
        let start = Monotonic(nanoseconds: 5_000_000_000_000)
        let failure = OriginHealth.Failure(
            origin: origin, error: error, silentSince: start, now: start + .seconds(5 as Int64))
        _ = health.failed(failure)
        return health.state(of: origin)
    }

    @Test(arguments: [UpstreamError.Kind.resolve, .proxy])
    func `an origin is down once a name server or a proxy gave no answer in time`(
        kind: UpstreamError.Kind
    ) throws {
        var error = UpstreamError(kind, host: "cdn.test")
        #expect(try state(after: error) == .suspected)
        error.isSilence = true
        #expect(try state(after: error) == .down)
    }

    @Test func `the refusal tells how long ago the silence began, not when it was noticed`() throws
    {
        let health = OriginHealth()
        let url = try AbsoluteURL("https://cdn.test/a.ts")
        let start = Monotonic(nanoseconds: 5_000_000_000_000)
        _ = health.failed(
            OriginHealth.Failure(
                origin: url.origin, error: UpstreamError(.connectTimeout, host: "cdn.test"),
                silentSince: start, now: start + .seconds(5 as Int64)))
        let mark = try #require(health.mark(of: url.origin))
        let failure = mark.refusal(of: url, now: start + .seconds(7 as Int64))
        #expect(failure.message.contains("has not answered for 7 s"))
    }
}
