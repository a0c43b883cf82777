import CachePolicy
import HTTP
import Testing

/// What `Cache-Status` says of each outcome (RFC 9211).
@Suite struct `Outcomes in Cache-Status` {
    // Section 2.1: `hit` means that the request was not forwarded.
    @Test(arguments: [Disposition.staleOnError, .offline])
    func `what is served after the origin failed is no hit`(_ disposition: Disposition) {
        let detail = disposition == .offline ? "offline" : "origin-unreachable"
        let known = disposition.cacheStatus(ttl: -7, status: nil)
        #expect(known.serialised == "sluice; hit; ttl=-7; detail=\(detail)")
        let failed = disposition.cacheStatus(ttl: -7, status: .serviceUnavailable, failed: .stale)
        #expect(
            failed.serialised == "sluice; fwd=stale; fwd-status=503; ttl=-7; detail=\(detail)")
        let silent = disposition.cacheStatus(ttl: -7, status: nil, failed: .stale)
        #expect(silent.serialised == "sluice; fwd=stale; ttl=-7; detail=\(detail)")
        let reload = disposition.cacheStatus(ttl: 7, status: nil, failed: .request)
        #expect(reload.serialised == "sluice; fwd=request; ttl=7; detail=\(detail)")
    }

    @Test func `a response that is not stored names why the stored one was not used`() {
        func written(_ former: Freshness.StaleReason?) -> String {
            Disposition.bypass(.noStore, over: former).cacheStatus(ttl: nil, status: .ok).serialised
        }
        #expect(written(nil) == "sluice; fwd=uri-miss; fwd-status=200; detail=no-store")
        #expect(written(.expired) == "sluice; fwd=stale; fwd-status=200; detail=no-store")
        #expect(written(.requestNoStore) == "sluice; fwd=request; fwd-status=200; detail=no-store")
        #expect(written(.vary) == "sluice; fwd=vary-miss; fwd-status=200; detail=no-store")
        #expect(Disposition.bypass(.noStore, over: .expired).name == "bypass-no-store")
    }

    @Test func `a 304 names why the origin was asked`() {
        func written(_ reason: Freshness.StaleReason?) -> String {
            Disposition.revalidated(reason).cacheStatus(ttl: 9, status: .notModified).serialised
        }
        #expect(written(.expired) == "sluice; fwd=stale; fwd-status=304; ttl=9; detail=expired")
        #expect(
            written(.requestNoCache)
                == "sluice; fwd=request; fwd-status=304; ttl=9; detail=request-no-cache")
        #expect(written(.vary) == "sluice; fwd=vary-miss; fwd-status=304; ttl=9; detail=vary")
        #expect(written(nil) == "sluice; fwd=stale; fwd-status=304; ttl=9")
    }

    // Section 2.3: without `fwd-status`, the origin would have sent the status of the response.
    @Test func `the rest of a partly stored response comes as a 206`() {
        func written(_ status: HTTPStatus?) -> String {
            Disposition.partial.cacheStatus(ttl: nil, status: status).serialised
        }
        #expect(written(nil) == "sluice; fwd=partial; fwd-status=206; stored")
        #expect(written(.ok) == "sluice; fwd=partial; fwd-status=200; stored")
    }

    @Test func `a request that joined the fetch of an unstored response is collapsed`() {
        let joined = Disposition.bypass(.noLength, isCollapsed: true)
        #expect(
            joined.cacheStatus(ttl: nil, status: .ok).serialised
                == "sluice; fwd=uri-miss; fwd-status=200; collapsed; detail=no-length")
        #expect(!joined.isFirstHand && !joined.hasOriginsWord)
        let first = Disposition.bypass(.noLength)
        #expect(first.isFirstHand && first.hasOriginsWord)
    }

    @Test(arguments: [
        (Disposition.live(), ""), (Disposition.live(isCollapsed: true), " collapsed;"),
    ])
    func `a later viewer of a body that may have no end is collapsed`(
        _ disposition: Disposition, mark: String
    ) {
        #expect(
            disposition.cacheStatus(ttl: nil, status: .ok).serialised
                == "sluice; fwd=uri-miss; fwd-status=200;\(mark) detail=live")
        #expect(disposition.isFirstHand == mark.isEmpty && disposition.name == "live")
    }
}
