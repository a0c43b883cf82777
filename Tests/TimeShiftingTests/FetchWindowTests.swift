import HTTP
import Model
import Testing

@testable import TimeShifting

/// What the origin's window says about the fetches of its segments.
@Suite struct FetchWindowTests {
    private static func failure(_ status: HTTPStatus) -> ProxyFailure {
        ProxyFailure(originStatus: status, subject: "http://h/s.ts")
    }

    @Test func `only a segment behind the window can be gone for good`() {
        let window = FetchWindow(start: 10)
        for status in [HTTPStatus.notFound, .gone] {
            #expect(window.isGone(9, after: Self.failure(status)))
            // The newest may not be there yet.
            #expect(!window.isGone(10, after: Self.failure(status)))
            #expect(!window.isGone(15, after: Self.failure(status)))
        }
        for status in [HTTPStatus.forbidden, .badGateway] {
            #expect(!window.isGone(9, after: Self.failure(status)))
        }
        #expect(!window.isGone(9, after: .noRoom))
    }
}
