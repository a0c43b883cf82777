import HTTP
import Model
import Posix
@testable import Serving
import Testing
import URISyntax

/// What a client is told about a resource that is not served.
@Suite struct RefusalTests {
    private func failure(_ refusal: Refusal, paused: String?) throws -> ProxyFailure {
        refusal.failure(
            of: try AbsoluteURL("http://h/1.ts"), nil, known: nil, isOfRecording: true,
            paused: paused, now: Monotonic(nanoseconds: 0))
    }

    @Test(arguments: [Refusal.notStored, .partNotStored, .nothingKept])
    func `a paused recording is named as the cause, with the command that continues it`(
        refusal: Refusal
    ) throws {
        let paused = try failure(refusal, paused: "0a1b2c3d")
        #expect(paused.status == .gatewayTimeout && paused.fault == .us)
        #expect(paused.message.contains("is paused because the daemon crashed"))
        #expect(paused.message.hasSuffix("`sluice record --resume 0a1b2c3d`"))
        let ended = try failure(refusal, paused: nil)
        #expect(ended.message.contains("an ended recording plays from the store alone"))
    }

    private func cacheStatus(_ failure: ProxyFailure) -> String? {
        let request = RequestHead(method: .get, target: "/")
        let answer = AnswerHead.failure(failure, request: request, settings: ProxySettings())
        return answer.0.fields.first(.cacheStatus)
    }

    // RFC 9211 section 2.3: `fwd-status` stands only beside `fwd`.
    @Test func `a request that was not forwarded has no status of an origin in Cache-Status`() {
        var failure = ProxyFailure(originStatus: .serviceUnavailable, subject: "http://h/1.ts")
        #expect(
            cacheStatus(failure) == "sluice; fwd=uri-miss; fwd-status=503; detail=origin-error")
        failure.isUnasked = true
        #expect(cacheStatus(failure) == "sluice; detail=origin-error")
    }

    @Test func `a refusal to a page of another site names the fields that it depends on`() {
        let request = RequestHead(method: .get, target: "/")
        let settings = ProxySettings()
        for failure in [ProxyFailure.hiddenFromPages, .hiddenMount] {
            let (head, _) = AnswerHead.failure(failure, request: request, settings: settings)
            #expect(
                head.fields.combined(.vary) == "Origin, Sec-Fetch-Site, Sec-Fetch-Mode")
        }
        let other = ProxyFailure(originStatus: .notFound, subject: "http://h/1.ts")
        let (head, _) = AnswerHead.failure(other, request: request, settings: settings)
        #expect(!head.fields.contains(.vary))
    }

    @Test func `a 204 of the origin is no error`() {
        let passed = ProxyFailure(originStatus: .noContent, subject: "http://h/1.ts")
        #expect(cacheStatus(passed) == "sluice; fwd=uri-miss; fwd-status=204")
    }

    @Test(
        arguments: zip([Refusal.onlyIfCached, .nameGivenAway], ["only-if-cached", "name-reused"]))
    func `a client's request that was looked up and refused has the cause in Cache-Status`(
        refusal: Refusal, detail: String
    ) throws {
        let clients = try failure(refusal, paused: nil)
        #expect(cacheStatus(clients) == "sluice; detail=\(detail)")
        let daemons = try failure(.notStored, paused: nil)
        #expect(cacheStatus(daemons) == nil)
    }
}
