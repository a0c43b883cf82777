import Glibc
import Posix
import Reactor
import Store
import Synchronization
import Testing

/// Readers and fills of one object.
@Suite struct ReadingTests {
    struct Broken: Error {}

    /// Collects the reports to a waiter.
    final class Calls: Sendable {
        private let events = Mutex<[WakeEvent]>([])
        var waiter: Waiter { Waiter { event in self.events.withLock { $0.append(event) } } }
        var seen: [WakeEvent] { events.withLock { $0 } }
    }

    private func withObject(total: Int64?, _ body: (StoredObject) throws -> Void) throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        let object = try store.create(describe("a", total: total))
        try store.publish(object)
        try body(object)
    }

    @Test func `present bytes, holes and the end are distinguished`() throws {
        try withObject(total: 100) { object in
            try fill(object, 20..<30)
            #expect(object.state(at: 25) == .present(count: 5))
            #expect(object.state(at: 100) == .end)
            guard case .hole(let hole) = object.state(at: 0) else {
                Issue.record("no hole"); return
            }
            #expect(hole.end == 20)
            #expect(hole.fill == nil)
            #expect(try read(object, 20..<30) == body(20..<30))
        }
    }

    @Test func `a hole names the fill that reaches it first`() throws {
        try withObject(total: nil) { object in
            let first = object.beginFill(from: 0, to: nil)
            let second = object.beginFill(from: 50, to: 80)
            guard case .hole(let near) = object.state(at: 60),
                case .hole(let far) = object.state(at: 90)
            else { Issue.record("no hole"); return }
            #expect(near.fill == second)
            #expect(near.fillDistance == 10)
            #expect(far.fill == first)
            #expect(far.fillDistance == 90)
        }
    }

    @Test func `a waiter is called once, when its byte is present`() throws {
        try withObject(total: 100) { object in
            let calls = Calls()
            let fill = object.beginFill(from: 0, to: 100)
            #expect(object.wait(at: 10, calls.waiter) == .waiting)
            object.extend(fill, to: 10)
            #expect(calls.seen.isEmpty)
            object.extend(fill, to: 11)
            object.extend(fill, to: 20)
            #expect(calls.seen == [.progress])
        }
    }

    @Test(.timeLimit(.minutes(1)))
    func `each of very many waiters is called with its byte, and no other`() throws {
        let count: Int64 = 10_000
        try withObject(total: nil) { object in
            let called = Mutex<[Int64]>([])
            for offset in (0..<count).map({ $0 * 7_919 % count }) + [count + 5, count] {
                let waiter = Waiter { _ in called.withLock { $0.append(offset) } }
                #expect(object.wait(at: offset, waiter) == .waiting)
            }
            var middle = FillWriter(object, from: 5_000, to: 5_010)
            try body(5_000..<5_010).withUnsafeBytes { try middle.append($0) }
            #expect(called.withLock(\.self) == Array(5_000..<5_010))
            var writer = FillWriter(object, from: 0, to: nil)
            for offset in 0..<count {
                try body(offset..<offset + 1).withUnsafeBytes { try writer.append($0) }
            }
            let others = Array(0..<5_000) + Array(5_010..<count)
            #expect(called.withLock { Array($0.dropFirst(10)) } == others)
            #expect(object.learnTotal(count))
            #expect(called.withLock { Array($0.suffix(2)) } == [count, count + 5])
            #expect(called.withLock { $0.count } == Int(count) + 2)
            middle.end(failure: nil)
            writer.end(failure: nil)
        }
    }

    @Test func `waiting for a present byte is rejected`() throws {
        try withObject(total: 100) { object in
            try fill(object, 0..<10)
            #expect(object.wait(at: 9, Calls().waiter) == .ready)
            #expect(object.wait(at: 100, Calls().waiter) == .ready)
        }
    }

    @Test func `the end of a fill wakes every waiter and keeps the failure`() throws {
        try withObject(total: 100) { object in
            let calls = Calls()
            let fill = object.beginFill(from: 0, to: 100)
            #expect(object.wait(at: 10, calls.waiter) == .waiting)
            object.endFill(fill, failure: Broken())
            #expect(calls.seen == [.fillEnded])
            #expect(object.lastFailure?.endedFills == 1)
            #expect(object.lastFailure?.error is Broken)
        }
    }

    @Test func `a failure tells how far from a byte the fill was that was to bring it`() throws {
        try withObject(total: 100) { object in
            let fill = object.beginFill(from: 20, to: 60)
            object.endFill(fill, failure: Broken())
            let distances = [10, 20, 50, 60].map { object.lastFailure?.distance(to: $0) }
            #expect(distances == [nil, 0, 30, nil])
        }
    }

    @Test func `a discard reports the storage failure to waiters, and the report stays`() throws {
        try withObject(total: 100) { object in
            let seen = Mutex([Bool]())
            let full = object.beginFill(from: 0, to: 50)
            let other = object.beginFill(from: 50, to: 100)
            let waiter = Waiter { _ in seen.withLock { $0.append(object.didFailToStore) } }
            #expect(object.wait(at: 10, waiter) == .waiting)
            object.discard(because: SystemError("reserve", code: EDQUOT))
            object.endFill(full, failure: SystemError("reserve", code: EDQUOT))
            object.endFill(other, failure: Broken())
            #expect(seen.withLock(\.self) == [true])
            #expect(object.didFailToStore && object.lastFailure?.error is Broken)
        }
    }

    @Test func `a fill that ends between query and wait is noticed`() throws {
        try withObject(total: 100) { object in
            let fill = object.beginFill(from: 0, to: 100)
            guard case .hole(let hole) = object.state(at: 10) else {
                Issue.record("no hole"); return
            }
            object.endFill(fill, failure: Broken())
            #expect(object.wait(at: 10, since: hole, Calls().waiter) == .ready)
        }
    }

    @Test func `a cancelled waiter is not called`() throws {
        try withObject(total: 100) { object in
            let calls = Calls()
            let waiter = calls.waiter
            _ = object.wait(at: 0, waiter)
            object.cancelWait(waiter.id)
            try fill(object, 0..<100)
            #expect(calls.seen.isEmpty)
        }
    }

    @Test func `the end of a body of unknown length wakes waiters there`() throws {
        try withObject(total: nil) { object in
            let calls = Calls()
            try fill(object, 0..<10)
            #expect(object.wait(at: 10, calls.waiter) == .waiting)
            #expect(object.learnTotal(10))
            #expect(calls.seen == [.progress])
            #expect(object.isComplete)
        }
    }

    @Test(arguments: [
        (Int64?.none, Int64(20), true), (nil, 5, false), (100, 99, false), (100, 100, true),
    ])
    func `a length that contradicts the object is rejected`(
        known: Int64?, learnt: Int64, isTrue: Bool
    ) throws {
        try withObject(total: known) { object in
            try fill(object, 0..<10)
            #expect(object.learnTotal(learnt) == isTrue)
        }
    }

    @Test func `a length that was only one of the moment is forgotten, and no byte`() throws {
        let folder = try TemporaryFolder()
        var store = try openStore(folder.path)
        let object = try store.add("a", total: 100)
        // Kept in memory as the whole body.
        #expect(object.shortBytes(0..<100) == body(0..<100))
        object.forgetTotal()
        #expect(object.total == nil && !object.isComplete)
        #expect(object.state(at: 40) == .present(count: 60))
        guard case .hole = object.state(at: 100) else {
            Issue.record("the body still ends"); return
        }
        try fill(object, 100..<130)
        #expect(object.shortBytes(90..<130) == body(90..<130))
        try store.flushed()
        store.close()
        store = try openStore(folder.path)
        defer { store.close() }
        let again = try #require(store.find("a"))
        #expect(again.total == nil && again.spans == SpanSet([0..<130]))
        #expect(again.learnTotal(130) && again.isComplete)
    }

    @Test func `discarding wakes waiters and hides the object`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        let object = try store.create(describe("a", total: 100))
        try store.publish(object)
        let calls = Calls()
        _ = object.wait(at: 0, calls.waiter)
        object.discard()
        #expect(calls.seen == [.fillEnded])
        #expect(store.find("a") == nil)
        #expect(object.wait(at: 0, calls.waiter) == .ready)
        try eventually { !exists(objectPath(folder.path, "a")) }
    }

    @Test func `a reader of a discarded object can wait for a running fill`() throws {
        try withObject(total: 100) { object in
            let calls = Calls()
            let fill = object.beginFill(from: 0, to: 100)
            object.discard()
            #expect(object.wait(at: 0, calls.waiter) == .waiting)
            object.extend(fill, to: 10)
            #expect(calls.seen == [.progress])
        }
    }

    /// Readers of a growing object at different offsets and speeds.
    @Test func `concurrent readers get exact bytes of a growing object`() throws {
        try withObject(total: 1 << 18) { object in
            let readers = try (0..<4).map { try ReaderThread(object, from: Int64($0) * 50_003) }
            // Two fills, the second far ahead of the first one's watermark.
            let fillers = try [0..<150_000, 150_000..<Int64(1 << 18)].map { range in
                try PosixThread(name: "filler") {
                    var writer = FillWriter(object, from: range.lowerBound, to: range.upperBound)
                    while writer.offset < range.upperBound {
                        let end = min(writer.offset + 7001, range.upperBound)
                        try? body(writer.offset..<end).withUnsafeBytes { try writer.append($0) }
                    }
                    writer.end(failure: nil)
                }
            }
            for thread in fillers { thread.join() }
            for reader in readers { reader.join() }
            #expect(readers.allSatisfy { $0.isExact })
        }
    }
}

/// Reads an object from an offset to its end, waiting where it must.
final class ReaderThread: Sendable {
    private let thread: Mutex<PosixThread?> = Mutex(nil)
    private let exact = Atomic<Bool>(false)

    var isExact: Bool { exact.load(ordering: .acquiring) }

    init(_ object: StoredObject, from start: Int64) throws {
        let made = try PosixThread(name: "reader") { [self] in
            exact.store((try? walk(object, from: start)) ?? false, ordering: .releasing)
        }
        thread.withLock { $0 = made }
    }

    func join() { thread.withLock { $0 }?.join() }

    private func walk(_ object: StoredObject, from start: Int64) throws -> Bool {
        var offset = start
        while true {
            switch object.state(at: offset) {
            case .end: return true
            case .present(let count):
                let end = offset + min(count, 4096 + start % 1000)
                guard try read(object, offset..<end) == body(offset..<end) else { return false }
                offset = end
            case .hole(let hole):
                let latch = try ThreadSemaphore()
                if object.wait(at: offset, since: hole, Waiter { _ in latch.signal() }) == .waiting
                {
                    guard latch.wait(atMost: .seconds(60 as Int64)) else { return false }
                }
            }
        }
    }
}
