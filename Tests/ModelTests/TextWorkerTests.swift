@testable import Model
import Posix
import Reactor
import Routing
import Store
import Synchronization
import Testing

/// The threads for long texts: which tasks they share, drop and reject.
@Suite struct `Tasks on long texts` {
    private let counters = Counters()
    private let worker: TextWorker

    init() throws { worker = try TextWorker(counters: counters) }

    private static func key(_ generation: UInt64) -> TextWorker.Key {
        TextWorker.Key(generation: generation, product: .position)
    }

    /// Received values, and a latch that opens with each.
    private final class Received: Sendable {
        private let values = Mutex<[Int]>([])
        private let latch: ThreadSemaphore

        init() throws { latch = try ThreadSemaphore() }

        func take(_ value: Int) {
            values.withLock { $0.append(value) }
            latch.signal()
        }

        /// The values once there are `count`, or after ten seconds.
        func values(_ count: Int) -> [Int] {
            for _ in 0..<count where !latch.wait(atMost: .seconds(10)) { break }
            return values.withLock { $0 }
        }
    }

    /// Tasks that block both threads until they are released.
    private final class Blockers {
        private let gates: [ThreadSemaphore]
        let received: Received

        init(_ worker: TextWorker, bytes: Int = 1) throws {
            received = try Received()
            gates = [try ThreadSemaphore(), try ThreadSemaphore()]
            let begun = try ThreadSemaphore()
            for (index, gate) in gates.enumerated() {
                let key = TextWorker.Key(generation: 1_000 + UInt64(index), product: .position)
                let request = worker.make(key, bytes: bytes) { () -> Int in
                    begun.signal()
                    _ = gate.wait(atMost: .seconds(10))
                    return index
                } reply: { [received] in
                    received.take($0)
                }
                #expect(request != nil)
            }
            for _ in gates { #expect(begun.wait(atMost: .seconds(10))) }
        }

        func letGo() { for gate in gates { gate.signal() } }
    }

    @Test func `requests for the same text share one task, other texts have their own`() throws {
        let blockers = try Blockers(worker)
        let received = try Received()
        let count = Shared(0)
        for _ in 0..<5 {
            let request = worker.make(Self.key(1), bytes: 1) {
                count.add()
            } reply: {
                received.take($0)
            }
            #expect(request != nil)
        }
        let other = worker.make(Self.key(2), bytes: 1) {
            7
        } reply: {
            received.take($0)
        }
        #expect(other != nil)
        blockers.letGo()
        #expect(received.values(6).sorted() == [1, 1, 1, 1, 1, 7])
        #expect(count.value == 1)
        worker.stop()
        #expect(counters.value(of: .longTexts) == 4)
    }

    @Test
    func `a task without waiting requests is dropped, others are not`()
        throws
    {
        let blockers = try Blockers(worker)
        let received = try Received()
        let count = Shared(0)
        let left = worker.make(Self.key(1), bytes: 1) {
            count.add()
        } reply: {
            received.take($0)
        }
        let kept = (0..<2).map { _ in
            worker.make(Self.key(2), bytes: 1) {
                5
            } reply: {
                received.take($0)
            }
        }
        worker.cancel(try #require(left))
        worker.cancel(try #require(kept[0]))
        blockers.letGo()
        #expect(received.values(1) == [5])
        worker.stop()
        #expect(count.value == 0)
    }

    @Test func `more waiting bytes than the limit are rejected until some are processed`() throws {
        let blockers = try Blockers(worker, bytes: 100 << 20)
        let received = try Received()
        #expect(worker.make(Self.key(1), bytes: 100 << 20, { 1 }, reply: received.take) == nil)
        // A task that is running does not count.
        let joined = worker.make(
            TextWorker.Key(generation: 1_000, product: .position), bytes: 100 << 20, { 9 },
            reply: received.take)
        #expect(joined != nil)
        blockers.letGo()
        #expect(received.values(1) == [0])
        _ = blockers.received.values(2)
        #expect(worker.make(Self.key(1), bytes: 300 << 20, { 1 }, reply: received.take) != nil)
        #expect(received.values(1) == [0, 1])
        worker.stop()
    }

    @Test func `a worker that stops finishes running tasks and begins no others`() throws {
        let blockers = try Blockers(worker)
        let count = Shared(0)
        for number in 1...4 {
            _ = worker.make(Self.key(UInt64(number)), bytes: 1) {
                count.add()
            } reply: { _ in
            }
        }
        let stopped = try ThreadSemaphore()
        let stopping = try PosixThread(name: "stop") { [worker] in
            worker.stop()
            stopped.signal()
        }
        // It waits for the running tasks.
        #expect(eventuallyRefused())
        blockers.letGo()
        #expect(stopped.wait(atMost: .seconds(10)))
        stopping.join()
        #expect(count.value == 0)
    }

    /// Whether the worker rejects tasks, after at most ten seconds.
    private func eventuallyRefused() -> Bool {
        let end = Monotonic.now() + .seconds(10)
        var number: UInt64 = 100
        while Monotonic.now() < end {
            number += 1
            guard let request = worker.make(Self.key(number), bytes: 1, { 0 }, reply: { _ in })
            else {
                return true
            }
            worker.cancel(request)
        }
        return false
    }

    /// A number that threads share.
    private final class Shared: Sendable {
        private let number: Mutex<Int>

        init(_ number: Int) { self.number = Mutex(number) }

        var value: Int { number.withLock { $0 } }

        /// One more.
        func add() -> Int {
            number.withLock { number in
                number += 1
                return number
            }
        }
    }
}
