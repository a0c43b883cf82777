import HLS
import HTTP
import Logging
@testable import Model
import Posix
import Routing
@testable import Serving
import Store
import Testing
@testable import TimeShifting

/// Links that name a long URL in the index.
@Suite struct ShortNameTests {
    /// The status of a request for the URL of a handle; nil if it is known.
    private func status(_ handle: Handle, _ links: Links) -> HTTPStatus? {
        do throws(ProxyFailure) {
            _ = try links.namedURL(of: handle)
            return nil
        } catch {
            return error.status
        }
    }

    @Test func `a short name gets 503 while the index cannot be read and 410 if it has none`()
        throws
    {
        let folder = try makeTemporaryFolder("short-names")
        defer { removeTree(folder) }
        let log = Logger(label: "short-names") { _ in SwiftLogNoOpLogHandler() }
        let store = try ObjectStore(
            folder: folder,
            configuration: StoreConfiguration(budgetBytes: 1 << 40, minFreeBytes: 0), log: log)
        let thread = try TimeShiftThread()
        defer { thread.stop() }
        let counters = Counters()
        let live = LiveMemory(database: store.state, counters: counters, now: .now())
        let addresses = OwnAddresses(hostNames: [])
        let names = ResourceNames(
            keys: KeyTable(settings: KeySettings(), database: store.state, counters: counters),
            live: live, store: store, addresses: addresses)
        let memory = PlaylistMemory(database: store.state)
        let timeShift = TimeShiftTable(
            store: store, names: names, live: live, memory: memory, counters: counters,
            thread: thread, settings: ProxySettings(), log: log)
        let links = Links(
            mounts: [], basePath: "", addresses: addresses, names: names,
            sessions: SessionTable(store.state), live: live, store: store, timeShift: timeShift,
            memory: memory, limits: PlaylistLimits(), signer: nil, token: nil)
        let name = [UInt8](repeating: 1, count: 16)
        let handle = Handle(session: SessionID(7), target: .name(name))
        #expect(status(handle, links) == .gone)
        // Its index cannot be read any more.
        store.close()
        #expect(status(handle, links) == .serviceUnavailable)
    }
}
