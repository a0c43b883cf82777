import HTTP
import Model
@testable import Origin
import Posix
import Testing
import Upstream

/// Requests that are sent once more after the other transfers to their host were ended.
@Suite struct FlightTrialTests {
    private func story(job change: (inout FlightJob) -> Void = { _ in }) -> FlightStory {
        var story = FlightStory(job: change)
        story.join()
        story.start()
        return story
    }

    private func refusal(_ status: UInt16, retryAfter: Interval? = nil) -> ResponseFacts {
        ResponseFacts(status: HTTPStatus(rawValue: status), retryAfter: retryAfter)
    }

    @Test func `a refused request is sent once more, after a pause`() {
        var story = story()
        let first = story.machine.mayBeOneTooMany(refusal(403))
        let actions = story.machine.askAlone()
        story.perform(actions)
        #expect(first && story.transfer == .none && story.machine.phase == .backingOff)
        story.timer()
        #expect(story.sends == 2 && story.transfer == .running)
        let second = story.machine.mayBeOneTooMany(refusal(403))
        #expect(!second)
        story.status(.forbidden)
        #expect(story.machine.hasEnded && story.told.count == 1)
        story.checkEnd()
        #expect(story.broken == [])
    }

    @Test func `the statuses of a second connection are tried, without Retry-After`() {
        let story = story()
        for status: UInt16 in [403, 429, 503, 509] {
            #expect(story.machine.mayBeOneTooMany(refusal(status)))
            let asks = refusal(status, retryAfter: .seconds(1 as Int64))
            #expect(!story.machine.mayBeOneTooMany(asks))
        }
        for status: UInt16 in [200, 206, 401, 404, 410, 500, 502, 504] {
            #expect(!story.machine.mayBeOneTooMany(refusal(status)))
        }
    }

    @Test func `what no player waits for, or must not be repeated, is not tried`() {
        let jobs: [@Sendable (inout FlightJob) -> Void] = [
            { $0.beganAhead = true }, { $0.mayRepeat = false }, { $0.hasDirectives = true },
        ]
        for change in jobs {
            let story = story(job: change)
            #expect(!story.machine.mayBeOneTooMany(refusal(403)))
        }
    }

    @Test func `it is not sent once everyone has left`() {
        var story = story()
        let actions = story.machine.askAlone()
        story.perform(actions)
        story.timer(.init(isWanted: false))
        #expect(story.sends == 1 && story.machine.hasEnded)
    }
}
