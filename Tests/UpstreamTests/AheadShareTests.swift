import Testing
import Upstream

/// The share of the slots for transfers that no player waits for.
@Suite struct AheadShareTests {
    private typealias Entry = AdmissionQueue.Entry

    /// A queue of 8 slots with waiting transfers of a lane, all to host h.
    private func queue(_ waiters: [(Lane, Int)]) -> AdmissionQueue {
        var queue = AdmissionQueue(limits: AdmissionQueue.Limits(slots: 8, expressCap: 2))
        var id: UInt64 = 0
        for (lane, count) in waiters {
            for _ in 0..<count {
                id += 1
                _ = queue.enqueue(Entry(id: id, lane: lane, session: 0, host: "h"))
            }
        }
        return queue
    }

    /// Admits as many transfers as possible.
    private func drain(_ queue: inout AdmissionQueue) -> [SlotToken] {
        var tokens: [SlotToken] = []
        while case .admit(let token)? = queue.next() { tokens.append(token) }
        return tokens
    }

    @Test func `prefetch and background share one limit that playback does not count in`() {
        var queue = queue([(.background, 3), (.prefetch, 3), (.playback, 3)])
        queue.limitAhead(2)
        #expect(drain(&queue).map(\.id) == [7, 8, 9, 4, 5])
    }

    @Test func `what goes first precedes all that waits in the prefetch lane, and no player`() {
        var queue = queue([(.background, 1), (.prefetch, 2), (.playback, 1)])
        func recorded(_ id: UInt64) -> Entry {
            var entry = Entry(id: id, lane: .prefetch, session: 9, host: "h")
            entry.goesFirst = true
            return entry
        }
        _ = queue.enqueue(recorded(11))
        _ = queue.enqueue(recorded(12))
        _ = queue.enqueue(recorded(13))
        #expect(queue.waiting(in: .prefetch) == 5 && queue.waiting == 7)
        // The others get what it leaves of the limit.
        queue.limitAhead(2)
        let isGone = queue.cancel(12)
        #expect(isGone && queue.waiting(in: .prefetch) == 4)
        #expect(drain(&queue).map(\.id) == [4, 11, 13])
        _ = queue.enqueue(recorded(14))
        queue.move(14, to: .playback)
        #expect(drain(&queue).map(\.id) == [14])
        queue.limitAhead(8)
        #expect(drain(&queue).map(\.id) == [2, 3, 1])
    }

    @Test func `a waiter that is put first precedes the others of its lane, and moves up once`() {
        var queue = queue([(.background, 2), (.prefetch, 3)])
        queue.limitAhead(1)
        let running = drain(&queue)
        #expect(running.map(\.id) == [3])
        queue.putFirst(5)
        // Nothing waits of these: one runs, the other is not known.
        queue.putFirst(3)
        queue.putFirst(99)
        // It waits in its own lane until it is raised.
        queue.putFirst(2)
        #expect(queue.waiting(in: .prefetch) == 2 && queue.waiting(in: .background) == 2)
        queue.move(2, to: .prefetch)
        // It would be behind the other one now.
        queue.putFirst(5)
        #expect(queue.waiting(in: .prefetch) == 3 && queue.waiting(in: .background) == 1)
        queue.limitAhead(8)
        #expect(drain(&queue).map(\.id) == [5, 2, 4, 1])
    }

    /// A transfer of a recording; its session is the number of the recording.
    private func recorded(_ id: UInt64, of recording: UInt64, from host: String) -> Entry {
        var entry = Entry(id: id, lane: .prefetch, session: recording, host: host)
        entry.goesFirst = true
        return entry
    }

    @Test func `the limit in all holds back no recording, and counts it`() {
        var queue = queue([(.prefetch, 1), (.background, 1)])
        queue.limitAhead(1)
        let running = drain(&queue)
        #expect(running.map(\.id) == [1])
        for id in 11...12 as ClosedRange<UInt64> {
            _ = queue.enqueue(recorded(id, of: id, from: "host \(id)"))
        }
        let recordings = drain(&queue)
        #expect(recordings.map(\.id) == [11, 12])
        queue.release(running[0])
        queue.release(recordings[0])
        #expect(queue.next() == nil)
        queue.release(recordings[1])
        #expect(drain(&queue).map(\.id) == [2])
    }

