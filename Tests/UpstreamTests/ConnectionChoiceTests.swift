import Testing

@testable import Upstream

struct ConnectionChoiceTests {
    @Test func `a transfer shares the connections of its route unless there is a reason`() {
        for lane in [Lane.express, .playback, .prefetch] {
            #expect(ConnectionChoice(lane: lane).kind == .shared)
        }
        #expect(ConnectionChoice(lane: .background).kind == .background)
        #expect(ConnectionChoice(lane: .background, isCounted: true).kind == .shared)
    }

    @Test func `playlists keep apart from bodies on HTTP/2 and from segments that are bounded`() {
        #expect(ConnectionChoice(lane: .express, isBusy: true).kind == .express)
        #expect(ConnectionChoice(lane: .express, isBusy: true, isCounted: true).kind == .express)
        #expect(ConnectionChoice(lane: .express, arePlayersBound: true).kind == .express)
        #expect(ConnectionChoice(lane: .playback, arePlayersBound: true).kind == .shared)
    }

    @Test func `bounds keep no playlist apart from an HTTP/2 connection without bodies`() {
        var choice = ConnectionChoice(lane: .express, arePlayersBound: true, isMultiplexing: true)
        #expect(choice.kind == .shared)
        choice.isBusy = true
        #expect(choice.kind == .express)
    }

    @Test func `an origin that counts connections sees no more of them for bounds`() {
        let choice = ConnectionChoice(lane: .express, arePlayersBound: true, isCounted: true)
        #expect(choice.kind == .shared)
    }
}
