import Posix
import Synchronization
import Testing
import URISyntax
@testable import Upstream

/// Which hosts get one transfer at a time, and what that admits.
@Suite struct SingleHostsTests {
    private let now = Monotonic(nanoseconds: 1_000_000_000_000)

    private func entry(
        _ id: UInt64, _ lane: Lane = .playback, host: String = "h"
    ) -> AdmissionQueue.Entry {
        AdmissionQueue.Entry(id: id, lane: lane, session: 0, host: host)
    }

    /// A host after a number of trials that went well.
    private func hosts(afterGood count: Int) -> SingleHosts {
        var hosts = SingleHosts()
        for _ in 0..<count {
            hosts.begin("h", now: now)
            _ = hosts.end("h", isGood: true, now: now)
        }
        return hosts
    }

    @Test func `the second trial that goes well limits the host`() {
        var hosts = hosts(afterGood: 1)
        #expect(!hosts.isSingle("h") && hosts.learned.isEmpty)
        #expect(hosts.mayTry("h", hasOthers: true, now: now))
        hosts.begin("h", now: now)
        #expect(hosts.isSingle("h") && hosts.isTried("h"))
        let isLearned = hosts.end("h", isGood: true, now: now)
        #expect(isLearned && hosts.isSingle("h") && !hosts.isTried("h"))
        #expect(hosts.learned == ["h"])
    }

    @Test func `nothing is tried if no other transfer can be ended, or during a trial`() {
        var hosts = SingleHosts()
        #expect(!hosts.mayTry("h", hasOthers: false, now: now))
        hosts.begin("h", now: now)
        #expect(!hosts.mayTry("h", hasOthers: true, now: now))
    }

    @Test func `after a trial that was refused there is none for a minute`() {
        var hosts = hosts(afterGood: 1)
        hosts.begin("h", now: now)
        let isLearned = hosts.end("h", isGood: false, now: now)
        #expect(!isLearned && !hosts.isSingle("h"))
        #expect(!hosts.mayTry("h", hasOthers: true, now: now + .seconds(59 as Int64)))
        #expect(hosts.mayTry("h", hasOthers: true, now: now + .seconds(60 as Int64)))
    }

    @Test func `the pause doubles with each further refusal, up to 16 minutes`() {
        var hosts = SingleHosts()
        var time = now
        for minutes: Int64 in [1, 2, 4, 8, 16, 16] {
            hosts.begin("h", now: now)
            _ = hosts.end("h", isGood: false, now: time)
            let early = time + Interval.seconds(60 * minutes - 1)
            #expect(!hosts.mayTry("h", hasOthers: true, now: early))
            time = time + Interval.seconds(60 * minutes)
            #expect(hosts.mayTry("h", hasOthers: true, now: time))
            // Without an answer it counts as none.
            hosts.begin("h", now: now)
            _ = hosts.end("h", isGood: nil, now: time)
            #expect(hosts.mayTry("h", hasOthers: true, now: time))
        }
        hosts.begin("h", now: now)
        _ = hosts.end("h", isGood: true, now: time)
        hosts.begin("h", now: now)
        _ = hosts.end("h", isGood: false, now: time)
        #expect(hosts.mayTry("h", hasOthers: true, now: time + .seconds(60 as Int64)))
    }

    @Test(arguments: [0, 1])
    func `a trial without an answer changes nothing`(_ good: Int) {
        var hosts = hosts(afterGood: good)
        hosts.begin("h", now: now)
        let isLearned = hosts.end("h", isGood: nil, now: now)
        #expect(!isLearned && !hosts.isSingle("h"))
        #expect(hosts.isSuspected("h") == (good == 1) && hosts.isEmpty == (good == 0))
    }

    @Test func `a host that serves two at a time is tried once a minute, but never limited`() {
        var hosts = hosts(afterGood: 1)
        hosts.noteSeveral("h")
        #expect(!hosts.mayTry("h", hasOthers: true, now: now + .seconds(59 as Int64)))
        var time = now + Interval.seconds(60 as Int64)
        for _ in 0..<3 {
            #expect(hosts.mayTry("h", hasOthers: true, now: time))
            hosts.begin("h", now: time)
            let isLearned = hosts.end("h", isGood: true, now: time)
            #expect(!isLearned && !hosts.isSingle("h"))
            let early = time + Interval.seconds(59 as Int64)
            #expect(!hosts.mayTry("h", hasOthers: true, now: early))
            time = time + Interval.seconds(60 as Int64)
        }
    }

