import Logging
package import Model
import Posix
import Store
package import TimeShifting

extension TimeShiftTable {
    /// Makes a table without lists over a new store in a folder; whoever made it stops its thread
    /// and closes the store.
    package convenience init(in folder: String, settings: ProxySettings = ProxySettings()) throws {
        let log = Logger(label: "time-shift-table") { _ in SwiftLogNoOpLogHandler() }
        let store = try ObjectStore(
            folder: folder,
            configuration: StoreConfiguration(budgetBytes: 1 << 40, minFreeBytes: 0), log: log)
        let counters = Counters()
        let live = LiveMemory(database: store.state, counters: counters, now: .now())
        let names = ResourceNames(
            keys: KeyTable(
                settings: KeySettings(), database: store.state, counters: counters),
            live: live, store: store, addresses: OwnAddresses(hostNames: []))
        self.init(
            store: store, names: names, live: live,
            memory: PlaylistMemory(database: store.state), counters: counters,
            thread: try TimeShiftThread(), settings: settings, log: log)
    }
}
