import HTTP
@testable import Origin
import Testing
import URISyntax
@testable import Upstream

/// Whose failure a parent's response is.
@Suite struct ParentFailureTests {
    private func head(_ status: Int, _ cacheStatus: String?) throws -> TransferHead {
        var fields = Fields()
        if let cacheStatus { fields.append(.cacheStatus, cacheStatus) }
        return TransferHead(
            status: HTTPStatus(rawValue: UInt16(status)), version: .http11,
            fields: fields, finalURL: try AbsoluteURL("http://cdn.test/a"), setCookies: [],
            redirects: 0, provesItsEnd: true)
    }

    private func failure(_ status: Int, _ cacheStatus: String?, isSluice: Bool) throws
        -> ParentFailure?
    {
        ParentFailure(try head(status, cacheStatus), isSluice: isSluice)
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

    @Test func `a response that a parent does not work by is an error of that parent`() throws {
        let sluice = try Parent("http://parent.test:9000", isTrusted: false)
        let other = try Parent("http://parent.test:9000/{url}", isTrusted: false)
        func found(_ status: Int, by parent: Parent) throws -> UpstreamError? {
            ParentFailure.error(of: parent, in: try head(status, nil))
        }
        for (status, parent) in [(503, other), (503, sluice), (500, sluice)] {
            let error = try found(status, by: parent)
            #expect(error?.kind == .proxy)
            #expect(error?.message.contains("it answered \(status)") == true)
        }
        for status in [200, 404, 500, 502, 504] {
            #expect(try found(status, by: other) == nil)
        }
    }
}
