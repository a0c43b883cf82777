// Readiness, timers and rounds of one loop.
import Glibc
import Posix
import Reactor
import Synchronization
import Testing

/// Two connected sockets.
struct SocketPair: ~Copyable {
    let near: OwnedDescriptor
    let far: OwnedDescriptor

    init() {
        var numbers: [CInt] = [0, 0]
        let kind = CInt(SOCK_STREAM.rawValue) | CInt(SOCK_NONBLOCK.rawValue)
        precondition(socketpair(AF_UNIX, kind, 0, &numbers) == 0)
        near = OwnedDescriptor(taking: numbers[0])
        far = OwnedDescriptor(taking: numbers[1])
    }

    func poke() {
        var byte: UInt8 = 1
        _ = write(far.number, &byte, 1)
    }
}

final class ClosureHandler: ReadinessHandler {
    var body: (Readiness, EventLoop) -> Void
    init(_ body: @escaping (Readiness, EventLoop) -> Void) { self.body = body }
    func ready(_ readiness: Readiness, on loop: EventLoop) { body(readiness, loop) }
}

@Suite(.timeLimit(.minutes(5)))
struct EventLoopTests {
    private func makeLoop() throws -> EventLoop {
        try EventLoop(handle: LoopHandle())
    }

    @Test func `a loop that has ended holds nothing that holds it`() throws {
        final class Owner {
            let loop: EventLoop
            var timer: TimerID?
            var registration: Registration?
            init(_ loop: EventLoop) { self.loop = loop }
            deinit {
                // As connections do that are released with their loop.
                if let timer { loop.cancel(timer) }
                if let registration { loop.cancel(registration) }
            }
        }
        weak var weakOwner: Owner?
        weak var weakLoop: EventLoop?
        let pair = SocketPair()
        do {
            let loop = try makeLoop()
            let owner = Owner(loop)
            owner.timer = loop.schedule(after: .seconds(60 as Int64)) { _ in _ = owner.timer }
            let handler = ClosureHandler { _, _ in _ = owner.timer }
            owner.registration = try loop.watch(pair.near.number, for: .readable, handler: handler)
            loop.schedule(after: .zero) { $0.stop() }
            (weakOwner, weakLoop) = (owner, loop)
            loop.run()
        }
        #expect(weakOwner == nil)
        #expect(weakLoop == nil)
    }

    @Test func `timers run in order of deadline, then of setting`() throws {
        let loop = try makeLoop()
        var order: [Int] = []
        loop.schedule(after: .milliseconds(20)) { _ in order.append(3) }
        loop.schedule(after: .milliseconds(5)) { _ in order.append(1) }
        loop.schedule(after: .milliseconds(5)) { _ in order.append(2) }
        loop.schedule(after: .milliseconds(30)) { $0.stop() }
        loop.run()
        #expect(order == [1, 2, 3])
    }

    @Test func `a timer never runs early`() throws {
        let loop = try makeLoop()
        let start = Monotonic.now()
        var waited = Interval.zero
        loop.schedule(after: .milliseconds(30)) { loop in
            waited = loop.now - start
            loop.stop()
        }
        loop.run()
        #expect(waited >= .milliseconds(29))
    }

    @Test func `the clock can be read anew within a round`() throws {
        let loop = try makeLoop()
        var isStill = false
        loop.schedule(after: .zero) { loop in
            let began = loop.now
            while loop.readTime() <= began {}
            isStill = loop.now == began
            loop.stop()
        }
        loop.run()
        #expect(isStill)
        let clock = ManualClock(now: Monotonic(nanoseconds: 5), wallNow: WallTime(seconds: 7))
        let manual = try EventLoop(handle: LoopHandle(), clock: .manual(clock))
        #expect(manual.readTime() == Monotonic(nanoseconds: 5))
    }

    @Test func `timers use a manual clock`() throws {
        let clock = ManualClock(now: Monotonic(nanoseconds: 5), wallNow: WallTime(seconds: 7))
        let ran = Mutex<[String]>([])
        let thread = try LoopThread(name: "manual", clock: .manual(clock)) { loop in
            for hours: Int64 in [1, 2] {
                loop.schedule(after: .seconds(3600 * hours)) { loop in
                    let line = "\(hours) at \(loop.now.nanoseconds) and \(loop.wallNow.seconds)"
                    ran.withLock { $0.append(line) }
                }
            }
        }
        clock.advance(by: .seconds(3599 as Int64))
        #expect(ran.withLock { $0 } == [])
        clock.advance(by: .seconds(1 as Int64))
        #expect(ran.withLock { $0 } == ["1 at 3600000000005 and 3607"])
        clock.advance(by: .seconds(3600 as Int64))
        #expect(ran.withLock { $0.last } == "2 at 7200000000005 and 7207")
        thread.stopAndJoin()
        clock.advance(by: .seconds(1 as Int64))
    }

