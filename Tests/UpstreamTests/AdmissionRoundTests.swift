import Testing
import Upstream

/// What the queue looks at, and when, while many transfers wait.
@Suite struct AdmissionRoundTests {
    private func queue(
        slots: Int, perHost: Int, waiting: Int = 4_096
    ) -> AdmissionQueue {
        AdmissionQueue(
            limits: AdmissionQueue.Limits(slots: slots, perHost: perHost, waiting: waiting))
    }

    private func entry(
        _ id: UInt64, _ lane: Lane = .playback, host: String = "h"
    ) -> AdmissionQueue.Entry {
        AdmissionQueue.Entry(id: id, lane: lane, session: 0, host: host)
    }

    /// Admits as many transfers as possible.
    private func drain(_ queue: inout AdmissionQueue) -> [SlotToken] {
        var tokens: [SlotToken] = []
        while case .admit(let token)? = queue.next() { tokens.append(token) }
        return tokens
    }

    @Test func `playback preempts a transfer to its host, whoever waits in front of it`() {
        var queue = queue(slots: 8, perHost: 1)
        for (id, host) in ["a", "b"].enumerated() {
            _ = queue.enqueue(entry(UInt64(id), id == 0 ? .playback : .prefetch, host: host))
        }
        _ = drain(&queue)
        for id in 2..<6 as Range<UInt64> { _ = queue.enqueue(entry(id, host: "a")) }
        let before = queue.next()
        _ = queue.enqueue(entry(6, host: "b"))
        let after = queue.next()
        #expect(before == nil && after == .preempt(1))
    }

    @Test func `a long poll that waits for a place preempts nothing`() {
        var limits = AdmissionQueue.Limits()
        limits.heldCap = 1
        var queue = AdmissionQueue(limits: limits)
        _ = queue.enqueue(entry(0, .background))
        for id in 1...2 as ClosedRange<UInt64> {
            var held = entry(id, .express)
            held.isLongPoll = true
            _ = queue.enqueue(held)
        }
        let running = drain(&queue)
        #expect(running.map(\.id) == [1, 0])
        let action = queue.next()
        #expect(action == nil)
        queue.release(running[0])
        #expect(drain(&queue).map(\.id) == [2])
    }

    @Test func `every change that makes room is seen after there was nothing to do`() {
        /// What starts after a change, where one transfer runs and another one waits.
        func started(
            _ lane: Lane, slots: Int = 8, perHost: Int = 0,
            after change: (inout AdmissionQueue, SlotToken) -> Void
        ) -> [UInt64] {
            var queue = queue(slots: slots, perHost: perHost)
            queue.limitAhead(1)
            for id in 0...1 as ClosedRange<UInt64> { _ = queue.enqueue(entry(id, lane)) }
            let running = drain(&queue)
            guard running.map(\.id) == [0], queue.next() == nil else { return [] }
            change(&queue, running[0])
            return drain(&queue).map(\.id)
        }
        #expect(started(.playback, slots: 1) { $0.release($1) } == [1])
        #expect(started(.playback, slots: 1) { $0.exempt($1) } == [1])
        #expect(started(.playback, perHost: 1) { _ = $0.redirect($1, to: "b") } == [1])
        #expect(started(.prefetch) { queue, _ in queue.move(1, to: .playback) } == [1])
        #expect(started(.prefetch) { queue, _ in queue.limitAhead(2) } == [1])
    }

    @Test func `those that wait for a full host cost no search each, and none without a change`() {
        var queue = queue(slots: 4_000, perHost: 2_000, waiting: 8_000)
        for id in 0..<2_000 as Range<UInt64> { _ = queue.enqueue(entry(id, host: "full")) }
        for id in 2_000..<4_000 as Range<UInt64> {
            _ = queue.enqueue(entry(id, .prefetch, host: "other"))
        }
        #expect(drain(&queue).count == 4_000)
        for id in 4_000..<8_000 as Range<UInt64> { _ = queue.enqueue(entry(id, host: "full")) }
        // Looking through 4,000 transfers for each of 4,000 waiters takes many times as long.
        let withChanges = ContinuousClock().measure {
            for id in 8_000..<8_003 as Range<UInt64> {
                _ = queue.enqueue(entry(id, host: "full"))
                while queue.next() != nil {}
            }
        }
        let without = ContinuousClock().measure {
            for _ in 0..<2_000 { while queue.next() != nil {} }
        }
        #expect(withChanges < .seconds(5) && without < .seconds(1))
        #expect(queue.waiting == 4_003 && queue.inFlight == 4_000)
    }
}
