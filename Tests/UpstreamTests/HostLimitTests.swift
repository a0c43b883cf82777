import Posix
import Synchronization
import Testing
import URISyntax
@testable import Upstream

/// Limits of single hosts, and requests that are repeated since a host noticed an end late.
@Suite struct HostLimitTests {
    private let now = Monotonic(nanoseconds: 1_000_000_000_000)

    private func entry(
        _ id: UInt64, _ lane: Lane = .playback, host: String = "h", limit: Int = 2
    ) -> AdmissionQueue.Entry {
        var entry = AdmissionQueue.Entry(id: id, lane: lane, session: 0, host: host)
        entry.hostLimit = limit
        entry.firstHostLimit = limit
        return entry
    }

    private func queue(perHost: Int = 0) -> AdmissionQueue {
        AdmissionQueue(limits: AdmissionQueue.Limits(perHost: perHost))
    }

    private func admitted(_ queue: inout AdmissionQueue) -> [SlotToken] {
        var tokens: [SlotToken] = []
        while case .admit(let token)? = queue.next() { tokens.append(token) }
        return tokens
    }

    private func ids(_ queue: inout AdmissionQueue) -> [UInt64] { admitted(&queue).map(\.id) }

    // MARK: Admission

    @Test(arguments: [0, 1, 8])
    func `a host has no more transfers than its own limit, whatever holds for all hosts`(
        perHost: Int
    ) {
        var queue = queue(perHost: perHost)
        for (id, lane) in [Lane.playback, .playback, .express, .background].enumerated() {
            _ = queue.enqueue(entry(UInt64(id), lane))
        }
        _ = queue.enqueue(entry(9, host: "other", limit: 0))
        let first = admitted(&queue)
        #expect(Set(first.map(\.id)) == [0, 2, 9] && queue.inFlight(to: "h") == 2)
        queue.release(first[0])
        #expect(ids(&queue) == [1])
    }

    @Test func `an early connection takes no place that the limit of its host does not have`() {
        var queue = queue()
        for id in 1...2 as ClosedRange<UInt64> { _ = queue.enqueue(entry(id)) }
        let running = admitted(&queue)
        #expect(queue.admitAtOnce(entry(3)) == nil)
        queue.release(running[0])
        #expect(queue.admitAtOnce(entry(4)) != nil)
    }

    @Test func `downloads have what players leave, and make way for them one by one`() {
        var queue = queue()
        for id in 1...3 as ClosedRange<UInt64> { _ = queue.enqueue(entry(id, .background)) }
        let downloads = admitted(&queue)
        #expect(downloads.map(\.id) == [1, 2])
        for (player, victim) in [(4, 1), (5, 0)] as [(UInt64, Int)] {
            _ = queue.enqueue(entry(player))
            let action = queue.next()
            #expect(action == .preempt(downloads[victim].id))
            queue.release(downloads[victim])
            #expect(ids(&queue) == [player])
        }
        _ = queue.enqueue(entry(6))
        let action = queue.next()
        #expect(action == nil)
    }

    @Test func `a host counts the transfers that it has redirected`() {
        var queue = queue()
        for id in 1...2 as ClosedRange<UInt64> { _ = queue.enqueue(entry(id, .background)) }
        let running = admitted(&queue)
        for token in running {
            let isRedirected = queue.redirect(token, to: "edge")
            #expect(isRedirected)
        }
        #expect(queue.inFlight(to: "h") == 0 && queue.inFlight(to: "edge") == 2)
        _ = queue.enqueue(entry(3))
        let full = queue.hosts.fullHosts(of: entry(3))
        #expect(full.map(\.name) == ["h"] && full.map(\.limit) == [2] && full[0].isOwn)
        let action = queue.next()
        #expect(action == .preempt(2))
        queue.release(running[1])
        #expect(ids(&queue) == [3])
    }

    @Test func `what waits for its second host counts against the limit of the first one again`() {
        var queue = queue()
        _ = queue.enqueue(entry(1))
        _ = queue.enqueue(entry(2, host: "edge", limit: 1))
        let running = admitted(&queue)
        let isRedirected = queue.redirect(running[0], to: "edge", hostLimit: 1)
        #expect(!isRedirected)
        queue.release(running[0])
        var redirected = entry(1, host: "edge", limit: 1)
        redirected.firstHost = "h"
        redirected.firstHostLimit = 2
        redirected.isReturning = true
        _ = queue.enqueue(redirected)
        for id in 3...4 as ClosedRange<UInt64> { _ = queue.enqueue(entry(id)) }
        let others = admitted(&queue)
        #expect(others.map(\.id) == [3, 4])
        #expect(queue.hosts.fullHosts(of: redirected).map(\.name) == ["edge", "h"])
        queue.release(running[1])
        #expect(ids(&queue) == [])
        queue.release(others[0])
        #expect(ids(&queue) == [1])
    }

    /// Waits for its second host, "edge", and for its first one, "h"; each allows one transfer.
    private var redirected: AdmissionQueue.Entry {
        var entry = entry(3, host: "edge", limit: 1)
        entry.firstHost = "h"
        entry.isReturning = true
        return entry
    }

