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
}