    @Test func `a cancelled timer does not run, even if a timer due with it cancels it`() throws {
        let loop = try makeLoop()
        var ran = 0
        var second: TimerID?
        loop.schedule(after: .milliseconds(5)) { loop in
            if let second { loop.cancel(second) }
        }
        second = loop.schedule(after: .milliseconds(5)) { _ in ran += 1 }
        loop.schedule(after: .milliseconds(20)) { $0.stop() }
        loop.run()
        #expect(ran == 0)
    }

    @Test func `cancelling a timer twice, or after it ran, affects no later timer`() throws {
        let loop = try makeLoop()
        var ran: [Int] = []
        let first = loop.schedule(after: .milliseconds(1)) { _ in ran.append(1) }
        let second = loop.schedule(after: .milliseconds(1)) { _ in ran.append(2) }
        loop.cancel(second)
        let third = loop.schedule(after: .milliseconds(5)) { _ in ran.append(3) }
        loop.cancel(second)
        loop.schedule(after: .milliseconds(10)) { loop in
            loop.schedule(after: .milliseconds(5)) { _ in ran.append(4) }
            loop.schedule(after: .milliseconds(10)) { $0.stop() }
            for timer in [first, second, third] { loop.cancel(timer) }
        }
        loop.run()
        #expect(ran == [1, 3, 4])
    }

    @Test func `setting and cancelling 100,000 timers leaves the loop working`() throws {
        let loop = try makeLoop()
        for _ in 0..<100_000 {
            loop.cancel(loop.schedule(after: .milliseconds(60_000)) { _ in })
        }
        loop.schedule(after: .zero) { $0.stop() }
        loop.run()
    }

    @Test func `a timer that reschedules itself without delay does not block events`() throws {
        let loop = try makeLoop()
        let pair = SocketPair()
        var rounds = 0
        func again(_ loop: EventLoop) {
            rounds += 1
            loop.schedule(after: .zero, again)
        }
        let handler = ClosureHandler { _, loop in loop.stop() }
        _ = try loop.watch(pair.near.number, for: .readable, handler: handler)
        loop.schedule(after: .zero, again)
        pair.poke()
        loop.run()
        #expect(rounds >= 1)
    }

    @Test func `work deferred at the end of a round runs at the end of the next`() throws {
        let loop = try makeLoop()
        let pair = SocketPair()
        var rounds = 0
        func again(_ loop: EventLoop) {
            rounds += 1
            if rounds == 3 { pair.poke() }
            if rounds < 1000 { loop.atRoundEnd(again) }
        }
        var seenAt = 0
        let handler = ClosureHandler { _, loop in
            seenAt = rounds
            rounds = 1000
            loop.stop()
        }
        _ = try loop.watch(pair.near.number, for: .readable, handler: handler)
        loop.atRoundEnd(again)
        loop.run()
        #expect(seenAt == 3)
    }

    @Test func `a registration that is cancelled in a round gets no event of that round`() throws {
        let loop = try makeLoop()
        let first = SocketPair()
        let second = SocketPair()
        var registrations: [Registration] = []
        var events = 0
        let handler = ClosureHandler { _, loop in
            events += 1
            for registration in registrations { loop.cancel(registration) }
        }
        registrations.append(
            try loop.watch(first.near.number, for: .readable, handler: handler))
        registrations.append(
            try loop.watch(second.near.number, for: .readable, handler: handler))
        first.poke()
        second.poke()
        loop.schedule(after: .milliseconds(20)) { $0.stop() }
        loop.run()
        #expect(events == 1)
    }

    @Test func `a slot reused in the same round gets no event of its former owner`() throws {
        let loop = try makeLoop()
        let first = SocketPair()
        let second = SocketPair()
        let third = SocketPair()
        var registrations: [Registration] = []
        var strays = 0
        let heir = ClosureHandler { _, _ in strays += 1 }
        let handler = ClosureHandler { _, loop in
            for registration in registrations { loop.cancel(registration) }
            // Both slots get new owners, which have received no event.
            _ = try? loop.watch(third.near.number, for: .readable, handler: heir)
        }
        registrations.append(
            try loop.watch(first.near.number, for: .readable, handler: handler))
        registrations.append(
            try loop.watch(second.near.number, for: .readable, handler: handler))
        first.poke()
        second.poke()
        loop.schedule(after: .milliseconds(20)) { $0.stop() }
        loop.run()
        #expect(strays == 0)
    }

    @Test func `interest can be changed, and the peer's half-close is reported`() throws {
        let loop = try makeLoop()
        let pair = SocketPair()
        var seen: [Readiness] = []
        var own: Registration?
        let handler = ClosureHandler { readiness, loop in
            seen.append(readiness)
            if seen.count == 1, let own {
                try? loop.update(own, for: [.readable, .peerClosed])
                shutdown(pair.far.number, CInt(SHUT_WR))
            } else {
                loop.stop()
            }
        }
        own = try loop.watch(pair.near.number, for: .writable, handler: handler)
        loop.run()
        #expect(seen.first == .writable)
        #expect(seen.last?.contains(.peerClosed) == true)
        #expect(seen.last?.contains(.hangUp) == false)
    }
}