    @Test func `one transfer at each host is in the way of a player who waits for both`() {
        var queue = queue()
        _ = queue.enqueue(entry(1, limit: 1))
        _ = queue.enqueue(entry(2, host: "edge", limit: 1))
        let running = admitted(&queue)
        _ = queue.enqueue(redirected)
        #expect(ids(&queue) == [])
        // The end of one alone lets nobody start.
        for id in 1...2 as ClosedRange<UInt64> { #expect(queue.obstacles(among: [id]).isEmpty) }
        #expect(queue.obstacles(among: [1, 2]) == [2, 1])
        running.forEach { queue.release($0) }
        #expect(ids(&queue) == [3])
    }

    @Test func `a download at each host makes way for a player who waits for both`() {
        var queue = queue()
        _ = queue.enqueue(entry(1, .background, limit: 1))
        _ = queue.enqueue(entry(2, .background, host: "edge", limit: 1))
        let running = admitted(&queue)
        // These must not take the place of the first that is ended.
        _ = queue.enqueue(entry(4, .background, limit: 1))
        _ = queue.enqueue(entry(5, .background, host: "edge", limit: 1))
        _ = queue.enqueue(redirected)
        let first = queue.next()
        queue.release(running[1])
        let second = queue.next()
        queue.release(running[0])
        #expect(first == .preempt(2) && second == .preempt(1))
        #expect(ids(&queue) == [3])
    }

    @Test func `a download at one host makes way together with what may end at the other`() {
        var queue = queue()
        _ = queue.enqueue(entry(1, .background, limit: 1))
        _ = queue.enqueue(entry(2, host: "edge", limit: 1))
        let running = admitted(&queue)
        _ = queue.enqueue(entry(4, .background, limit: 1))
        _ = queue.enqueue(redirected)
        #expect(ids(&queue) == [])
        #expect(queue.obstacles(among: []).isEmpty)
        #expect(queue.obstacles(among: [2]) == [2, 1])
        running.forEach { queue.release($0) }
        #expect(ids(&queue) == [3])
    }

    @Test func `a host that allows one transfer gets no look-ahead`() {
        var queue = queue()
        for id in 1...2 as ClosedRange<UInt64> {
            _ = queue.enqueue(entry(id, .prefetch, limit: Int(id)))
        }
        #expect(ids(&queue) == [2])
        var window = entry(3, .prefetch, host: "other", limit: 1)
        window.fillsWindow = true
        _ = queue.enqueue(window)
        _ = queue.enqueue(entry(4, .background, host: "third", limit: 1))
        #expect(ids(&queue) == [3, 4])
    }

    @Test func `while a request is repeated, no download takes its place`() {
        var queue = queue()
        queue.hosts.ends.beginRepeat("h")
        _ = queue.enqueue(entry(1, .background))
        #expect(ids(&queue) == [])
        _ = queue.enqueue(entry(2))
        #expect(ids(&queue) == [2])
        let isEnded = queue.hosts.ends.endRepeat("h")
        #expect(isEnded)
        #expect(ids(&queue) == [1])
    }

    // MARK: Ends

    @Test func `a request is repeated within a second of the end of a transfer to its host`() {
        var ends = RecentEnds()
        #expect(!ends.mayRepeat("h", now: now))
        ends.note("h", now: now)
        #expect(ends.mayRepeat("h", now: now + .milliseconds(999)))
        #expect(!ends.mayRepeat("h", now: now + .milliseconds(1_000)))
        #expect(!ends.mayRepeat("other", now: now))
    }

    @Test(arguments: [(200, true), (404, true), (403, false), (503, false)] as [(UInt16, Bool)])
    func `the end of a transfer counts unless the host has refused it`(
        status: UInt16, counts: Bool
    ) throws {
        let origin = try TestOrigin {
            $0.respond(Int(status))
            return .keep
        }
        let url = try AbsoluteURL(origin.url("/a"))
        let host = url.origin.host
        let harness = try Harness { $0.hostLimits = HostLimits { _ in 2 } }
        #expect(try harness.fetch(origin.url("/a")).status == status)
        let mayRepeat = Atomic(false)
        harness.act { client in
            // Before the end, so that the test is not late.
            let isPossible = client.queue.hosts.ends.mayRepeat(host, now: Monotonic(nanoseconds: 0))
            mayRepeat.store(isPossible, ordering: .releasing)
        }
        // Runs on the loop after that.
        _ = harness.statistics()
        let couldRepeat = mayRepeat.load(ordering: .acquiring)
        #expect(couldRepeat == counts)
        harness.stop()
        origin.stop()
    }

    @Test func `each repetition ends once`() {
        var ends = RecentEnds()
        for _ in 0..<2 { ends.beginRepeat("h") }
        let first = ends.endRepeat("h")
        #expect(first && ends.isRepeating("h"))
        let second = ends.endRepeat("h")
        #expect(second && !ends.isRepeating("h"))
        let third = ends.endRepeat("h")
        #expect(!third)
    }

    @Test func `so many hosts are remembered, and those of old ends are forgotten`() {
        var ends = RecentEnds()
        for number in 0..<RecentEnds.most { ends.note("\(number)", now: now) }
        ends.note("h", now: now)
        #expect(!ends.mayRepeat("h", now: now) && ends.mayRepeat("0", now: now))
        let later = now + Interval.seconds(1 as Int64)
        ends.note("h", now: later)
        #expect(ends.mayRepeat("h", now: later))
    }
}
