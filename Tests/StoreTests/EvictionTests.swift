import GRDB
import Glibc
import Logging
import Posix
import Reactor
import Retention
import RetentionLab
import Synchronization
import Testing

@testable import Store

/// The budget, the order of eviction, generations, and objects that are never stored.
@Suite struct EvictionTests {
    /// The bytes that an object with a body of 12,288 bytes occupies.
    private let size: Int64 = 16_384

    @Test func `the least recently used object is evicted first, within the budget`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path, budget: 4 * size) {
            $0.makePolicy = RetentionPolicyName.lru.makePolicy
        }
        defer { store.close() }
        for name in ["a", "b", "c", "d"] { try store.add(name, total: 12_288) }
        store.watch("a")
        try store.flushed()
        #expect(store.reserve(size))
        try eventually { store.statistics().evictions == 1 }
        try store.add("e", total: 12_288)
        try store.flushed()
        #expect(store.find("b") == nil)
        #expect(!exists(objectPath(folder.path, "b")))
        #expect(["a", "d", "e"].allSatisfy { store.find($0) != nil })
        #expect(store.statistics().bytes <= 4 * size)
    }

    @Test func `an eviction for the disk ends when enough was deleted`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path, budget: 16 * size)
        defer { store.close() }
        let names = (0..<10).map { "\($0)" }
        for name in names { try store.add(name, total: 12_288) }
        try store.flushed()
        // A file system that reports freed space later.
        let evictor = try store.evictor(of: names)
        evictor.readFree = { FreeRoom(bytes: 1 << 30) }
        evictor.isDiskLate = true
        store.core.usage.minFree = 1 << 30 + size + 1
        let end = Monotonic.now() + .seconds(60 as Int64)
        // What is missing, and an eighth of the budget for what is refused meanwhile.
        #expect(evictor.evict(until: end, wanted: 0) == 4 * size)
        #expect(!evictor.isShort(0) && store.core.usage.awaitsDisk)
        #expect(store.statistics().objects == 6)
        evictor.readFree = { FreeRoom(bytes: 2 << 30) }
        #expect(!evictor.isShort(0) && !store.core.usage.awaitsDisk)
    }

    @Test func `an index that cannot be read keeps the order of eviction`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path) {
            $0.makePolicy = RetentionPolicyName.lru.makePolicy
        }
        defer { store.close() }
        for name in ["a", "b"] { try store.add(name, total: 12_288) }
        try store.flushed()
        let evictor = try store.evictor(of: ["a", "b"])
        let index = try DatabaseQueue(path: folder.path + "/index.sqlite")
        func execute(_ sql: String) throws { try index.write { try $0.execute(sql: sql) } }
        evictor.readFree = {
            FreeRoom(bytes: store.statistics().objects == 2 ? 1 << 30 : 2 << 30)
        }
        store.core.usage.minFree = 1 << 30 + 1
        let end = Monotonic.now() + .seconds(60 as Int64)
        try execute("ALTER TABLE objects RENAME TO hidden")
        for _ in 0..<3 { #expect(evictor.evict(until: end, wanted: 0) == nil) }
        try execute("ALTER TABLE hidden RENAME TO objects")
        #expect(evictor.evict(until: end, wanted: 0) == size)
        #expect(store.find("a") == nil && store.find("b") != nil)
    }

    @Test func `a file that cannot be deleted does not keep others from being evicted`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path) { $0.deletionInterval = .zero }
        defer { store.close() }
        let names = ["a", "b", "c", "d"]
        for name in names {
            // A title is evicted from its end.
            var description = describe(name, total: 12_288)
            description.title = 1
            let object = try store.create(description)
            try store.publish(object)
            try fill(object, 0..<12_288)
            store.finish(object)
        }
        try store.flushed()
        // unlink(2) refuses a folder.
        let path = objectPath(folder.path, "d")
        unlink(path)
        try makeFolder(path)
        let evictor = try store.evictor(of: names)
        store.core.usage.minFree = 1 << 30 + 1
        func evict(downTo count: Int) -> Int64? {
            evictor.readFree = {
                FreeRoom(bytes: store.statistics().objects > count ? 1 << 30 : 2 << 30)
            }
            return evictor.evict(until: Monotonic(nanoseconds: .max), wanted: 0)
        }
        #expect(evict(downTo: 2) == 2 * size)
        #expect(!exists(objectPath(folder.path, "b")) && !exists(objectPath(folder.path, "c")))
        #expect(exists(path) && exists(objectPath(folder.path, "a")))
        // It is tried again, and nothing else is evicted in its place.
        rmdir(path)
        #expect(evict(downTo: 1) == size)
        #expect(store.find("a")?.isComplete == true)
    }

    @Test(.timeLimit(.minutes(1)))
    func `rows that the index does not have are found by name among very many`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        let writer = IndexWriter(core: store.core)
        let keys = (0..<100_000).map { ObjectKey(sha256Of: "\($0)") }
        for key in keys { writer.note(.put(row(key)), of: key) }
        for key in keys.prefix(5_000) {
            #expect(try writer.row(ofName: key.name)?.key == key)
        }
        let late = ObjectKey(sha256Of: "late")
        #expect(try writer.row(ofName: late.name) == nil)
        writer.note(.put(row(late)), of: late)
        #expect(try writer.row(ofName: late.name)?.key == late)
        writer.note(.delete, of: late)
        #expect(try writer.row(ofName: late.name) == nil)
        writer.moveIn()
        #expect(try writer.row(ofName: keys[0].name) == nil)
    }

    private func row(_ key: ObjectKey) -> StoreEntry {
        StoreEntry(
            key: key, url: "http://h/", role: 0, title: 0, kind: .structure, isRead: true,
            bytes: size, total: nil, isComplete: false, created: WallTime(nanoseconds: 0),
            knownUse: nil)
    }

    @Test func `an object in use is not evicted`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path, budget: 3 * size)
        defer { store.close() }
        let held = try store.add("a", total: 12_288)
        for name in ["b", "c"] { try store.add(name, total: 12_288) }
        try store.flushed()
        _ = store.reserve(2 * size)
        try eventually { store.statistics().evictions == 2 }
        #expect(store.find("a") === held)
        #expect(store.find("b") == nil)
        #expect(try read(held, 0..<12_288) == body(0..<12_288))
    }

    @Test func `an object that is opened after its selection is not evicted`() throws {
        let folder = try TemporaryFolder()
        let opened = Opened()
        let store = try openStore(folder.path, budget: 3 * size) {
            $0.makePolicy = { Opening(RetentionPolicyName.lru.makePolicy(capacity: $0), opened) }
        }
        defer { store.close() }
        opened.state.withLock { $0.store = store }
        for name in ["a", "b", "c"] { try store.add(name, total: 12_288) }
        try store.flushed()
        _ = store.reserve(size)
        try eventually { store.statistics().evictions == 1 }
        let held = try #require(opened.state.withLock { $0.object })
        #expect(store.find("a") === held)
        #expect(exists(objectPath(folder.path, "a")))
        #expect(store.find("b") == nil)
        opened.state.withLock { $0 = Opened.State() }
    }

    @Test func `growth beyond the budget evicts automatically`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path, budget: 10 * size)
        defer { store.close() }
        for name in 0..<30 { try store.add("\(name)", total: 12_288) }
        try eventually { store.statistics().bytes <= 10 * size }
        #expect(store.statistics().evictions >= 10)
    }

    @Test func `a reservation is rejected if nothing can be evicted`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path, budget: 2 * size)
        defer { store.close() }
        #expect(!store.reserve(3 * size))
        let held = try store.add("a", total: 12_288)
        _ = store.reserve(2 * size)
        try eventually { !store.reserve(2 * size) }
        #expect(held.isCurrent)
    }

    @Test func `an object that needs room neither waits for an eviction nor is refused`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path, budget: 2 * size)
        defer { store.close() }
        for name in ["a", "b"] { try store.add(name, total: 12_288) }
        try store.flushed()
        try eventually { store.statistics().isReconciled }
        try withBusyThread(of: store) {
            let hasRoom = (0..<3).map { _ in store.core.obtain(size) }
            // Up to twice a small budget.
            #expect(hasRoom == [true, true, false])
            #expect(store.statistics().bytes == 4 * size)
        }
        try eventually { store.statistics().evictions == 2 }
        #expect(store.statistics().bytes == 2 * size)
    }

    @Test func `what is granted in advance ends at a ceiling, which a lowered budget lowers`() {
        let usage = DiskUsage(budget: 100, minFree: 0)
        usage.charge(90)
        #expect(!usage.tryCharge(20) && usage.tryChargeInAdvance(20, beside: 0))
        #expect(!usage.tryChargeInAdvance(91, beside: 0))
        usage.budget = 40
        usage.resetCeiling()
        #expect(usage.tryChargeInAdvance(40, beside: 0) && usage.used == 150)
        #expect(!usage.tryChargeInAdvance(1, beside: 0))
        // Evictions; what is granted meanwhile does not raise it again.
        usage.release(60)
        usage.lowerCeiling()
        #expect(usage.ceiling == 130 && usage.tryChargeInAdvance(40, beside: 0))
        usage.lowerCeiling()
        #expect(usage.ceiling == 130)
        usage.release(120)
        usage.lowerCeiling()
        #expect(usage.ceiling == 80)
    }

    @Test func `what no eviction can make room for is not granted in advance`() {
        let usage = DiskUsage(budget: 100, minFree: 0)
        usage.charge(100)
        usage.pinned = 70
        #expect(!usage.tryChargeInAdvance(31, beside: 0))
        #expect(usage.tryChargeInAdvance(30, beside: 0))
        usage.pinned = 0
        // What other pinned objects take that arrive meanwhile is known later.
        usage.evictable = 29
        #expect(!usage.tryChargeInAdvance(0, beside: 0, isPinned: true))
        usage.evictable = 35
        #expect(usage.tryChargeInAdvance(5, beside: 0, isPinned: true))
        #expect(!usage.tryChargeInAdvance(1, beside: 0, isPinned: true))
        usage.release(5)
        // An object does not make room for itself.
        #expect(!usage.tryChargeInAdvance(40, beside: 61))
        usage.isStuck = true
        #expect(!usage.tryChargeInAdvance(1, beside: 0))
        // Less, and still more than the budget.
        usage.release(10)
        #expect(usage.isStuck)
        usage.release(20)
        #expect(!usage.isStuck)
    }

    @Test func `on a short disk room is granted in advance only for what can be evicted`() {
        let usage = DiskUsage(budget: 100, minFree: 0)
        usage.charge(50)
        usage.evictable = 9
        for isPinned in [false, true] {
            #expect(
                !usage.tryChargeInAdvance(10, beside: 0, isPinned: isPinned, isDiskShort: true))
        }
        #expect(usage.tryChargeInAdvance(9, beside: 0, isDiskShort: true))
        // A search found nothing, though less than the budget is stored.
        usage.isStuck = true
        usage.release(9)
        #expect(usage.isStuck)
        #expect(!usage.tryChargeInAdvance(1, beside: 0, isDiskShort: true))
    }

    /// Runs `body` while the store thread has other work.
    private func withBusyThread(of store: ObjectStore, _ body: () throws -> Void) throws {
        let (isBusy, mayGoOn) = (try ThreadSemaphore(), try ThreadSemaphore())
        store.core.channel.worker?.enqueue { _, _ in
            isBusy.signal()
            _ = mayGoOn.wait(atMost: .seconds(20 as Int64))
        }
        defer { mayGoOn.signal() }
        #expect(isBusy.wait(atMost: .seconds(20 as Int64)))
        try body()
    }

    @Test(arguments: [false, true])
    func `a disk that others fill is a fault only if nothing can be evicted`(
        _ isStuck: Bool
    ) throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        try eventually { store.statistics().isReconciled }
        let object = try store.create(describe("a", total: nil))
        try store.publish(object)
        try withBusyThread(of: store) {
            store.core.allowance.withLock { $0 = StoreCore.Allowance() }
            store.core.usage.minFree = 1 << 60
            store.core.usage.isStuck = isStuck
            var failure: SystemError?
            do { try fill(object, 0..<10_000) } catch { failure = error as? SystemError }
            #expect(failure?.code == (isStuck ? ENOSPC : nil))
            #expect(object.isStorable == isStuck)
            #expect(store.statistics().isStoringSuspended == isStuck)
            store.core.usage.minFree = 0
        }
    }

    @Test func `room that nobody asks for any more is not refused once objects are idle`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path, budget: 2 * size) {
            $0.indexInterval = .milliseconds(20)
        }
        defer { store.close() }
        try eventually { store.statistics().isReconciled }
        var held = [try store.add("a", total: 12_288), try store.add("b", total: 12_288)]
        try store.flushed()
        // All is in use, and no more than the budget: a search finds nothing.
        #expect(held.count == 2 && store.statistics().bytes == 2 * size)
        store.core.channel.askEviction(bytes: size)
        try store.flushed()
        held = []
        try eventually { !store.statistics().isOutOfRoom }
        #expect(store.core.obtain(size))
    }

    @Test func `room that other programs took is not refused once they have freed it`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path, budget: 2 * size) {
            $0.indexInterval = .milliseconds(20)
        }
        defer { store.close() }
        try eventually { store.statistics().isReconciled }
        store.core.allowance.withLock { $0 = StoreCore.Allowance() }
        store.core.usage.minFree = 1 << 60
        // Nothing is stored that could be evicted.
        #expect(!store.core.obtain(size))
        try eventually { store.statistics().isOutOfRoom }
        store.core.usage.minFree = 0
        try eventually { !store.statistics().isOutOfRoom }
    }

    @Test func `a disk without room is told at the start, and once after each change of limits`()
        throws
    {
        let folder = try TemporaryFolder()
        let told = Told("the disk has less free than min-free")
        var configuration = StoreConfiguration(budgetBytes: 1 << 40, minFreeBytes: 1 << 60)
        configuration.indexInterval = .milliseconds(20)
        let store = try ObjectStore(
            folder: folder.path, configuration: configuration,
            log: Logger(label: "room") { _ in told })
        defer { store.close() }
        try eventually { store.statistics().isReconciled && told.count == 1 }
        for name in 0..<3 {
            #expect(try !store.create(describe("\(name)", total: 12_288)).isStorable)
            try store.flushed()
        }
        #expect(told.count == 1)
        store.limit(budget: 1 << 40, minFree: 0)
        try eventually {
            try store.add("a", total: 12_288)
            return store.find("a")?.isStorable == true
        }
        try store.flushed()
        #expect(told.count == 1)
        store.limit(budget: 1 << 40, minFree: 1 << 60)
        try eventually { told.count == 2 && store.statistics().evictions > 0 }
    }

    @Test func `room that pinned objects take is not refused once they are unpinned`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path, budget: 4 * size) {
            $0.indexInterval = .milliseconds(20)
        }
        defer { store.close() }
        try eventually { store.statistics().isReconciled }
        let names = ["a", "b"]
        for name in names { try store.add(name, total: 12_288) }
        try store.pin(title: 5, url: "u", keys: names.map { ObjectKey(sha256Of: $0) })
        try store.flushed()
        store.limit(budget: size, minFree: 0)
        try eventually { store.statistics().isOutOfRoom }
        #expect(store.statistics().evictions == 0)
        try store.unpin(title: 5)
        try eventually { store.statistics().evictions == 1 && !store.statistics().isOutOfRoom }
    }

    @Test func `the order of use survives a restart`() throws {
        let folder = try TemporaryFolder()
        let first = try openStore(folder.path)
        for name in ["a", "b", "c"] { try first.add(name, total: 12_288) }
        // The time of use has a resolution of one second.
        let added = WallTime.now().seconds
        try eventually { WallTime.now().seconds > added }
        first.watch("a")
        first.close()

        let store = try openStore(folder.path, budget: 2 * size) {
            $0.makePolicy = RetentionPolicyName.lru.makePolicy
        }
        defer { store.close() }
        try eventually { store.statistics().evictions == 1 }
        #expect(store.find("a") != nil)
    }

    @Test func `an object with holes counts all its allocated blocks`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        let object = try store.create(describe("a", total: 100_000))
        try store.publish(object)
        for start in [0, 20_000, 50_000] as [Int64] { try fill(object, start..<start + 10) }
        try store.flushed()
        var status = stat()
        #expect(stat(objectPath(folder.path, "a"), &status) == 0)
        // The header and three blocks of the body. A file system that maps more than a few extents
        // keeps a block for the map (ext4 from the fifth on, here if the preallocated blocks reach
        // the disk before they are freed); it is not counted.
        #expect(store.statistics().bytes == 4 * 4096)
        #expect(store.statistics().bytes >= Int64(status.st_blocks) * 512 - 4096)
    }

    @Test func `descriptors of idle objects are limited`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path) { $0.maxOpenObjects = 32 }
        defer { store.close() }
        for name in 0..<200 { try store.add("\(name)", total: 100) }
        try store.flushed()
        for name in 0..<200 { #expect(store.find("\(name)")?.isComplete == true) }
        try eventually { store.statistics().openObjects <= 32 }
    }

    @Test func `readers of a replaced generation keep its bytes`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        var old: StoredObject? = try store.add("a", total: 12_288)
        let new = try store.create(describe("a", total: 20))
        #expect(store.find("a") === old)
        try store.publish(new)
        try fill(new, 0..<20)
        #expect(store.find("a") === new)
        #expect(new.generation != old?.generation)
        #expect(try read(#require(old), 0..<12_288) == body(0..<12_288))
        try store.flushed()
        #expect(store.statistics().objects == 1)
        #expect(store.statistics().bytes == size + 8192)
        old = nil
        try eventually { store.statistics().bytes == 8192 }
    }

    /// What removes the name of an object that is in use.
    enum Removing: CaseIterable {
        case purge, clear, replacement
    }

    @Test(arguments: Removing.allCases)
    func `a body that loses its name while it arrives takes no more than its readers need`(
        cause: Removing
    ) throws {
        let folder = try TemporaryFolder()
        let budget: Int64 = 8 << 20
        let store = try openStore(folder.path, budget: budget)
        defer { store.close() }
        let object = try store.create(describe("a", total: nil))
        try store.publish(object)
        var writer = FillWriter(object, from: 0, to: nil)
        let first = body(0..<1 << 20)
        try first.withUnsafeBytes { try writer.append($0) }
        let (next, last) = (ReadingTests.Calls(), ReadingTests.Calls())
        #expect(object.wait(at: 1 << 20, next.waiter) == .waiting)
        #expect(object.wait(at: 100 << 20, last.waiter) == .waiting)
        switch cause {
        case .purge: store.remove(object.key)
        case .clear: _ = try store.clear(sparingPinned: false)
        case .replacement: try store.publish(try store.create(describe("a", total: 20)))
        }
        try store.add("b", total: 12_288)
        // What is there can still be read.
        #expect(object.isRemoved && !object.isDiscarded)
        #expect(object.state(at: 0) == .present(count: 1 << 20))
        #expect(try read(object, 0..<1 << 20) == first)
        for _ in 0..<16 {
            try first.withUnsafeBytes { try writer.append($0) }
            object.punch(upTo: writer.offset - 8192)
            #expect(store.statistics().bytes <= budget)
        }
        #expect(object.presentBytes <= 3 << 20)
        // Its readers are woken as before.
        #expect(next.seen == [.progress] && last.seen.isEmpty)
        writer.end(failure: nil)
        #expect(last.seen == [.fillEnded])
        #expect(store.find("b")?.isComplete == true)
    }

    @Test func `an object that must not be stored leaves no file`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        let object = try store.create(describe("a", total: 3 << 20, isStorable: false))
        try store.publish(object)
        try fill(object, 0..<3 << 20)
        #expect(!object.isStorable)
        #expect(store.find("a") == nil)
        #expect(try read(object, 5000..<6000) == body(5000..<6000))
        object.punch(upTo: (2 << 20) + 10)
        #expect(object.spans == SpanSet([2 << 20..<3 << 20]))
        #expect(try read(object, 2 << 20..<2 << 20 + 100) == body(2 << 20..<2 << 20 + 100))
        #expect(store.statistics().bytes == 1 << 20)
        store.close()
        #expect(try listFolder(folder.path + "/new").isEmpty)
        #expect(!exists(objectPath(folder.path, "a")))
    }

    @Test func `a file that is written anew at the end is closed with the store`() throws {
        let folder = try TemporaryFolder()
        do {
            let store = try openStore(folder.path) { $0.finishedCommitDelay = .seconds(3_600) }
            let object = try store.add("a", total: 12_288)
            try store.flushed()
            // It needs a larger header, and so another file.
            object.replaceHead(Array(repeating: 0x20, count: 6_000))
            store.close()
        }
        #expect(try openFiles(under: folder.path).isEmpty)
    }

    @Test func `a full disk stores nothing new, and bodies use unnamed files`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path) { $0.minFreeBytes = .max }
        defer { store.close() }
        let object = try store.create(describe("a", total: 100))
        #expect(!object.isStorable)
        try fill(object, 0..<100)
        #expect(try read(object, 0..<100) == body(0..<100))
    }

    @Test func `a body larger than the budget is streamed without being stored`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path, budget: size)
        defer { store.close() }
        var part = describe("b", total: 2 * size)
        part.expectsWholeBody = false
        #expect(try store.create(part).isStorable)
        let large = try store.create(describe("a", total: 2 * size))
        #expect(!large.isStorable)
        try fill(large, 0..<2 * size)
        #expect(try read(large, 0..<2 * size) == body(0..<2 * size))
    }

    @Test func `blocks reserved for an incomplete body are returned`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        let object = try store.create(describe("a", total: 1 << 20))
        try store.publish(object)
        #expect(store.statistics().bytes == 4096 + 1 << 20)
        try fill(object, 0..<8192)
        store.finish(object)
        try eventually { store.statistics().bytes == size - 4096 }
        var found = stat()
        stat(objectPath(folder.path, "a"), &found)
        #expect(found.st_blocks * 512 < 64 << 10)
        #expect(try read(object, 0..<8192) == body(0..<8192))
    }
}

