package import HLS
import HTTP
package import Model
import Posix
package import Routing
package import Store
package import URISyntax

/// The titles in a store, computed from its objects: there is no separate state that could be lost
/// or disagree with the store.
///
/// Every method blocks on the disk, for 5 to 10 µs a segment in the lists of a title, and must not
/// run on a server loop.
package struct TitleCatalogue: Sendable {
    package let store: ObjectStore
    package let sessions: SessionTable
    /// The key rules that the objects were stored under.
    package let keys: KeyTable
    package let limits: PlaylistLimits
    /// Returns the epochs of the names in the last window of a list that is or was live, without
    /// those in their first epoch; the list is given by its key.
    let currentEpochs: @Sendable (ObjectKey) -> [AbsoluteURL: Epoch]

    /// Without `currentEpochs`, for a process that reads no live lists, all names are in their
    /// first epoch.
    package init(
        store: ObjectStore, sessions: SessionTable, keys: KeyTable,
        limits: PlaylistLimits = .standard,
        currentEpochs: @escaping @Sendable (ObjectKey) -> [AbsoluteURL: Epoch] = { _ in [:] }
    ) {
        self.store = store
        self.sessions = sessions
        self.keys = keys
        self.limits = limits
        self.currentEpochs = currentEpochs
    }

    /// Returns the title of this number; nil if no object of it is stored and it is not pinned.
    package func title(_ id: SessionID) -> Title? {
        read(id, pin: store.pin(of: id.number))?.title
    }

    /// Returns the title of this number for a listing, which does not need `sharedKeys`: its
    /// figures are read again only if they may have changed.
    ///
    /// - Returns: nil if no object of it is stored and it is not pinned.
    func listed(_ id: SessionID, _ figures: TitleFigures) -> Title? {
        let pin = store.pin(of: id.number)
        // All marks are read before what they stand for: a change in between differs from them.
        let (rowBatches, removals) = (store.rowBatches, store.orderedRemovals)
        let rules = keys.version
        guard let own = store.mark(ofTitle: id.number) else { return read(id, pin: pin)?.title }
        let mark = TitleFigures.Mark(
            own: own.mark, pinned: pin?.since, entry: pin?.url, removals: removals, rules: rules)
        let now = Monotonic.now()
        if var title = figures.title(id, mark, rowBatches, at: now) {
            title.lastUsed = max(title.lastUsed ?? own.lastUsed, own.lastUsed)
            return title
        }
        guard let (title, reading) = read(id, pin: pin) else { return nil }
        if reading.neededCount >= TitleFigures.fewResources {
            figures.keep(title, mark, reading.isSelfContained ? nil : rowBatches, at: now)
        }
        return title
    }

    private func read(_ id: SessionID, pin: Pin?) -> (title: Title, reading: TitleReading)? {
        let rows = store.rows(ofTitle: id.number)
        guard !rows.isEmpty || pin != nil else { return nil }
        var reading = TitleReading(self, sessions.session(id), rows)
        let title = reading.title(
            entry: pin.flatMap { try? AbsoluteURL($0.url) }, isPinned: pin != nil)
        return (title, reading)
    }

    /// Returns the titles that start at a URL: without headers, with the headers of stored
    /// sessions, or at another URL with the same key.
    ///
    /// There is at least one: if nothing is stored, the title that a player would begin there.
    ///
    /// - Parameters:
    ///   - url: the origin's.
    ///   - session: the one that is meant, which starts there; nil for all.
    /// - Returns: one title or more.
    package func titles(startingAt url: AbsoluteURL, in session: Session? = nil) -> [Title] {
        let start = session ?? Session(startingAt: url)
        let ways = Set(keys.entryKeys(url, of: start))
        var owners = Set(store.entries(of: Array(ways)).compactMap { $0?.title })
        if let session {
            // What sessions share belongs to the first of them, which is not meant.
            owners = owners.filter { number in
                let owner = sessions.session(SessionID(number))
                return owner.fields == session.fields && owner.shift == session.shift
                    && owner.limit == session.limit
            }
        }
        var others = session == nil ? sessions.ids(startingAt: url).compactMap(title) : []
        let known = Set(others.map(\.id.number) + [0, start.id.number])
        others += owners.subtracting(known).sorted().compactMap { title(SessionID($0)) }
            .filter { $0.entryKey.map(ways.contains) ?? false }
        let rows = store.rows(ofTitle: start.id.number)
        let isPinned = store.pin(of: start.id.number) != nil
        if !others.isEmpty, rows.isEmpty, !isPinned { return others }
        var reading = TitleReading(self, start, rows)
        return [reading.title(entry: url, isPinned: isPinned)] + others
    }
}
