package import HLS
package import Model
package import Routing
package import Store
package import URISyntax

/// The titles that are kept, computed from what is stored: there is no state of its own that could
/// be lost or could disagree with the store.
///
/// Looks titles up in a store.
///
/// Every method blocks on the disk, for milliseconds a title, and belongs on no server loop.
package struct TitleCatalogue: Sendable {
    package let store: ObjectStore
    package let sessions: SessionTable
    /// The key rules that the objects were stored under.
    package let keys: KeyTable
    package let limits: PlaylistLimits

    package init(
        store: ObjectStore, sessions: SessionTable, keys: KeyTable,
        limits: PlaylistLimits = .standard
    ) {
        self.store = store
        self.sessions = sessions
        self.keys = keys
        self.limits = limits
    }

    /// A title of this number; nil when nothing of it is kept and it is not pinned.
    package func title(_ id: SessionID) -> Title? {
        let rows = store.rows(ofTitle: id.number)
        let pin = store.pins().first { $0.title == id.number }
        guard !rows.isEmpty || pin != nil else { return nil }
        var reading = TitleReading(self, sessions.session(id), rows)
        return reading.title(entry: pin.flatMap { try? AbsoluteURL($0.url) }, isPinned: pin != nil)
    }

    /// The titles that start at a URL: with no headers of their own, with those of the session
    /// that it was kept for, or at another URL that has the same key.
    ///
    /// There is at least one: if nothing is kept, what a player that starts there will make.
    package func titles(startingAt url: AbsoluteURL) -> [Title] {
        let plain = sessions.session(for: Entry(url: url))
        let pins = Set(store.pins().map(\.title))
        let ways = Set(keys.entryKeys(url, of: plain))
        let owners = Set(store.entries(of: Array(ways)).compactMap { $0?.title })
        var others = sessions.ids(startingAt: url).compactMap(title)
        let known = Set(others.map(\.id.number) + [0, plain.id.number])
        others += owners.subtracting(known).sorted().compactMap { title(SessionID($0)) }
            .filter { $0.entryKey.map(ways.contains) ?? false }
        let rows = store.rows(ofTitle: plain.id.number)
        let isPinned = pins.contains(plain.id.number)
        if !others.isEmpty, rows.isEmpty, !isPinned { return others }
        var reading = TitleReading(self, plain, rows)
        return [reading.title(entry: url, isPinned: isPinned)] + others
    }
}