    @Test func `a host that serves two at a time is not limited after a refused trial either`() {
        var hosts = hosts(afterGood: 1)
        hosts.noteSeveral("h")
        var time = now + Interval.seconds(60 as Int64)
        for minutes: Int64 in [1, 2, 4] {
            hosts.begin("h", now: time)
            _ = hosts.end("h", isGood: false, now: time)
            let early = time + Interval.seconds(60 * minutes - 1)
            #expect(!hosts.mayTry("h", hasOthers: true, now: early))
            time = time + Interval.seconds(60 * minutes)
            #expect(hosts.mayTry("h", hasOthers: true, now: time))
        }
        for _ in 0..<3 {
            hosts.begin("h", now: time)
            let isLearned = hosts.end("h", isGood: true, now: time)
            #expect(!isLearned && !hosts.isSingle("h"))
        }
    }

    @Test(arguments: [(599, true), (600, false)])
    func `a host is suspected for ten minutes`(seconds: Int, isSuspected: Bool) {
        var hosts = hosts(afterGood: 1)
        let later = now + Interval.seconds(Int64(seconds))
        #expect(hosts.mayTry("h", hasOthers: true, now: later))
        hosts.begin("h", now: later)
        let isLearned = hosts.end("h", isGood: true, now: later)
        #expect(isLearned == isSuspected)
        hosts.begin("h", now: later)
        _ = hosts.end("h", isGood: true, now: later)
        #expect(hosts.learned == ["h"])
    }

    @Test func `a limited host is not tried again`() {
        var hosts = hosts(afterGood: 2)
        #expect(!hosts.mayTry("h", hasOthers: true, now: now))
        hosts.begin("h", now: now)
        #expect(hosts.isLearned("h") && hosts.isSingle("h") && !hosts.isTried("h"))
    }

    @Test func `a host with a configured limit is tried, but never limited to one transfer`() {
        var hosts = SingleHosts()
        var time = now
        for isGood in [true, true, false, true] {
            #expect(hosts.mayTry("h", hasOthers: true, now: time))
            hosts.begin("h", hasLimit: true, now: time)
            #expect(hosts.isTried("h"))
            let isLearned = hosts.end("h", isGood: isGood, now: time)
            #expect(!isLearned && !hosts.isSingle("h"))
            time = time + Interval.seconds(60 as Int64)
        }
    }

    @Test func `so many hosts are remembered, and those in use are not forgotten`() {
        var hosts = SingleHosts()
        for number in 0..<SingleHosts.most { hosts.begin("\(number)", now: now) }
        #expect(!hosts.mayTry("h", hasOthers: true, now: now))
        _ = hosts.end("7", isGood: false, now: now)
        #expect(hosts.mayTry("h", hasOthers: true, now: now))
        hosts.begin("h", now: now)
        #expect(hosts.isTried("h") && hosts.isTried("0"))
        #expect(!hosts.mayTry("7", hasOthers: true, now: now))
    }

    // MARK: Admission

    private func admitted(_ queue: inout AdmissionQueue) -> [SlotToken] {
        var tokens: [SlotToken] = []
        while case .admit(let token)? = queue.next() { tokens.append(token) }
        return tokens
    }

    @Test func `during a trial only players get the host, one at a time`() {
        var queue = AdmissionQueue(limits: AdmissionQueue.Limits())
        queue.hosts.singles.begin("h", now: now)
        for (id, lane) in [Lane.background, .prefetch, .playback, .express].enumerated() {
            _ = queue.enqueue(entry(UInt64(id), lane))
        }
        _ = queue.enqueue(entry(9, .background, host: "other"))
        let first = admitted(&queue)
        #expect(first.map(\.id) == [3, 9])
        queue.release(first[0])
        let second = admitted(&queue)
        #expect(second.map(\.id) == [2])
        queue.release(second[0])
        #expect(admitted(&queue).isEmpty)
        _ = queue.hosts.singles.end("h", isGood: false, now: now)
        let third = admitted(&queue)
        #expect(Set(third.map(\.id)) == [0, 1])
    }

    @Test func `a limited host serves downloads and recordings, but no look-ahead`() {
        var queue = AdmissionQueue(limits: AdmissionQueue.Limits())
        for _ in 0..<2 {
            queue.hosts.singles.begin("h", now: now)
            _ = queue.hosts.singles.end("h", isGood: true, now: now)
        }
        _ = queue.enqueue(entry(1, .prefetch))
        _ = queue.enqueue(entry(2, .background))
        var recorded = entry(3, .prefetch)
        recorded.goesFirst = true
        _ = queue.enqueue(recorded)
        let first = admitted(&queue)
        #expect(first.map(\.id) == [3])
        queue.release(first[0])
        let second = admitted(&queue)
        #expect(second.map(\.id) == [2])
        // A player's transfer takes its place.
        _ = queue.enqueue(entry(4))
        let action = queue.next()
        #expect(action == .preempt(2))
        queue.release(second[0])
        let third = admitted(&queue)
        #expect(third.map(\.id) == [4])
        // Look-ahead that a player joins is its transfer.
        queue.move(1, to: .playback)
        queue.release(third[0])
        let fourth = admitted(&queue)
        #expect(fourth.map(\.id) == [1])
    }

