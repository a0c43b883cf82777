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
        #expect(try failure(200, "sluice; fwd=uri-miss; fwd-status=200", isSluice: true) == nil)
        #expect(try failure(302, "sluice; fwd=uri-miss; fwd-status=302", isSluice: true) == nil)
    }

    @Test func `any response of another program in place of a sluice is a failure`() throws {
        for status in [200, 204, 302, 304, 404] {
            #expect(try failure(status, nil, isSluice: true) == .itself)
        }
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

    @Test func `a probe does not take a refusal for a parent that works`() {
        #expect(ParentFailure.isOver(after: .badRequest, isSluice: true))
        for status: UInt16 in [200, 302, 401, 404, 421, 503] {
            #expect(!ParentFailure.isOver(after: HTTPStatus(rawValue: status), isSluice: true))
        }
        for status: UInt16 in [200, 302, 401, 404] {
            #expect(ParentFailure.isOver(after: HTTPStatus(rawValue: status), isSluice: false))
        }
        for status: UInt16 in [407, 421, 500, 503] {
            #expect(!ParentFailure.isOver(after: HTTPStatus(rawValue: status), isSluice: false))
        }
    }

    @Test(arguments: [(401, "TOKEN"), (421, "--host-name"), (200, "template"), (503, "")])
    func `the error of a parent says what to do`(_ status: Int, _ advice: String) throws {
        let parent = try Parent("http://:secret@p:1", isTrusted: false)
        let error = ParentFailure.error(HTTPStatus(rawValue: UInt16(status)), of: parent)
        #expect(advice.isEmpty ? error.advice.isEmpty : error.advice.contains(advice))
        #expect(error.message.contains("\(status)") && !"\(error)".contains("secret"))
    }
}
