import HTTP
import Testing
import Upstream

@testable import Model

/// Which failures a later request may not meet.
@Suite struct `Failures of a request` {
    private func failure(_ status: UInt16) -> ProxyFailure {
        ProxyFailure(originStatus: HTTPStatus(rawValue: status), subject: "http://h/a")
    }

    @Test(arguments: [401, 403, 410] as [UInt16])
    func `a refusal may end with a new token`(status: UInt16) {
        #expect(failure(status).isOfToken)
    }

    @Test(arguments: [400, 404, 408, 416, 429, 451, 500, 503] as [UInt16])
    func `another status does not depend on a token`(status: UInt16) {
        #expect(!failure(status).isOfToken)
    }

    @Test(arguments: [201, 202, 205, 206, 207, 208, 226, 299, 304] as [UInt16])
    func `a success without the content is a 502 that may be served stale`(status: UInt16) {
        let made = failure(status)
        #expect(made.fault == .origin && made.status == .badGateway && made.allowsStale)
        #expect(made.originStatus?.rawValue == status)
    }

    @Test func `a failure is written as its message`() {
        let made: any Error = failure(410)
        #expect("\(made)" == "http://h/a: the origin answered 410 Gone")
    }

    @Test func `a page of another site is told the same of an unknown name and a private one`() {
        let told = [UpstreamError.Kind.resolve, .addressRefused("10.0.0.1")].map {
            ProxyFailure(UpstreamError($0, host: "tv.lan"), subject: "http://tv.lan/a")
                .toldToForeignPage
        }
        #expect(told[0] != nil && told[0] == told[1])
        // Players in pages give up after a status that they cannot read, and after a 403.
        #expect(told[0]?.isHiddenFromPages == false && told[0]?.status == .badGateway)
        #expect(told[0]?.proxyStatus == nil)
        #expect(told[0]?.message.contains("tv.lan") == false)
        let refused = ProxyFailure(UpstreamError(.connect, host: "h"), subject: "http://h/a")
        #expect(refused.toldToForeignPage == nil && failure(404).toldToForeignPage == nil)
    }

    @Test func `an origin that is not named is refused as a matter of configuration`() {
        for isRedirect in [false, true] {
            let made = ProxyFailure(
                UpstreamError(.originNotNamed(isRedirect: isRedirect), host: "h"),
                subject: "http://h/a")
            #expect(made.status == .forbidden && made.fault == .client)
            #expect(made.isUnasked == !isRedirect && made.lookupDetail == "only-origin")
            #expect(!made.allowsStale && !made.isWorthRetrying)
            #expect(made.toldToForeignPage == nil)
        }
    }

    @Test func `a request that the daemon forbids does not depend on a token`() {
        #expect(!ProxyFailure(.client, .forbidden, "forbidden").isOfToken)
    }
}
