import Glibc
import HTTP
import Logging
import Model
import Posix
import Reactor
import Synchronization
import Testing

@testable import Library
@testable import Store

/// Purges that an earlier run has not finished.
@Suite struct StorePurgeTests {
    @Test(arguments: [false, true])
    func `a continued purge names titles that lost parts before, unless it is stopped again`(
        _ isStopped: Bool
    ) throws {
        let stage = try TitleStage()
        let store = stage.store
        // Its object was removed before the end of the run; the order was not carried out.
        try store.pin(title: 7, url: "", keys: [ObjectKey(sha256Of: "http://a/1")])
        try PurgeOrders(database: store.state).add([PurgeOrder(.texts(["http://a/1"]))])
        let removals = RemovalNotices()
        let purge = StorePurge(
            store: store, willPurge: nil, removals: removals, use: KnownDiskUse())
        if isStopped { purge.stop() }
        let told = Mutex<Set<UInt64>>([])
        let isTold = try ThreadSemaphore()
        removals.follow { titles in
            told.withLock { $0.formUnion(titles) }
            isTold.signal()
        }
        purge.resume()
        if !isStopped { #expect(isTold.wait(atMost: .seconds(20 as Int64))) }
        purge.stop()
        #expect(told.withLock { $0 } == (isStopped ? [] : [7]))
    }

    /// Yields until a condition is true; fails the test after 20 seconds.
    private func waitUntil(_ isTrue: () -> Bool) throws {
        let deadline = Monotonic.now() + .seconds(20 as Int64)
        while !isTrue() {
            try #require(Monotonic.now() < deadline, "it did not happen in time")
            sched_yield()
        }
    }

    /// What a purge has told.
    private final class Calls: Sendable {
        /// How often it was announced.
        let purges = Atomic(0)
        /// The titles that lost objects.
        let told = Mutex<Set<UInt64>>([])
    }

    private func openStore(_ folder: String) throws -> ObjectStore {
        var configuration = StoreConfiguration(budgetBytes: 1 << 40, minFreeBytes: 0)
        configuration.deletionInterval = .milliseconds(20)
        var log = Logger(label: "library-tests")
        log.logLevel = .critical
        return try ObjectStore(folder: folder, configuration: configuration, log: log)
    }

    /// Stores an object of 100 bytes.
    private func add(
        _ url: String, title: UInt64, created: WallTime = .now(), to store: ObjectStore
    ) throws -> ObjectKey {
        let key = ObjectKey(sha256Of: url)
        let object = try store.create(
            ObjectDescription(
                key: key, url: url, role: 7, head: [1], total: 100, created: created,
                isStorable: true, title: title))
        try store.publish(object)
        var writer = FillWriter(object, from: 0, to: 100)
        try [UInt8](repeating: 1, count: 100).withUnsafeBytes { try writer.append($0) }
        writer.end(failure: nil)
        store.finish(object)
        #expect(try store.flush(within: .seconds(20 as Int64)))
        return key
    }

    /// Puts a folder, which unlink(2) refuses, in place of an object's file; returns its path.
    private func makeUndeletable(_ key: ObjectKey, _ folder: String) throws -> String {
        let path = "\(folder)/objects/\(key.hex.prefix(2))/\(key.hex.dropFirst(2))"
        try removeFile(path)
        try makeFolder(path)
        return path
    }

    /// Waits for the outcome of a purge.
    private func outcome(_ purge: StorePurge) throws -> String {
        var text = ""
        try waitUntil {
            guard case .value(.ok, let answer) = purge.answer else { return false }
            text = answer.encoded
            return true
        }
        return text
    }

    @Test func `of purges only the files that the disk refuses to delete stay ordered`() throws {
        let folder = try makeTemporaryFolder("store-purge")
        defer { removeTree(folder) }
        let store = try openStore(folder)
        defer { store.close() }
        let key = try add("http://a/1", title: 1, to: store)
        let path = try makeUndeletable(key, folder)
        let orders = PurgeOrders(database: store.state)
        let purge = StorePurge(
            store: store, willPurge: nil, removals: RemovalNotices(), use: KnownDiskUse())
        _ = purge.start([PurgeOrder(.texts(["http://a/1"]))])
        let first = try outcome(purge)
        #expect(first.contains("\"removed\":1,") && first.contains("\"undeleted\":1"))
        #expect(store.lookup(key) == nil)
        // Further ones neither lose the file of the first nor add to it.
        for age in [1, 2] as [Int64] {
            _ = purge.start([PurgeOrder(.unusedSince(WallTime(seconds: age)))])
            #expect(try outcome(purge).contains("\"undeleted\":0"))
        }
        #expect(orders.all().map(\.subject) == [.objects([key])])
        rmdir(path)
        try waitUntil { !store.hasUndeleted }
        purge.stop()
        #expect(orders.all().isEmpty)
    }

    @Test func `a purge that left files is not repeated by the next run`() throws {
        let folder = try makeTemporaryFolder("store-purge")
        defer { removeTree(folder) }
        let calls = Calls()
        func makePurge(_ store: ObjectStore) -> StorePurge {
            let removals = RemovalNotices()
            removals.follow { titles in calls.told.withLock { $0.formUnion(titles) } }
            return StorePurge(
                store: store,
                willPurge: { _ in
                    calls.purges.add(1, ordering: .relaxed)
                    return .done
                }, removals: removals, use: KnownDiskUse())
        }
        let host = try #require(PurgeHost("a"))
        let first = try openStore(folder)
        defer { first.close() }
        let key = try add("http://a/1", title: 1, to: first)
        let spared = try add("http://a/2", title: 2, to: first)
        for title in [2, 3] as [UInt64] { try first.pin(title: title, url: "", keys: []) }
        _ = try makeUndeletable(key, folder)
        let purge = makePurge(first)
        _ = purge.start([PurgeOrder(.host(host))])
        #expect(try outcome(purge).contains("\"undeleted\":1"))
        purge.stop()
        try first.unpin(title: 2)
        first.close()
        #expect(calls.purges.load(ordering: .relaxed) == 1)

        let second = try openStore(folder)
        defer { second.close() }
        #expect(!PurgeOrders(database: second.state).all().isEmpty)
        let next = makePurge(second)
        next.resume()
        #expect(try outcome(next).contains("\"removed\":0,"))
        next.stop()
        #expect(second.lookup(spared) != nil)
        #expect(calls.purges.load(ordering: .relaxed) == 1)
        #expect(calls.told.withLock { $0 } == [1], "by the first run")
    }

    @Test func `files that cannot be opened stay ordered in the next run`() throws {
        let folder = try makeTemporaryFolder("store-purge")
        defer { removeTree(folder) }
        func makePurge(_ store: ObjectStore) -> StorePurge {
            StorePurge(
                store: store, willPurge: nil, removals: RemovalNotices(), use: KnownDiskUse())
        }
        let first = try openStore(folder)
        defer { first.close() }
        let key = try add("http://a/1", title: 1, to: first)
        let path = try makeUndeletable(key, folder)
        let purge = makePurge(first)
        _ = purge.start([PurgeOrder(.texts(["http://a/1"]))])
        _ = try outcome(purge)
        purge.stop()
        first.close()

        let second = try openStore(folder)
        defer { second.close() }
        let orders = PurgeOrders(database: second.state)
        let next = makePurge(second)
        // It is a folder: open(2) refuses it, too.
        next.resume()
        let report = try outcome(next)
        #expect(report.contains("\"removed\":0,") && report.contains("\"undeleted\":1"))
        #expect(orders.all().map(\.subject) == [.objects([key])])
        #expect(second.undeletedKeys == [key])
        #expect(second.lookup(key) == nil)
        rmdir(path)
        try waitUntil { !second.hasUndeleted }
        next.stop()
        #expect(orders.all().isEmpty)
    }

    @Test func `the next run removes the objects that a purge left, and no later ones`() throws {
        let folder = try makeTemporaryFolder("store-purge")
        defer { removeTree(folder) }
        let store = try openStore(folder)
        defer { store.close() }
        let given = WallTime(seconds: 1_000)
        let former = try add("http://a/1", title: 1, created: given, to: store)
        let later = try add("http://a/2", title: 1, to: store)
        let other = try add("http://a/3", title: 1, created: given, to: store)
        let orders = PurgeOrders(database: store.state)
        try orders.replaceAll(byObjects: [former, later], given: given)
        let purge = StorePurge(
            store: store, willPurge: nil, removals: RemovalNotices(), use: KnownDiskUse())
        purge.resume()
        #expect(try outcome(purge).contains("\"removed\":1,"))
        purge.stop()
        #expect(store.lookup(former) == nil)
        #expect(store.lookup(later) != nil && store.lookup(other) != nil)
        #expect(orders.all().isEmpty)
    }

    @Test func `a purge that is given while another runs follows it`() throws {
        let folder = try makeTemporaryFolder("store-purge")
        defer { removeTree(folder) }
        let store = try openStore(folder)
        defer { store.close() }
        let first = try add("http://a/1", title: 1, to: store)
        let second = try add("http://a/2", title: 2, to: store)
        let kept = try add("http://a/3", title: 3, to: store)
        // Each goes on until the loss of a pinned object is told.
        try store.pin(title: 1, url: "", keys: [first])
        try store.pin(title: 2, url: "", keys: [second])
        let (isTold, mayGoOn) = (try ThreadSemaphore(), try ThreadSemaphore())
        let removals = RemovalNotices()
        removals.follow { _ in
            isTold.signal()
            _ = mayGoOn.wait(atMost: .seconds(20 as Int64))
        }
        let orders = PurgeOrders(database: store.state)
        let purge = StorePurge(
            store: store, willPurge: nil, removals: removals, use: KnownDiskUse())
        _ = purge.start([PurgeOrder(.texts(["http://a/1"]))])
        #expect(isTold.wait(atMost: .seconds(20 as Int64)))
        guard case .value(.accepted, _) = purge.start([PurgeOrder(.titles([2]))]) else {
            Issue.record("it was not accepted")
            return
        }
        #expect(orders.all().count == 2)
        mayGoOn.signal()
        // What the first has carried out is not repeated if the daemon ends now.
        #expect(isTold.wait(atMost: .seconds(20 as Int64)))
        #expect(orders.all().map(\.subject) == [.titles([2])])
        mayGoOn.signal()
        #expect(try outcome(purge).contains("\"removed\":2,"))
        #expect(store.lookup(first) == nil && store.lookup(second) == nil)
        #expect(store.lookup(kept) != nil && orders.all().isEmpty)
        purge.stop()
    }

    @Test func `what a purge names does not wait for another one that waits`() throws {
        let folder = try makeTemporaryFolder("store-purge")
        defer { removeTree(folder) }
        let store = try openStore(folder)
        defer { store.close() }
        let keys = try (1...3).map { try add("http://a/\($0)", title: UInt64($0), to: store) }
        try waitUntil { store.statistics().isReconciled }
        // What is in use is not hidden from lookups.
        let used = keys.map { store.lookup($0) }
        #expect(used.allSatisfy { $0 != nil })
        let worker = try #require(store.core.channel.worker)
        worker.enqueue { worker, _ in worker.comparison = Comparison() }
        // The last run left one.
        let orders = PurgeOrders(database: store.state)
        try orders.add([PurgeOrder(.unusedSince(WallTime(seconds: 1)))])
        let purge = StorePurge(
            store: store, willPurge: nil, removals: RemovalNotices(), use: KnownDiskUse())
        purge.resume()
        let since = Monotonic.now()
        for _ in 0..<10 {
            guard case .value(.accepted, _) = purge.start([PurgeOrder(.titles([2]))]) else {
                Issue.record("it was not accepted")
                return
            }
        }
        _ = purge.start([PurgeOrder(.texts(["http://a/3"]), given: .now())], isGivenNow: false)
        // Nobody waits for a second: others want the thread.
        #expect(.now() - since < .seconds(10 as Int64))
        try waitUntil { store.lookup(keys[1]) == nil && store.lookup(keys[2]) == nil }
        try waitUntil {
            guard case .value(.accepted, let progress) = purge.answer else { return false }
            return progress.encoded.contains("\"removed\":2,")
        }
        worker.enqueue { worker, _ in worker.comparison = nil }
        #expect(try outcome(purge).contains("\"removed\":2,"))
        #expect(store.lookup(keys[0]) != nil && orders.all().isEmpty)
        withExtendedLifetime(used) {}
        purge.stop()
    }

    @Test func `a purge by title that waits spares what is pinned for another title meanwhile`()
        throws
    {
        let folder = try makeTemporaryFolder("store-purge")
        defer { removeTree(folder) }
        let store = try openStore(folder)
        defer { store.close() }
        try waitUntil { store.statistics().isReconciled }
        let worker = try #require(store.core.channel.worker)
        worker.enqueue { worker, _ in worker.comparison = Comparison() }
        let purge = StorePurge(
            store: store, willPurge: nil, removals: RemovalNotices(), use: KnownDiskUse())
        // It reads the pins, finds nothing of the title, and waits for the comparison.
        let given = WallTime.now() + .seconds(3_600 as Int64)
        _ = purge.start([PurgeOrder(.titles([1]), given: given)], isGivenNow: false)
        let keys = try (1...2).map { try add("http://a/\($0)", title: 1, to: store) }
        try store.pin(title: 2, url: "", keys: [keys[1]])
        worker.enqueue { worker, _ in worker.comparison = nil }
        #expect(try outcome(purge).contains("\"removed\":1,"))
        #expect(store.lookup(keys[0]) == nil && store.lookup(keys[1]) != nil)
        purge.stop()
    }

    @Test func `a purge by prefix that the last run did not finish is carried out`() throws {
        let folder = try makeTemporaryFolder("store-purge")
        defer { removeTree(folder) }
        let first = try openStore(folder)
        defer { first.close() }
        let below = try add("http://a/show7/1", title: 1, to: first)
        let beside = try add("http://a/show70/1", title: 2, to: first)
        let prefix = try #require(PurgePrefix("http://a/show7"))
        try PurgeOrders(database: first.state).add([PurgeOrder(.prefixes([prefix]))])
        first.close()

        let store = try openStore(folder)
        defer { store.close() }
        let purge = StorePurge(
            store: store, willPurge: nil, removals: RemovalNotices(), use: KnownDiskUse())
        purge.resume()
        #expect(store.lookup(below) == nil && store.lookup(beside) != nil)
        _ = try outcome(purge)
        #expect(store.lookup(below) == nil && store.lookup(beside) != nil)
        #expect(PurgeOrders(database: store.state).all().isEmpty)
        purge.stop()
    }

    @Test(arguments: [.done, .underWay, .failed("")] as [StoreAdministration.Pinning])
    func `unused content is removed only once recordings have pinned what they need`(
        _ pinning: StoreAdministration.Pinning
    ) throws {
        let stage = try TitleStage()
        let administration = stage.administration(willPurge: { _ in pinning })
        administration.removeUnused(since: .now(), Counters())
        let isDone = if case .done = pinning { true } else { false }
        guard case .value(_, let answer) = administration.purging.answer else {
            Issue.record("the purge has failed")
            return
        }
        #expect(answer.encoded.contains("\"none\"") != isDone)
        administration.stop()
    }

    @Test func `unused content is not removed while another purge runs`() throws {
        let stage = try TitleStage()
        _ = try add("http://a/1", title: 1, to: stage.store)
        let administration = stage.administration()
        let (isTold, mayGoOn) = (try ThreadSemaphore(), try ThreadSemaphore())
        administration.follow { _ in
            isTold.signal()
            _ = mayGoOn.wait(atMost: .seconds(20 as Int64))
        }
        _ = administration.purging.start([PurgeOrder(.texts(["http://a/1"]))])
        #expect(isTold.wait(atMost: .seconds(20 as Int64)))
        administration.removeUnused(since: .now(), Counters())
        #expect(PurgeOrders(database: stage.store.state).all().count == 1)
        mayGoOn.signal()
        administration.stop()
    }

    @Test func `a purge tells which titles without a pin have lost objects`() throws {
        let folder = try makeTemporaryFolder("store-purge")
        defer { removeTree(folder) }
        let store = try openStore(folder)
        defer { store.close() }
        for title in 1...2 as ClosedRange<UInt64> {
            _ = try add("http://a/\(title)", title: title, to: store)
        }
        let told = Mutex<Set<UInt64>>([])
        let removals = RemovalNotices()
        removals.follow { titles in told.withLock { $0.formUnion(titles) } }
        let purge = StorePurge(
            store: store, willPurge: nil, removals: removals, use: KnownDiskUse())
        _ = purge.start([PurgeOrder(.texts(["http://a/1"]))])
        _ = try outcome(purge)
        #expect(told.withLock { $0 } == [1])
        purge.stop()
    }

    @Test func `the loss of what was pinned while a purge waits is told by it`() throws {
        let folder = try makeTemporaryFolder("store-purge")
        defer { removeTree(folder) }
        let store = try openStore(folder)
        defer { store.close() }
        let keys = try (1...2).map { try add("http://a/\($0)", title: UInt64($0), to: store) }
        try waitUntil { store.statistics().isReconciled }
        let worker = try #require(store.core.channel.worker)
        worker.enqueue { worker, _ in worker.comparison = Comparison() }
        let told = Mutex<Set<UInt64>>([])
        let removals = RemovalNotices()
        removals.follow { titles in told.withLock { $0.formUnion(titles) } }
        let purge = StorePurge(
            store: store, willPurge: nil, removals: removals, use: KnownDiskUse())
        // The pass has read the pins once it removes what the first queued one names.
        _ = purge.start([PurgeOrder(.unusedSince(WallTime(seconds: 1)))])
        func waitUntilRemoved(_ count: Int) throws {
            try waitUntil {
                guard case .value(.accepted, let progress) = purge.answer else { return false }
                return progress.encoded.contains("\"removed\":\(count),")
            }
        }
        _ = purge.start([PurgeOrder(.titles([1]))])
        try waitUntilRemoved(1)
        try store.pin(title: 2, url: "", keys: [keys[1]])
        _ = purge.start([PurgeOrder(.titles([2]))])
        try waitUntilRemoved(2)
        worker.enqueue { worker, _ in worker.comparison = nil }
        _ = try outcome(purge)
        #expect(told.withLock { $0 } == [1, 2])
        purge.stop()
    }

    @Test(arguments: [false, true])
    func `a queued purge spares what was pinned since it or an earlier one was queued`(
        _ isPinnedLast: Bool
    ) throws {
        let folder = try makeTemporaryFolder("store-purge")
        defer { removeTree(folder) }
        let first = try openStore(folder)
        defer { first.close() }
        let purged = try add("http://a/1", title: 1, to: first)
        let pinned = try add("http://b/1", title: 2, to: first)
        first.close()

        // Nothing is in use, which lookups would find.
        let store = try openStore(folder)
        defer { store.close() }
        try waitUntil { store.statistics().isReconciled }
        let worker = try #require(store.core.channel.worker)
        worker.enqueue { worker, _ in worker.comparison = Comparison() }
        try PurgeOrders(database: store.state).add([
            PurgeOrder(.unusedSince(WallTime(seconds: 1)))
        ])
        let purge = StorePurge(
            store: store, willPurge: nil, removals: RemovalNotices(), use: KnownDiskUse())
        purge.resume()
        _ = purge.start([PurgeOrder(.host(try #require(PurgeHost("a"))))])
        if !isPinnedLast { try store.pin(title: 2, url: "", keys: []) }
        _ = purge.start([PurgeOrder(.host(try #require(PurgeHost("b"))))])
        if isPinnedLast { try store.pin(title: 2, url: "", keys: []) }
        #expect(store.lookup(purged) == nil)
        #expect(store.lookup(pinned) != nil)
        worker.enqueue { worker, _ in worker.comparison = nil }
        _ = try outcome(purge)
        #expect(store.lookup(pinned) != nil)
        purge.stop()
    }

    @Test func `a purge that a stop leaves to the next run is not reported as done`() throws {
        let folder = try makeTemporaryFolder("store-purge")
        defer { removeTree(folder) }
        let store = try openStore(folder)
        defer { store.close() }
        let key = try add("http://a/1", title: 1, to: store)
        let purge = StorePurge(
            store: store, willPurge: nil, removals: RemovalNotices(), use: KnownDiskUse())
        purge.stop()
        guard case .value(.accepted, _) = purge.start([PurgeOrder(.texts(["http://a/1"]))]) else {
            Issue.record("it was reported as done")
            return
        }
        purge.stop()
        #expect(store.lookup(key) != nil)
        #expect(PurgeOrders(database: store.state).all().count == 1)
    }

    @Test func `the disk usage is measured anew after a purge or a check has ended`() throws {
        let stage = try TitleStage()
        let administration = stage.administration()
        let use = DiskUse(objects: 1, pinnedBytes: 0, reservedBytes: 0, kinds: [], hosts: [])
        func measure() {
            let now = Monotonic.now()
            administration.lastUse.keep(use, from: now, to: now + .seconds(3_600 as Int64))
        }
        measure()
        #expect(administration.lastUse.value(at: .now()) != nil)
        // Not by a request, whose answer may come long before the end.
        _ = administration.verification.start()
        let deadline = Monotonic.now() + .seconds(20 as Int64)
        while case .value(.accepted, _) = administration.verification.answer,
            Monotonic.now() < deadline
        {
            sched_yield()
        }
        #expect(administration.lastUse.value(at: .now()) == nil)
        measure()
        _ = administration.purging.start([PurgeOrder(.texts(["http://a/1"]))])
        administration.stop()
        #expect(administration.lastUse.value(at: .now()) == nil)
    }

    @Test func `a stop ends a check before the store is closed`() throws {
        let stage = try TitleStage()
        let administration = stage.administration()
        administration.stop()
        _ = administration.verification.start()
        // Joins the thread that was started after the stop.
        administration.stop()
        guard case .failure(.serviceUnavailable, let reason) = administration.verification.answer
        else {
            Issue.record("the check was not stopped")
            return
        }
        #expect(reason.contains("stopping"))
    }
}
