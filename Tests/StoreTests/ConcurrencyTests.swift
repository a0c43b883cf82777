import Glibc
import Posix
import Reactor
import Store
import Synchronization
import Testing

/// Many threads use one store.
@Suite struct ConcurrencyTests {
    /// All bytes that are found are exact, and the accounts match the disk at the end.
    @Test(.timeLimit(.minutes(5)))
    func `concurrent lookups, fills, removals and evictions keep bytes and accounts exact`() throws
    {
        let folder = try TemporaryFolder()
        let budget: Int64 = 400_000
        let store = try openStore(folder.path, budget: budget) {
            $0.maxOpenObjects = 16
            $0.indexInterval = .milliseconds(5)
            $0.commitInterval = .milliseconds(20)
        }
        let wrong = Atomic<Int>(0)
        try withThreads(4) { seed in
            var numbers = SpanSetTests.Numbers(state: seed)
            for _ in 0..<250 {
                do {
                    if try !Self.step(store, &numbers) { wrong.add(1, ordering: .relaxed) }
                } catch {
                    // A budget that is full now is a reason not to store, and not a failure.
                    let isFull = (error as? SystemError)?.code == EDQUOT
                    if !isFull { wrong.add(1, ordering: .relaxed) }
                }
            }
        }
        #expect(wrong.load(ordering: .acquiring) == 0)
        try eventually { store.statistics().bytes <= budget }
        try eventually {
            try store.flushed()
            let rows = store.entries(limit: -1)
            let statistics = store.statistics()
            return rows.reduce(0) { $0 + $1.bytes } == statistics.bytes
                && rows.count == statistics.objects
        }
        #expect(try countFiles(folder.path + "/objects") == store.statistics().objects)
        #expect(try listFolder(folder.path + "/new").isEmpty)
        let before = store.statistics()
        store.close()

        let again = try openStore(folder.path, budget: budget)
        defer { again.close() }
        try eventually { again.statistics().isReconciled }
        #expect(again.statistics().bytes == before.bytes)
        #expect(again.statistics().objects == before.objects)
        #expect(again.statistics().damagedObjects == 0)
    }

    /// One random operation of a proxy; false if it read wrong bytes.
    private static func step(
        _ store: ObjectStore, _ numbers: inout SpanSetTests.Numbers
    ) throws -> Bool {
        let name = "\(Int.random(in: 0..<60, using: &numbers))"
        switch Int.random(in: 0..<10, using: &numbers) {
        case 0: store.remove(ObjectKey(sha256Of: name))
        case 1: store.find(name)?.discard()
        case 2...4:
            let total = Int64.random(in: 1...20_000, using: &numbers)
            let end = Int64.random(in: 1...total, using: &numbers)
            let object = try store.add(name, total: total, filled: 0..<end)
            return try read(object, 0..<end) == body(0..<end)
        default:
            guard let object = store.find(name) else { return true }
            if !object.isComplete, let total = object.total, !object.hasFills {
                try fill(object, object.spans.end..<total)
                store.finish(object)
            }
            for span in object.spans.ranges {
                guard try read(object, span) == body(span) else { return false }
            }
        }
        return true
    }

    private func withThreads(
        _ count: UInt64, _ body: @escaping @Sendable (UInt64) -> Void
    ) throws {
        let threads = try (1...count).map { seed in try PosixThread(name: "user") { body(seed) } }
        for thread in threads { thread.join() }
    }

    private func countFiles(_ path: String) throws -> Int {
        try listFolder(path).reduce(0) { try $0 + listFolder("\(path)/\($1.name)").count }
    }
}