    @Test func `a limited host serves a longer window while it is free`() {
        var queue = AdmissionQueue(limits: AdmissionQueue.Limits())
        for _ in 0..<2 {
            queue.hosts.singles.begin("h", now: now)
            _ = queue.hosts.singles.end("h", isGood: true, now: now)
        }
        for id in 1...3 as ClosedRange<UInt64> {
            var ahead = entry(id, .prefetch)
            ahead.fillsWindow = id < 3
            _ = queue.enqueue(ahead)
        }
        let first = admitted(&queue)
        #expect(first.map(\.id) == [1])
        // A player's transfer takes its place.
        _ = queue.enqueue(entry(4))
        let action = queue.next()
        #expect(action == .preempt(1))
        queue.release(first[0])
        let second = admitted(&queue)
        #expect(second.map(\.id) == [4])
        queue.release(second[0])
        let third = admitted(&queue)
        #expect(third.map(\.id) == [2])
        queue.release(third[0])
        #expect(admitted(&queue).isEmpty)
        // A window wants what look-ahead waits for.
        queue.noteWindow(3)
        let fourth = admitted(&queue)
        #expect(fourth.map(\.id) == [3])
    }

    @Test func `a limited host may refuse a request after one that was preempted before its head`()
        throws
    {
        let origin = try TestOrigin {
            if $0.target == "/window" {
                $0.holdOpen()
                return .close
            }
            $0.respond(403)
            return .keep
        }
        let url = try AbsoluteURL(origin.url("/window"))
        let host = url.origin.host
        let now = self.now
        let harness = try Harness()
        harness.act { client in
            for _ in 0..<2 {
                client.queue.hosts.singles.begin(host, now: now)
                _ = client.queue.hosts.singles.end(host, isGood: true, now: now)
            }
        }
        var request = TransferRequest(url: url, lane: .prefetch)
        request.fillsWindow = true
        let window = harness.start(request)
        #expect(comesTrue { !origin.requests.isEmpty })
        let record = try harness.fetch(origin.url("/refused"))
        #expect(record.status == 403 && window.wait().failure?.kind == .preempted)
        let mayTry = Atomic(false)
        harness.act { client in
            // Before the end, so that the test is not late.
            let time = Monotonic(nanoseconds: 0)
            let isPossible = client.queue.hosts.ends.mayRepeat(host, now: time)
            mayTry.store(isPossible, ordering: .releasing)
        }
        // Runs on the loop after that.
        _ = harness.statistics()
        let couldTry = mayTry.load(ordering: .acquiring)
        #expect(couldTry)
        harness.stop()
        origin.stop()
    }

    @Test func `a limited host counts also the transfer that it has redirected`() {
        var queue = AdmissionQueue(limits: AdmissionQueue.Limits())
        for _ in 0..<2 {
            queue.hosts.singles.begin("h", now: now)
            _ = queue.hosts.singles.end("h", isGood: true, now: now)
        }
        _ = queue.enqueue(entry(1, .background))
        let first = admitted(&queue)
        let isRedirected = queue.redirect(first[0], to: "edge")
        #expect(isRedirected && queue.inFlight(to: "edge") == 1)
        _ = queue.enqueue(entry(2))
        let action = queue.next()
        #expect(action == .preempt(1))
        queue.release(first[0])
        let second = admitted(&queue)
        #expect(second.map(\.id) == [2])
        queue.release(second[0])
        #expect(queue.inFlight(to: "edge") == 0)
    }

    @Test func `a transfer is not redirected to a host that is left alone`() {
        var queue = AdmissionQueue(limits: AdmissionQueue.Limits())
        queue.hosts.singles.begin("h", now: now)
        _ = queue.enqueue(entry(1, .prefetch, host: "other"))
        _ = queue.enqueue(entry(2, host: "other"))
        let tokens = admitted(&queue).sorted { $0.id < $1.id }
        #expect(tokens.map(\.id) == [1, 2])
        let ahead = queue.redirect(tokens[0], to: "h")
        let player = queue.redirect(tokens[1], to: "h")
        #expect(!ahead && player)
    }
}
