import HTTP
import Logging
import Model
import Posix
import Store
import Testing

@testable import Library

/// Clears, which spare what pins name.
@Suite struct ClearTests {
    @Test(
        arguments: [
            (StoreAdministration.Pinning.done, nil),
            (.underWay, "still pin"),
            (.failed("the disk is full"), "cannot be pinned: the disk is full"),
        ] as [(StoreAdministration.Pinning, String?)])
    func `a clear that is to spare pinned titles waits for what is to be pinned`(
        _ pinning: StoreAdministration.Pinning, _ words: String?
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
            origin: { _ in nil }, willPurge: { _ in pinning })
        switch administration.clear(AdministrationQuery("")) {
        case .value: #expect(words == nil)
        case .failure(let status, let reason):
            #expect(status == .serviceUnavailable, "\(reason)")
            #expect(words.map { reason.contains($0) } == true, "\(reason)")
        case .methodNotAllowed: Issue.record("it is no matter of the method")
        }
        guard case .value = administration.clear(AdministrationQuery("pinned=true")) else {
            Issue.record("a clear of all titles spares nothing")
            return
        }
    }
}
