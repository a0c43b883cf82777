import Logging
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
        let folder = try makeTemporaryFolder("store-purge")
        defer { removeTree(folder) }
        let log = Logger(label: "store-purge-tests")
        let store = try ObjectStore(
            folder: folder,
            configuration: StoreConfiguration(budgetBytes: 1 << 40, minFreeBytes: 0), log: log)
        defer { store.close() }
        // Its object was removed before the end of the run; the order was not carried out.
        try store.pin(title: 7, url: "", keys: [ObjectKey(sha256Of: "http://a/1")])
        try PurgeOrders(database: store.state).add([PurgeOrder(.texts(["http://a/1"]))])
        let removals = RemovalNotices()
        let purge = StorePurge(store: store, willPurge: nil, removals: removals)
        if isStopped { purge.stop() }
        let told = Mutex<Set<UInt64>>([])
        let isTold = try ThreadSemaphore()
        removals.follow { titles in
            told.withLock { $0.formUnion(titles) }
            isTold.signal()
        }
        purge.resume(log)
        if !isStopped { #expect(isTold.wait(atMost: .seconds(20 as Int64))) }
        purge.stop()
        #expect(told.withLock { $0 } == (isStopped ? [] : [7]))
    }
}
