// Responses that may belong to bodies that other flights fill, or have stored meanwhile.
import HTTP
@testable import Model
@testable import Origin
import Posix
import Testing
import Upstream

struct FlightRivalTests {
    @Test func `a prefetch waits for flights that fill possibly the same body`() {
        var story = FlightStory { $0.beganAhead = true }
        story.join(.completion)
        story.start()
        #expect(story.machine.waitsForRivals)
        story.perform(story.machine.waitForOthers())
        #expect(story.transfer == .none && story.machine.isWaitingForOthers)
        story.others(.busy)
        #expect(story.machine.isWaitingForOthers && story.timers == 1)
        story.others(.filled)
        #expect(Array(story.told.values) == [.filledByOthers])
        story.checkEnd()
        #expect(story.broken == [])
    }

    @Test(arguments: [FlightMachine.Others.done, .discarded])
    func `a prefetch is requested again once the other flights are done`(
        others: FlightMachine.Others
    ) {
        var story = FlightStory { $0.beganAhead = true }
        story.join(.completion)
        story.start()
        story.perform(story.machine.waitForOthers())
        story.others(others)
        #expect(story.machine.phase == .backingOff && story.delay == .zero)
        story.timer()
        #expect(story.sends == 2)
    }

    @Test func `a prefetch without bytes to compare keeps the stored body`() {
        var story = FlightStory { $0.beganAhead = true }
        story.join(.completion)
        story.start()
        #expect(story.machine.asksWithoutProof)
        story.perform(story.machine.waitForOthers())
        story.others(.gone)
        story.checkEnd()
        #expect(story.sends == 1 && story.body?.isDiscarded != true)
        #expect(Array(story.told.values) == [.failure(.badGateway)])
    }

    @Test func `a player does not wait for other flights in vain`() {
        var story = FlightStory { $0.beganAhead = true }
        story.join(.completion)
        story.start()
        story.perform(story.machine.waitForOthers())
        #expect(story.machine.takeForPlayback(.playback) != nil)
        story.others(.gone)
        #expect(story.machine.phase == .backingOff && story.delay == .zero)
    }

    @Test func `a response that a player waits for is requested again for comparison`() {
        var story = FlightStory { $0.beganAhead = true }
        story.join(.completion)
        story.start()
        #expect(story.machine.takeForPlayback(.playback) != nil)
        #expect(!story.machine.waitsForRivals && story.machine.mayAskAgain)
        story.perform(story.machine.waitForOthers())
        story.others(.done)
        #expect(story.machine.phase == .backingOff && story.delay == .zero)
        story.timer()
        #expect(story.sends == 2)
        story.whole(1_000_000)
        #expect(!story.machine.mayAskAgain)
    }

    @Test func `a prefetch whose object is not stored fails`() {
        var story = FlightStory { $0.beganAhead = true }
        story.join(.completion)
        story.start()
        story.beginning.isStorable = false
        story.whole(1_000_000)
        #expect(Array(story.told.values) == [.failure(.insufficientStorage)])
    }

    @Test func `a prefetch that waits for other flights ends when it is no longer wanted`() {
        var story = FlightStory { $0.beganAhead = true }
        story.start()
        story.perform(story.machine.waitForOthers())
        story.others(.busy, isWanted: false)
        story.checkEnd()
        #expect(story.broken == [])
    }
}
