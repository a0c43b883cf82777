import CachePolicy
import HTTP
@testable import Model
@testable import Origin
import Posix
import Store
import Testing
import Upstream

/// Until when an origin that sent `Retry-After` is not asked again.
@Suite struct RefusalMemoryTests {
    private let now = Monotonic(nanoseconds: 1_000_000_000_000)
    private let patience = Interval.seconds(7 as Int64)

    private func request(
        revalidates: Bool = false, lane: Lane = .playback, isMounted: Bool = false
    ) -> FetchRequest {
        FetchRequest(
            resource: FlightStory.resource { $0.kind = isMounted ? .gateway : nil },
            wanted: .whole, for: revalidates ? .revalidation(of: nil) : .content, repliesAt: .head,
            lane: lane)
    }

    private func memory(seconds: Int64) -> RefusalMemory {
        let memory = RefusalMemory()
        memory.note(request().resource.key, .tooManyRequests, .seconds(seconds), now: now)
        return memory
    }

    /// What a turn is: the seconds to wait, or the status and the seconds of a failure.
    private func text(_ turn: OriginProbes.Turn) -> String {
        switch turn {
        case .now: "now"
        case .later(let time): "later \(time.nanoseconds / 1_000_000_000)"
        case .refused(let failure):
            "refused \(failure.status.rawValue) \(failure.retryAfter ?? -1) \(failure.isUnasked)"
        }
    }

    @Test func `a refused resource is not asked for before its time`() {
        let memory = memory(seconds: 120)
        let later = now + .milliseconds(20_500)
        let failed = memory.turn(of: request(), patience: patience, now: later)
        #expect(text(failed) == "refused 429 100 true")
        let over = now + .seconds(120 as Int64)
        #expect(text(memory.turn(of: request(), patience: patience, now: over)) == "now")
    }

    @Test func `a short pause is waited for where nothing is stored`() {
        let memory = memory(seconds: 5)
        #expect(text(memory.turn(of: request(), patience: patience, now: now)) == "later 5")
        for other in [request(revalidates: true), request(lane: .prefetch)] {
            let turn = memory.turn(of: other, patience: patience, now: now)
            #expect(text(turn) == "refused 429 5 true")
        }
    }

    @Test func `the pause is bounded, and clients of a mount decide themselves`() {
        let memory = memory(seconds: 86_400)
        let later = now + RefusalMemory.longest
        #expect(
            text(memory.turn(of: request(isMounted: true), patience: patience, now: now)) == "now")
        #expect(text(memory.turn(of: request(), patience: patience, now: later)) == "now")
    }
}
