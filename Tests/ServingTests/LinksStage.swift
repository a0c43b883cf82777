import HLS
import HTTP
import Logging
@testable import Model
import Posix
import Routing
@testable import Serving
import Store
@testable import TimeShifting

/// The links of a daemon with an empty store, whose folder is removed with it.
final class LinksStage {
    private let folder: String
    private let thread: TimeShiftThread
    let store: ObjectStore
    let links: Links

    /// - Parameters:
    ///   - addresses: the names and ports of the daemon.
    ///   - hasNodes: whether other nodes share its store.
    /// - Throws: an error if there is no room for a folder or a thread.
    init(_ addresses: OwnAddresses, hasNodes: Bool = false) throws {
        folder = try makeTemporaryFolder("links")
        let log = Logger(label: "links") { _ in SwiftLogNoOpLogHandler() }
        store = try ObjectStore(
            folder: folder,
            configuration: StoreConfiguration(budgetBytes: 1 << 40, minFreeBytes: 0), log: log)
        thread = try TimeShiftThread()
        let counters = Counters()
        let live = LiveMemory(database: store.state, counters: counters, now: .now())
        let names = ResourceNames(
            keys: KeyTable(settings: KeySettings(), database: store.state, counters: counters),
            live: live, store: store, addresses: addresses)
        let memory = PlaylistMemory(database: store.state)
        let timeShift = TimeShiftTable(
            store: store, names: names, live: live, memory: memory, counters: counters,
            thread: thread, settings: ProxySettings(), log: log)
        links = Links(
            mounts: [], basePath: "", addresses: addresses, names: names,
            sessions: SessionTable(store.state), live: live, store: store, timeShift: timeShift,
            memory: memory, limits: PlaylistLimits(), signer: nil, token: nil,
            hasNodes: hasNodes)
    }

    deinit {
        thread.stop()
        store.close()
        removeTree(folder)
    }
}
