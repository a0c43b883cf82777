import DurableState
import Glibc
import Logging
import Posix
import Retention
import RetentionLab
import Testing

@testable import Store

/// Pinned objects are never evicted, and pins survive the loss of the index.
@Suite struct PinTests {
    private let size: Int64 = 16_384

    private func add(_ store: ObjectStore, _ name: String, title: UInt64) throws {
        var description = describe(name, total: 12_288)
        description.title = title
        let object = try store.create(description)
        try store.publish(object)
        try fill(object, 0..<12_288)
        store.finish(object)
    }

    @Test(arguments: RetentionPolicyName.allCases)
    func `a pinned title is not evicted`(policy: RetentionPolicyName) throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path, budget: 4 * size) {
            $0.makePolicy = policy.makePolicy
        }
        defer { store.close() }
        // Until then nothing is evicted, and what needs room is refused after a second.
        try eventually { store.statistics().isReconciled }
        try add(store, "a", title: 5)
        try add(store, "b", title: 6)
        try store.flushed()
        let other = ObjectKey(sha256Of: "b")
        try store.pin(title: 5, url: "https://cdn.example.com/a", keys: [other])
        for name in 0..<20 {
            try add(store, "\(name)", title: 7)
            try store.flushed()
        }
        #expect(store.find("a")?.isComplete == true)
        #expect(store.find("b")?.isComplete == true)
        #expect(store.statistics().bytes <= 4 * size)
        #expect(store.statistics().evictions > 10)
    }

    @Test func `titles that lack pinned objects are found without opening the others`() throws {
        let folder = try TemporaryFolder()
        let (kept, gone) = (ObjectKey(sha256Of: "kept"), ObjectKey(sha256Of: "gone"))
        do {
            let store = try openStore(folder.path)
            defer { store.close() }
            for name in ["kept", "gone"] { try store.add(name, total: 5_000) }
            try store.pin(title: 5, url: "", keys: [kept])
            for title in 6...7 as ClosedRange<UInt64> {
                try store.pin(title: title, url: "", keys: [kept, gone])
            }
            try store.flushed()
        }
        let store = try openStore(folder.path)
        defer { store.close() }
        #expect(store.pinnedRests(of: [5, 6, 7, 8]).values.filter { !$0.isWhole }.isEmpty)
        #expect(store.statistics().openObjects == 0)
        _ = try store.purge(where: { $0.key == gone }, goesOn: { _ in true })
        let rests = store.pinnedRests(of: [5, 6, 8])
        #expect(rests[5]?.isWhole == true && rests[8] == nil)
        #expect(rests[6]?.held == 1 && rests[6]?.all == 2)
    }

    @Test func `pins that take all room are told once, and again after a change`() throws {
        let folder = try TemporaryFolder()
        let told = Told("pinned titles take the room")
        var configuration = StoreConfiguration(budgetBytes: 8 * size, minFreeBytes: 0)
        configuration.indexInterval = .milliseconds(20)
        let store = try ObjectStore(
            folder: folder.path, configuration: configuration,
            log: Logger(label: "pins") { _ in told })
        defer { store.close() }
        for name in 0..<4 { try add(store, "p\(name)", title: 5) }
        try store.flushed()
        try store.pin(title: 5, url: "https://cdn.example.com/a", keys: [])
        func addMore(_ name: String) throws {
            for number in 0..<20 { try add(store, "\(name)\(number)", title: 7) }
            try store.flushed()
        }
        // The pins leave room.
        try addMore("a")
        #expect(told.count == 0)
        store.limit(budget: 3 * size, minFree: 0)
        try eventually { told.count == 1 && store.statistics().isOutOfRoom }
        try addMore("b")
        #expect(told.count == 1)
        _ = try store.unpin(title: 5)
        try eventually {
            try add(store, "c", title: 7)
            return !store.statistics().isOutOfRoom
        }
    }

    @Test func `pins that leave room only for small objects are a lack of room until they go`()
        throws
    {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path, budget: 5 * size / 2) {
            $0.indexInterval = .milliseconds(20)
        }
        defer { store.close() }
        try eventually { store.statistics().isReconciled }
        for name in ["a", "b"] { try add(store, name, title: 5) }
        try store.pin(title: 5, url: "https://cdn.example.com/a", keys: [])
        try store.flushed()
        try eventually { store.core.usage.pinned == 2 * size }
        #expect(!store.statistics().isOutOfRoom)
        #expect(!store.core.obtain(size))
        // Neither a search of which nothing is wanted any more nor a small object ends it.
        store.core.channel.askEviction(bytes: 0)
        try store.flushed()
        #expect(store.core.obtain(4096))
        store.core.usage.isStuck = false
        #expect(store.statistics().isOutOfRoom)
        _ = try store.unpin(title: 5)
        try eventually { !store.statistics().isOutOfRoom }
        try eventually { store.core.obtain(size) }
        #expect(store.core.usage.refused == nil)
    }

    @Test func `pins survive the loss of the index`() throws {
        let folder = try TemporaryFolder()
        let first = try openStore(folder.path)
        for name in 0..<6 { try add(first, "\(name)", title: UInt64(name) + 1) }
        try first.pin(title: 3, url: "https://cdn.example.com/\t2", keys: [])
        first.close()
        unlink(folder.path + "/index.sqlite")

        let store = try openStore(folder.path, budget: 2 * size)
        defer { store.close() }
        #expect(store.pins().map(\.title) == [3])
        #expect(store.pin(of: 3) == store.pins().first && store.pin(of: 4) == nil)
        #expect(store.pins().first?.url == "https://cdn.example.com/\t2")
        try eventually { store.statistics().bytes <= 2 * size }
        #expect(store.find("2")?.isComplete == true)
    }

    @Test func `what a pin names stays pinned when it is fetched again`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path, budget: 4 * size)
        defer { store.close() }
        try eventually { store.statistics().isReconciled }
        let key = ObjectKey(sha256Of: "b")
        try add(store, "b", title: 6)
        try store.pin(title: 5, url: "https://cdn.example.com/a", keys: [key])
        try store.flushed()
        store.remove(key)
        try store.flushed()
        try add(store, "b", title: 8)
        for name in 0..<20 {
            try add(store, "\(name)", title: 7)
            try store.flushed()
        }
        #expect(store.find("b")?.isComplete == true)
        #expect(store.statistics().evictions > 10)
    }

    /// The numbers of the rows of all pins, with how many keys each holds.
    private func rows(_ store: ObjectStore) -> [UInt64: Int] {
        let records = store.state.records(PinRecord.self)
        return Dictionary(
            uniqueKeysWithValues: records.map { ($0.title, $0.keys.count / PinRecord.keyLength) })
    }

    private func keys(_ numbers: Range<Int>) -> [ObjectKey] {
        numbers.compactMap { number in
            var bytes = [UInt8](repeating: 0, count: 32)
            for place in 0..<4 { bytes[place] = UInt8(truncatingIfNeeded: number >> (8 * place)) }
            return ObjectKey(bytes: bytes)
        }
    }

    @Test func `of a long pin that grows the end is written`() throws {
        let folder = try TemporaryFolder()
        let most = PinRows.mostKeys
        let second: UInt64 = 5 | 1 << 48
        let third: UInt64 = 5 | 2 << 48
        do {
            let store = try openStore(folder.path)
            defer { store.close() }
            try store.pin(title: 6, url: "other", keys: keys(0..<1))
            try store.pin(title: 5, url: "u", keys: keys(0..<most + 1))
            #expect(rows(store) == [6: 1, 5: most, second: 1])
            let since = try #require(store.pin(of: 5)?.since)
            let first = store.state.records(PinRecord.self).first { $0.title == 5 }
            // In another order, as a set has them after a restart.
            try store.pin(title: 5, url: "u", keys: keys(0..<2 * most + 3).reversed())
            #expect(rows(store) == [6: 1, 5: most, second: most, third: 3])
            #expect(store.state.records(PinRecord.self).first { $0.title == 5 } == first)
            #expect(store.pin(of: 5)?.since == since && store.pins().count == 2)
        }
        do {
            let store = try openStore(folder.path)
            defer { store.close() }
            let pin = try #require(store.pin(of: 5))
            #expect(pin.url == "u" && Set(pin.keys) == Set(keys(0..<2 * most + 3)))
            #expect(store.pins().count == 2)
            // With fewer keys it is written anew.
            try store.pin(title: 5, url: "u", keys: keys(1..<most))
            #expect(rows(store) == [6: 1, 5: most - 1])
            try store.pin(title: 5, url: "u", keys: keys(0..<3 * most))
            #expect(try store.unpin(title: 5))
            #expect(rows(store) == [6: 1])
        }
    }

    @Test func `a part of a long pin that is lost is written again`() throws {
        let folder = try TemporaryFolder()
        let most = PinRows.mostKeys
        let first = try openStore(folder.path)
        try first.pin(title: 5, url: "u", keys: keys(0..<2 * most + 1))
        try first.state.erase(
            PinRecord.self, key: [.integer(Int64(bitPattern: 5 | 1 << 48))])
        first.close()
        let store = try openStore(folder.path)
        defer { store.close() }
        #expect(store.pin(of: 5)?.keys.count == most + 1)
        try store.pin(title: 5, url: "u", keys: keys(0..<2 * most + 1))
        #expect(rows(store).values.sorted() == [1, most, most])
        #expect(try store.unpin(title: 5))
        #expect(rows(store).isEmpty)
    }

    @Test func `a long pin that a former version has removed does not return`() throws {
        let folder = try TemporaryFolder()
        let first = try openStore(folder.path)
        try first.pin(title: 5, url: "u", keys: keys(0..<2 * PinRows.mostKeys + 1))
        try first.pin(title: 6, url: "v", keys: keys(0..<1))
        // It removes the row with the number of the title.
        try first.state.erase(PinRecord.self, key: [.integer(5)])
        first.close()
        let store = try openStore(folder.path)
        defer { store.close() }
        #expect(store.pins().map(\.title) == [6])
        #expect(rows(store) == [6: 1])
    }

    @Test(arguments: [false, true])
    func `a long pin whose first row is damaged keeps the others`(_ isSetAside: Bool) throws {
        let folder = try TemporaryFolder()
        let most = PinRows.mostKeys
        let first = try openStore(folder.path)
        try first.pin(title: 5, url: "u", keys: keys(0..<2 * most + 1))
        if isSetAside {
            // A former run has gone on with what could be read.
            try first.state.erase(PinRecord.self, key: [.integer(5)])
            try writeFile(folder.path + "/state.damaged-1", [])
        } else {
            try first.state.keep([PinRecord(title: 5, url: "u", since: 1, keys: [1, 2, 3])])
        }
        first.close()
        for _ in 0..<2 {
            let store = try openStore(folder.path)
            defer { store.close() }
            #expect(Set(store.pin(of: 5)?.keys ?? []) == Set(keys(most..<2 * most + 1)))
            #expect(rows(store) == [5: most, 5 | 1 << 48: 1])
            // It says nothing of what the next run finds.
            unlink(folder.path + "/state.damaged-1")
        }
    }

    @Test func `in a database that has replaced another one a long pin is written anew`() throws {
        let folder = try TemporaryFolder()
        let most = PinRows.mostKeys
        let store = try openStore(folder.path)
        defer { store.close() }
        try store.pin(title: 5, url: "u", keys: keys(0..<most + 1))
        // As if it could not be read when the other file was made.
        try store.state.erase(PinRecord.self, key: [.integer(5)])
        for name in ["", "-wal", "-shm"] { unlink(folder.path + "/state.sqlite" + name) }
        try store.state.moveIntoNewFolder()
        try store.pin(title: 5, url: "u", keys: keys(0..<most + 3))
        #expect(rows(store) == [5: most, 5 | 1 << 48: 3])
    }

    @Test func `a pin of more keys than a row of the database takes is kept`() throws {
        let folder = try TemporaryFolder()
        let count = (17 << 20) / PinRecord.keyLength
        do {
            let store = try openStore(folder.path)
            defer { store.close() }
            try store.pin(title: 5, url: "u", keys: keys(0..<count))
        }
        let store = try openStore(folder.path)
        defer { store.close() }
        #expect(store.pin(of: 5)?.keys.count == count)
    }

    @Test func `a change of one pin reads the objects of its title alone`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        for (name, title) in [("a", 1), ("b", 2), ("c", 3)] as [(String, UInt64)] {
            try add(store, name, title: title)
        }
        try store.flushed()
        let evictor = try store.makeWorker().evictor
        let pins = store.core.pins
        var read: [UInt64] = []
        evictor.readKeys = { title in
            read.append(title)
            return try store.core.index.keys(ofTitle: title)
        }
        func pinnedBytes() -> Int64? { evictor.sumPins(until: Monotonic(nanoseconds: .max)) }
        func pin(_ title: UInt64, _ keys: [ObjectKey]) throws {
            let pin = Pin(title: title, url: "u", since: .now(), keys: keys)
            evictor.followPin(of: title, unnamed: try pins.add(pin))
        }
        func unpin(_ title: UInt64) throws {
            evictor.followPin(of: title, unnamed: try #require(try pins.remove(title, with: [])))
        }
        let shared = ObjectKey(sha256Of: "c")
        try pin(1, [shared])
        #expect(read == [1] && pinnedBytes() == 2 * size)
        try pin(2, [shared])
        #expect(read == [1, 2] && pinnedBytes() == 3 * size)
        // What another pin names stays, and the title's own objects are known.
        try pin(1, [])
        #expect(read == [1, 2] && pinnedBytes() == 3 * size)
        try unpin(2)
        #expect(read == [1, 2, 2] && pinnedBytes() == size)
        try unpin(1)
        #expect(read == [1, 2, 2, 1] && pinnedBytes() == 0)
    }

    @Test func `the bytes of pinned objects follow pins and objects`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        for (name, title) in [("a", 1), ("b", 2), ("c", 3)] as [(String, UInt64)] {
            try add(store, name, title: title)
        }
        try store.flushed()
        // The store's own thread counts them at the end of the comparison.
        try eventually { store.statistics().isReconciled }
        let keys = ["a", "b", "c"].map { ObjectKey(sha256Of: $0) }
        let rows = try store.core.index.rows(of: keys).compactMap { $0 }
        let evictor = try store.makeWorker().evictor
        let (pins, usage) = (store.core.pins, store.core.usage)
        for row in rows { evictor.insert(row) }
        #expect(rows.count == 3 && usage.pinned == 0)
        evictor.tellBytes()
        #expect(usage.evictable == 3 * size)
        let pin = Pin(title: 1, url: "u", since: .now(), keys: [keys[2]])
        evictor.followPin(of: 1, unnamed: try pins.add(pin))
        #expect(usage.pinned == 2 * size && usage.evictable == size)
        evictor.remove(keys[0])
        evictor.remove(keys[2])
        #expect(usage.pinned == 0)
        for row in rows + rows { evictor.insert(row) }
        #expect(usage.pinned == 2 * size)
        evictor.startAnew()
        #expect(usage.pinned == 0)
        for row in rows { evictor.policy.insert(row.key.name, Retained(row)) }
        evictor.reloadPins()
        #expect(usage.pinned == 2 * size)
        evictor.followPin(of: 1, unnamed: try #require(try pins.remove(1, with: [])))
        #expect(usage.pinned == 0)
    }

    @Test func `the bytes of many pinned objects are added up in steps`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        for name in ["a", "b", "c"] { try add(store, name, title: 5) }
        try store.flushed()
        let evictor = try store.makeWorker().evictor
        try store.pin(title: 5, url: "u", keys: [])
        evictor.reloadPins()
        // Each step ends at once.
        let past = Monotonic(nanoseconds: .min)
        #expect(evictor.sumPins(until: past) == nil && evictor.sumPins(until: past) == nil)
        #expect(evictor.sumPins(until: past) == 3 * size)
        #expect(evictor.sumPins(until: past) == nil)
        evictor.forgetPinSum()
        #expect(evictor.sumPins(until: Monotonic(nanoseconds: .max)) == 3 * size)
    }

    @Test func `a pin that is added ends neither a pause of the search nor a sum of pins`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        for name in ["a", "b", "c"] { try add(store, name, title: 5) }
        try store.flushed()
        let worker = try store.makeWorker()
        func pin(_ title: UInt64, _ keys: [ObjectKey]) throws {
            let pin = Pin(title: title, url: "u", since: .now(), keys: keys)
            worker.followPin(of: title, unnamed: try store.core.pins.add(pin))
        }
        try pin(5, [])
        try pin(6, keys(0..<1))
        let (past, now) = (Monotonic(nanoseconds: .min), Monotonic.now())
        worker.pause.noteFruitless(examined: .max, at: now)
        #expect(worker.evictor.sumPins(until: past) == nil)
        #expect(worker.evictor.sumPins(until: past) == nil)
        #expect(worker.evictor.sumPins(until: past) == nil)
        try pin(6, keys(0..<2))
        try pin(7, [])
        #expect(worker.evictor.sumPins(until: past) == 3 * size)
        #expect(worker.pause.left(at: now) != nil)
        try pin(6, keys(0..<1))
        #expect(worker.pause.left(at: now) == nil)
        worker.pause.noteFruitless(examined: .max, at: now)
        let unnamed = try #require(try store.core.pins.remove(7, with: []))
        worker.followPin(of: 7, unnamed: unnamed)
        #expect(worker.pause.left(at: now) == nil)
    }

    @Test func `an unpinned title can be evicted`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        try store.pin(title: 3, url: "u", keys: [])
        #expect(try store.unpin(title: 3))
        #expect(try !store.unpin(title: 3))
        #expect(store.pins().isEmpty)
    }
}
