@testable import Model
@testable import Origin
import Posix
import Store
import Testing

/// For which requests a resource counts as given up.
@Suite struct GivenUpMemoryTests {
    private let now = Monotonic(nanoseconds: 1_000_000_000_000)
    private let key = FlightStory.resource().key

    @Test func `a resource whose attempts have all failed is remembered for five seconds`() {
        var memory = GivenUpMemory()
        #expect(!memory.holds(key, for: nil, now: now))
        memory.note(key, isSpent: false, now: now)
        #expect(memory.holds(key, for: nil, now: now + .milliseconds(4_999)))
        #expect(!memory.holds(key, for: nil, now: now + .seconds(5 as Int64)))
    }

    @Test func `a request that began before another one spent its budget uses its own budget`() {
        var memory = GivenUpMemory()
        memory.note(key, isSpent: true, now: now)
        let earlier = OriginBudget(now: now)
        let later = OriginBudget(now: now + .milliseconds(1))
        #expect(!memory.holds(key, for: earlier, now: now + .milliseconds(2)))
        #expect(memory.holds(key, for: later, now: now + .milliseconds(2)))
        #expect(memory.holds(key, for: nil, now: now + .milliseconds(2)))
        memory.note(key, isSpent: false, now: now)
        #expect(memory.holds(key, for: earlier, now: now + .milliseconds(2)))
    }

    @Test func `a fetched resource is no longer given up`() {
        var memory = GivenUpMemory()
        memory.note(key, isSpent: false, now: now)
        memory.forget(key)
        #expect(!memory.holds(key, for: nil, now: now))
    }
}
