import Logging
import Model
import Posix
import Routing
import Store
import URISyntax

@testable import Library

/// An empty store with what the administration of its titles needs; its folder is removed with it.
final class TitleStage {
    private let folder: String
    let store: ObjectStore
    let keys: KeyTable
    let sessions: SessionTable

    init() throws {
        folder = try makeTemporaryFolder("titles")
        store = try ObjectStore(
            folder: folder,
            configuration: StoreConfiguration(budgetBytes: 1 << 40, minFreeBytes: 0),
            log: Logger(label: "library-tests"))
        keys = KeyTable(settings: KeySettings(), database: store.state, counters: Counters())
        sessions = SessionTable(store.state)
    }

    deinit {
        store.close()
        removeTree(folder)
    }

    /// Makes the administration of the titles; by default each URL is one of an origin.
    func administration(
        others: StoreAdministration.Others = .init(),
        origin: @escaping StoreAdministration.NamedStart = {
            (try? AbsoluteURL($0)).map { TitleStart(Entry(url: $0)) }
        },
        willPurge: StoreAdministration.WillPurge? = nil
    ) -> StoreAdministration {
        StoreAdministration(
            catalogue: TitleCatalogue(store: store, sessions: sessions, keys: keys),
            others: others, origin: origin, willPurge: willPurge)
    }
}
