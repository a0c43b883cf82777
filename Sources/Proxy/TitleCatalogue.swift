/// The titles that are kept, computed from what is stored: there is no state of its own that could
/// be lost or could disagree with the store.
import CachePolicy
package import HLS
import Posix
package import Routing
package import Store
package import URISyntax

extension KeyTable {
    /// The keys under which the entry of a title or a playlist of it may be kept, the likelier
    /// ones first: for this viewer, for everybody, for this session alone.
    func entryKeys(_ url: AbsoluteURL, of session: Session) -> [ObjectKey] {
        let viewer = session.viewer(of: url)
        return texts(of: url).sorted().flatMap { base in
            var texts = [base, CacheKeyText.text(base, session: "viewer \(session.id.text)")]
            if let viewer { texts.insert(CacheKeyText.text(base, session: viewer), at: 0) }
            return texts.map(ObjectKey.init(sha256Of:))
        }
    }

    /// The key of a segment, an initialization section or a decryption key.
    func mediaKey(_ url: AbsoluteURL) -> ObjectKey {
        ObjectKey(sha256Of: key(of: url, in: KeyPlace()).text)
    }
}

/// Looks titles up in a store.
///
/// Every method blocks on the disk, for milliseconds a title, and belongs on no server loop.
package struct TitleCatalogue: Sendable {
    let store: ObjectStore
    let sessions: SessionTable
    /// The key rules that the objects were stored under.
    let keys: KeyTable
    let limits: PlaylistLimits

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

    /// The titles that started at a URL: with no headers of their own, or with those of the
    /// session that it was kept for.
    ///
    /// The first is there even if nothing of it is kept: what a player that starts there will make.
    package func titles(startingAt url: AbsoluteURL) -> [Title] {
        let plain = sessions.session(for: Entry(url: url))
        var reading = TitleReading(self, plain, store.rows(ofTitle: plain.id.number))
        let pins = Set(store.pins().map(\.title))
        var titles = [reading.title(entry: url, isPinned: pins.contains(plain.id.number))]
        let owners = Set(store.entries(of: keys.entryKeys(url, of: plain)).compactMap { $0?.title })
        for owner in owners.union(pins) where owner != 0 && owner != plain.id.number {
            let session = sessions.session(SessionID(owner))
            guard SessionTable.id(of: url, fields: session.fields).number == owner,
                let title = title(session.id)
            else { continue }
            titles.append(title)
        }
        return titles
    }
}
