import HTTP
import Model
@testable import Serving
import Testing

/// What follows where a text could not be made.
@Suite struct UnmadeTextTests {
    private static let sent = RequestFacts.Reply()
    private static let confirmed = RequestFacts.Reply(isRevalidated: true)
    private static let unreadDisk = ProxyFailure(.us, .internalServerError, "no disk")

    private func next(
        _ failure: ProxyFailure, _ reply: RequestFacts.Reply?, hasFetchedAgain: Bool = false
    ) -> UnmadeText {
        UnmadeText(failure, reply, hasFetchedAgain: hasFetchedAgain)
    }

    @Test func `a text that only has to wait is neither removed nor fetched`() {
        for reply in [nil, Self.sent, Self.confirmed] {
            #expect(next(.textsWait, reply) == .refuse)
            #expect(next(.windowUnread, reply) == .refuse)
        }
    }

    @Test func `a text that the disk cannot read is fetched again once`() {
        for reply in [Self.sent, Self.confirmed] {
            #expect(next(Self.unreadDisk, reply) == .fetchAgain)
        }
        #expect(
            next(Self.unreadDisk, Self.sent, hasFetchedAgain: true) == .failOrigin(removes: true))
        #expect(next(Self.unreadDisk, nil) == .planUnreadable)
    }

    @Test func `a text that other sessions may read is not removed`() {
        var failure = ProxyFailure(.origin, .badGateway, "no playlist")
        #expect(next(failure, Self.sent) == .failOrigin(removes: true))
        failure.dependsOnReader = true
        #expect(next(failure, Self.sent) == .failOrigin(removes: false))
        for reply in [nil, Self.confirmed] { #expect(next(failure, reply) == .planUnreadable) }
    }
}
