import HTTP
import Logging
import Model
import Posix
import Store
import Testing

@testable import Library

/// Clears, which spare what pins name.
@Suite struct ClearTests {
    @Test(arguments: [false, true])
    func `a clear that is to spare pinned titles waits for what is to be pinned`(
        _ isPinned: Bool
    ) throws {
        let folder = try makeTemporaryFolder("clear")
        defer { removeTree(folder) }
        let store = try ObjectStore(
            folder: folder,
            configuration: StoreConfiguration(budgetBytes: 1 << 40, minFreeBytes: 0),
            log: Logger(label: "clear-tests"))
        defer { store.close() }
        let keys = KeyTable(
            settings: KeySettings(), database: store.state, counters: Counters())
        let administration = StoreAdministration(
            catalogue: TitleCatalogue(
                store: store, sessions: SessionTable(store.state), keys: keys),
            origin: { _ in nil }, willPurge: { _ in isPinned })
        switch administration.clear(AdministrationQuery("")) {
        case .value: #expect(isPinned)
        case .failure(let status, let reason):
            #expect(!isPinned && status == .serviceUnavailable, "\(reason)")
        case .methodNotAllowed: Issue.record("it is no matter of the method")
        }
        guard case .value = administration.clear(AdministrationQuery("pinned=true")) else {
            Issue.record("a clear of all titles spares nothing")
            return
        }
    }
}
