import HTTP
@testable import Origin
import Testing
import URISyntax
@testable import Upstream

/// Whose failure a parent's response is.
@Suite struct ParentFailureTests {
    private func failure(_ status: Int, _ cacheStatus: String?, isSluice: Bool) throws
        -> ParentFailure?
    {
        var fields = Fields()
        if let cacheStatus { fields.append(.cacheStatus, cacheStatus) }
        let head = TransferHead(
            status: HTTPStatus(rawValue: UInt16(status)), fields: fields,
            finalURL: try AbsoluteURL("http://cdn.test/a"), setCookies: [], provesItsEnd: true)
        return ParentFailure(head, isSluice: isSluice)
    }

    @Test func `another sluice states whose error a response is`() throws {
        #expect(try failure(404, "sluice; fwd=uri-miss; fwd-status=404", isSluice: true) == nil)
        #expect(try failure(503, "sluice; fwd=uri-miss; fwd-status=503", isSluice: true) == nil)
        #expect(
            try failure(504, "sluice; fwd=uri-miss; detail=origin-error", isSluice: true) == .itsWay
        )
        for status in [400, 401, 421, 500, 503] {
            #expect(try failure(status, nil, isSluice: true) == .itself)
        }
        #expect(try failure(200, nil, isSluice: true) == nil)
    }

    @Test func `of other caches' responses, gateway statuses are failures`() throws {
        for status in [407, 421, 503] {
            #expect(try failure(status, nil, isSluice: false) == .itself)
        }
        for status in [502, 504] { #expect(try failure(status, nil, isSluice: false) == .itsWay) }
        for status in [200, 206, 304, 401, 403, 404, 416, 500] {
            #expect(try failure(status, nil, isSluice: false) == nil)
        }
    }
}
