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
}
