import Glibc
import HTTP
import Logging
import Model
import Posix
import Reactor
import Store
import Synchronization
import Testing

@testable import Library

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
        purge.resume(Logger(label: "library-tests"))
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

    @Test func `a purge stays ordered until the disk has deleted its files`() throws {
        let folder = try makeTemporaryFolder("store-purge")
        defer { removeTree(folder) }
        var configuration = StoreConfiguration(budgetBytes: 1 << 40, minFreeBytes: 0)
        configuration.deletionInterval = .milliseconds(20)
        var log = Logger(label: "library-tests")
        log.logLevel = .critical
        let store = try ObjectStore(folder: folder, configuration: configuration, log: log)
        defer { store.close() }
        let key = ObjectKey(sha256Of: "http://a/1")
        let object = try store.create(
            ObjectDescription(
                key: key, url: "http://a/1", role: 7, head: [1], total: 100, created: .now(),
                isStorable: true))
        try store.publish(object)
        var writer = FillWriter(object, from: 0, to: 100)
        try [UInt8](repeating: 1, count: 100).withUnsafeBytes { try writer.append($0) }
        writer.end(failure: nil)
        store.finish(object)
        #expect(try store.flush(within: .seconds(20 as Int64)))
        // unlink(2) refuses a folder.
        let path = "\(folder)/objects/\(key.hex.prefix(2))/\(key.hex.dropFirst(2))"
        try removeFile(path)
        try makeFolder(path)

        let orders = PurgeOrders(database: store.state)
        let purge = StorePurge(
            store: store, willPurge: nil, removals: RemovalNotices(), use: KnownDiskUse())
        func finish(_ subject: String) throws -> String {
            _ = purge.start([PurgeOrder(.texts([subject]))])
            var text = ""
            try waitUntil {
                guard case .value(.ok, let answer) = purge.answer else { return false }
                text = answer.encoded
                return true
            }
            return text
        }
        let first = try finish("http://a/1")
        #expect(first.contains("\"removed\":1,") && first.contains("\"undeleted\":1"))
        #expect(store.lookup(key) == nil)
        // Another one does not lose the order of the first.
        #expect(try finish("http://a/2").contains("\"undeleted\":0"))
        #expect(orders.all().count == 2)
        rmdir(path)
        try waitUntil { !store.hasUndeleted }
        purge.stop()
        #expect(orders.all().isEmpty)
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
