import Logging
import Posix
import Store
import Synchronization
import Testing

@testable import Library

/// Purges that an earlier run has not finished.
@Suite struct StorePurgeTests {
    @Test func `a continued purge names titles that lost parts before`() throws {
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
        purge.resume(log)
        purge.stop()
        let told = Mutex<Set<UInt64>>([])
        removals.follow { titles in told.withLock { $0.formUnion(titles) } }
        #expect(told.withLock { $0 } == [7])
    }
}