    @Test func `each recording has one transfer at a host beyond the limit measured for it`() {
        var queue = queue([])
        queue.limitAhead(1, hosts: ["h": 1])
        for id in 1...2 as ClosedRange<UInt64> { _ = queue.enqueue(recorded(id, of: 1, from: "h")) }
        let slow = drain(&queue)
        #expect(slow.map(\.id) == [1])
        for id in 3...4 as ClosedRange<UInt64> { _ = queue.enqueue(recorded(id, of: 2, from: "h")) }
        let other = drain(&queue)
        #expect(other.map(\.id) == [3])
        queue.release(other[0])
        #expect(drain(&queue).map(\.id) == [4])
        // The host of the first one has no limit of its own: that in all is taken for it.
        for id in 5...6 as ClosedRange<UInt64> { _ = queue.enqueue(recorded(id, of: 1, from: "g")) }
        #expect(drain(&queue).map(\.id) == [5])
        queue.limitAhead(2, hosts: ["h": 1])
        #expect(drain(&queue).map(\.id) == [6])
    }

    @Test func `what a recording is redirected to keeps to the limit measured for that host`() {
        var queue = queue([])
        queue.limitAhead(1, hosts: ["panel": 4, "node": 1])
        for id in 1...2 as ClosedRange<UInt64> {
            _ = queue.enqueue(recorded(id, of: 1, from: "panel"))
        }
        _ = queue.enqueue(recorded(3, of: 2, from: "panel"))
        let running = drain(&queue)
        #expect(running.map(\.id) == [1, 3, 2])
        // The second recording has one transfer there, too.
        let moves = running.map { queue.redirect($0, to: "node") }
        #expect(moves == [true, true, false])
        queue.release(running[2])
        _ = queue.enqueue(recorded(2, of: 1, from: "node"))
        #expect(drain(&queue).isEmpty)
        queue.release(running[0])
        #expect(drain(&queue).map(\.id) == [2])
    }

    @Test func `a host has no more connections than it may have, recordings included`() {
        var queue = AdmissionQueue(limits: AdmissionQueue.Limits(slots: 8, perHost: 1))
        queue.limitAhead(1)
        for id in 1...3 as ClosedRange<UInt64> {
            _ = queue.enqueue(recorded(id, of: id, from: "h"))
        }
        #expect(drain(&queue).map(\.id) == [1])
    }

    @Test func `a waiter that is put first is no longer held back by the limit in all`() {
        var queue = queue([(.prefetch, 2)])
        _ = queue.enqueue(Entry(id: 9, lane: .prefetch, session: 9, host: "other"))
        queue.limitAhead(1)
        #expect(drain(&queue).map(\.id) == [1])
        queue.putFirst(9)
        #expect(drain(&queue).map(\.id) == [9])
    }

    @Test func `a waiter that was put first can leave`() {
        var queue = queue([(.background, 1), (.prefetch, 1)])
        queue.putFirst(2)
        let isGone = queue.cancel(2)
        #expect(isGone && queue.waiting == 1 && queue.waiting(in: .prefetch) == 0)
    }

    @Test func `background may have a smaller limit`() {
        var queue = queue([(.background, 3), (.prefetch, 3)])
        queue.limitAhead(5, background: 1)
        #expect(drain(&queue).map(\.id) == [4, 5, 6, 1])
    }

    @Test func `a host may have its own limit`() {
        var queue = queue([(.background, 3)])
        _ = queue.enqueue(Entry(id: 9, lane: .background, session: 0, host: "other"))
        queue.limitAhead(8, hosts: ["h": 1])
        #expect(drain(&queue).map(\.id) == [1, 9])
    }

    @Test func `raising a limit admits waiters, lowering it affects no running transfer`() {
        var queue = queue([(.background, 6)])
        queue.limitAhead(2)
        var tokens = drain(&queue)
        queue.limitAhead(4)
        tokens += drain(&queue)
        #expect(tokens.count == 4)
        queue.limitAhead(1)
        #expect(queue.next() == nil)
        for token in tokens { queue.release(token) }
        #expect(drain(&queue).count == 1)
    }

    @Test func `prefetch precedes background when a slot becomes free`() {
        var queue = queue([(.background, 3)])
        queue.limitAhead(1)
        let tokens = drain(&queue)
        _ = queue.enqueue(Entry(id: 9, lane: .prefetch, session: 0, host: "h"))
        #expect(queue.next() == nil)
        queue.release(tokens[0])
        #expect(drain(&queue).map(\.id) == [9])
    }

    @Test func `a transfer that becomes playback releases its prefetch slot`() {
        var queue = queue([(.prefetch, 2)])
        queue.limitAhead(1)
        #expect(drain(&queue).map(\.id) == [1])
        queue.move(1, to: .playback)
        #expect(drain(&queue).map(\.id) == [2])
    }
}