/// The first object selected for eviction, once a player has opened it.
private final class Opened: Sendable {
    struct State {
        var store: ObjectStore?
        var object: StoredObject?
    }

    let state = Mutex(State())
}

/// A policy whose first victim is opened by a player before it is deleted.
private final class Opening: RetentionPolicy {
    private let policy: any RetentionPolicy
    private let opened: Opened

    init(_ policy: any RetentionPolicy, _ opened: Opened) {
        self.policy = policy
        self.opened = opened
    }

    var capacity: Int64 {
        get { policy.capacity }
        set { policy.capacity = newValue }
    }
    var count: Int { policy.count }
    var bytes: Int64 { policy.bytes }
    var memoryBytes: Int { policy.memoryBytes }

    func bytes(of name: UInt128) -> Int64? { policy.bytes(of: name) }
    func insert(_ name: UInt128, _ facts: Retained) { policy.insert(name, facts) }
    func restore(_ name: UInt128, _ facts: Retained) { policy.restore(name, facts) }
    func touch(_ name: UInt128, now: UInt32) -> UInt32? {
        policy.touch(name, now: now)
    }
    func remove(_ name: UInt128) { policy.remove(name) }

    func nextVictim(now: UInt32, isBarred: (UInt128) -> Bool) -> UInt128? {
        let victim = policy.nextVictim(now: now, isBarred: isBarred)
        opened.state.withLock { state in
            guard victim != nil, state.object == nil else { return }
            state.object = state.store?.find("a")
        }
        return victim
    }
}

extension ObjectStore {
    /// Returns an evictor that knows these objects.
    fileprivate func evictor(of names: [String]) throws -> Evictor {
        let evictor = try makeWorker().evictor
        for row in try core.index.rows(of: names.map { ObjectKey(sha256Of: $0) }) {
            evictor.insert(try #require(row))
        }
        return evictor
    }
}
