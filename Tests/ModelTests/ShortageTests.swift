import HTTP
import Posix
import Testing
import URISyntax
import Upstream

@testable import Model

/// What this machine lacks says nothing of an origin.
@Suite struct ShortageTests {
    private let error = UpstreamError(.shortage, host: "cdn.test")

    @Test func `a shortage of this machine never marks an origin`() throws {
        let health = OriginHealth()
        let origin = try AbsoluteURL("https://cdn.test/").origin
        let start = Monotonic(nanoseconds: 5_000_000_000_000)
        for second in 0..<3 {
            let now = start + .seconds(Int64(second))
            let failure = OriginHealth.Failure(
                origin: origin, error: error, silentSince: now, now: now)
            let mark = health.failed(failure)
            #expect(mark?.after == nil)
        }
        #expect(health.state(of: origin) == .up)
    }

    @Test func `a shortage of this machine is a 503 of the daemon that may be served stale`() {
        let failure = ProxyFailure(error, subject: "https://cdn.test/a.ts")
        #expect(failure.fault == .us && failure.status == .serviceUnavailable)
        #expect(failure.allowsStale && failure.isUnasked && failure.retryAfter != nil)
        #expect(failure.proxyStatus?.error == .proxyInternalError)
    }
}
