import CachePolicy
import HLS
import HTTP
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

extension ObjectStore {
    /// Stores a complete object.
    ///
    /// - Parameters:
    ///   - body: its bytes.
    ///   - key: its key.
    ///   - url: its URL.
    ///   - role: its role.
    ///   - title: the title that it was fetched for; 0 for none.
    /// - Throws: the error of the disk.
    func keep(
        _ body: [UInt8], as key: ObjectKey, at url: AbsoluteURL, _ role: ResourceRole,
        title: UInt64 = 0
    ) throws {
        let head = StoredHead(
            status: .ok, fields: Fields(), requestTime: .now(), responseTime: .now(),
            finalURL: url.text, isPlaylist: role == .playlist)
        let total = Int64(body.count)
        let object = try create(
            ObjectDescription(
                key: key, url: url.text, role: role.letter, head: head.encoded, total: total,
                created: .now(), isStorable: true, title: title))
        try publish(object)
        var writer = FillWriter(object, from: 0, to: total)
        try body.withUnsafeBytes { try writer.append($0) }
        writer.end(failure: nil)
        finish(object)
    }
}
