import Glibc
import Posix
import Synchronization
import Testing

@testable import Reactor

/// Work that holds a loop for too long is reported by name.
@Suite(.timeLimit(.minutes(5)))
struct LoopHoldTests {
    private final class Reports: Sendable {
        private let list = Mutex<[LoopHold]>([])
        var all: [LoopHold] { list.withLock { $0 } }
        func add(_ hold: LoopHold) { list.withLock { $0.append(hold) } }
    }

    /// Holds the calling thread for longer than the limit, by the loop's clock.
    private static func hold() {
        let start = Monotonic.now()
        while Monotonic.now() - start <= LoopHold.limit {}
    }

    @Test func `handlers, timers, jobs and ends of rounds are reported separately`() throws {
        let reports = Reports()
        let loop = try EventLoop(handle: LoopHandle()) { reports.add($0) }
        let pair = SocketPair()
        let handler = ClosureHandler { _, loop in
            Self.hold()
            loop.stop()
        }
        let registration = try loop.watch(pair.near.number, for: .readable, handler: handler)
        pair.poke()
        loop.schedule(after: .zero) { _ in Self.hold() }
        loop.handle.enqueue { _ in Self.hold() }
        loop.atRoundEnd { _ in Self.hold() }
        loop.run()
        loop.cancel(registration)

        let works = reports.all.map(\.work.description)
        #expect(works.contains { $0 == "handler ClosureHandler" })
        for kind in ["timer of", "job of", "end of round of"] {
            #expect(works.contains { $0.hasPrefix(kind + " ReactorTests/LoopHoldTests.swift:") })
        }
        #expect(reports.all.allSatisfy { $0.duration > LoopHold.limit })
    }
}
