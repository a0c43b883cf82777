// One reading of one title: its entry, its playlists, and which of their resources are stored.
import CachePolicy
import HLS
import HTTP
import Model
import Numbers
import Routing
import Store
import URISyntax

/// A reading with its cache of look-ups; used once and discarded.
struct TitleReading {
    /// The most variants and renditions that are read, since a hostile playlist might name many.
    static let mostLists = 64

    let catalogue: TitleCatalogue
    let session: Session
    let rows: [StoreEntry]
    /// Rows by key; nil for those known to be missing.
    private var entries: [ObjectKey: StoreEntry?]
    private var kept: [ObjectKey: KeptBytes] = [:]
    private var needed: Set<ObjectKey> = []
    /// True if a playlist that the entry names is not stored.
    private var lacksLists = false

    /// The number of resources that playing the title needs, as far as its lists are stored.
    var neededCount: Int { needed.count }

    /// True if all that the title needs is stored and its own, so that its figures change only with
    /// its own objects.
    var isSelfContained: Bool {
        !lacksLists
            && needed.allSatisfy { key in
                row(key)?.title == session.id.number
            }
    }

    init(_ catalogue: TitleCatalogue, _ session: Session, _ rows: [StoreEntry]) {
        self.catalogue = catalogue
        self.session = session
        self.rows = rows
        entries = Dictionary(rows.map { ($0.key, $0) }, uniquingKeysWith: { $1 })
    }

    /// Reads the title.
    ///
    /// - Returns: the title, without variants if its entry is not stored.
    package mutating func title(entry: AbsoluteURL?, isPinned: Bool) -> Title {
        var title = Title(
            id: session.id, name: "title \(session.id.text)", url: entry,
            entryKey: nil, kind: .parts, hasHeaders: !session.fields.isEmpty, isPinned: isPinned,
            objects: rows.count,
            bytes: rows.map(\.bytes).saturatedSum(),
            sharedBytes: 0, sharedKeys: [], lastUsed: rows.map(\.lastUsed).max(), variants: [])
        let root = entry.flatMap { self.root(at: $0) } ?? self.root(among: rows)
        if let url = root?.url ?? entry {
            title.url = url
            title.name = TitleName.derived(from: url)
        } else if let row = rows.min(by: { $0.created < $1.created }), let url = Self.url(of: row) {
            title.name = "parts of " + TitleName.derived(from: url)
        }
        if let root { read(root, into: &title) }
        let known = Set(rows.map(\.key))
        for key in needed where !known.contains(key) {
            guard let row = row(key) else { continue }
            if row.title == session.id.number {
                // It was added to the index after the rows were read.
                title.objects += 1
                title.bytes = title.bytes.addingSaturated(row.bytes)
            } else {
                title.sharedBytes = title.sharedBytes.addingSaturated(row.bytes)
                title.sharedKeys.append(key)
            }
            title.lastUsed = max(title.lastUsed ?? row.lastUsed, row.lastUsed)
        }
        return title
    }

    // MARK: The entry

    /// The entry of a title in the store.
    struct Root {
        let url: AbsoluteURL
        let key: ObjectKey
        let object: StoredObject
        let head: StoredHead
    }

    func root(at url: AbsoluteURL) -> Root? {
        for key in catalogue.keys.entryKeys(url, of: session) {
            if let object = catalogue.store.peek(key), let head = StoredHead(encoded: object.head) {
                return Root(url: url, key: key, object: object, head: head)
            }
        }
        return nil
    }

    /// Finds the object whose URL gives the title's number; since key rules may have shortened
    /// URLs, otherwise a multivariant playlist, or the first object that a player can start from,
    /// or the only one.
    func root(among rows: [StoreEntry]) -> Root? {
        let letters = [ResourceRole.playlist.letter, ResourceRole.media.letter]
        let starts = rows.filter { letters.contains($0.role) }.sorted { $0.created < $1.created }
        let exact = starts.first { row in
            guard let url = Self.url(of: row) else { return false }
            return SessionTable.starts(session, at: url)
        }
        if let exact, let root = root(exact, isExact: true) { return root }
        let roots = starts.prefix(16).compactMap { root($0, isExact: false) }
        if let first = roots.first {
            return roots.first { list($0.object, $0.head, variables: [:])?.isMultivariant ?? false }
                ?? first
        }
        // Object stores send files without a type of media.
        guard rows.count == 1, let only = starts.first else { return nil }
        return root(only, isExact: true)
    }

    /// Reads the object of a row; nil if no player can start from it.
    ///
    /// With `isExact`, a player has started from it, whatever type the origin gives it: its URL says
    /// so, or nothing else is there.
    private func root(_ row: StoreEntry, isExact: Bool) -> Root? {
        guard let url = Self.url(of: row), let object = catalogue.store.peek(row.key),
            let head = StoredHead(encoded: object.head),
            isExact || head.isPlaylist || Self.isMedia(head)
        else { return nil }
        return Root(url: url, key: row.key, object: object, head: head)
    }

    private static func url(of row: StoreEntry) -> AbsoluteURL? {
        try? AbsoluteURL(CacheKey.url(ofText: row.url))
    }

    private static func isMedia(_ head: StoredHead) -> Bool {
        let type = head.fields.first(.contentType) ?? ""
        return ["video/", "audio/", "application/mp4"].contains { type.hasPrefix($0) }
    }

    // MARK: Lists

    private mutating func read(_ root: Root, into title: inout Title) {
        title.entryKey = root.key
        needed.insert(root.key)
        note([root.key])
        // User information is no header of the session; only the key of its playlist tells of it.
        if let row = row(root.key) {
            let key = CacheKey(text: row.url)
            if case .credentials = key.audience { title.hasHeaders = true }
            if key.user != nil { title.hasHeaders = true }
        }
        guard root.head.isPlaylist else {
            title.kind = .file
            title.variants = [TitleVariant(file: Self.bytes(of: root.object), label: "file")]
            return
        }
        guard let list = list(root.object, root.head, variables: [:]) else { return }
        if let name = list.name { title.name = name }
        let itself = TitleChild(url: root.url, kind: .variant, label: "stream", bandwidth: nil)
        if !list.isMultivariant {
            title.variants = [variant(itself, list, at: root.key)]
        } else {
            title.variants = list.children.prefix(Self.mostLists).map { child in
                guard let found = self.list(of: child, variables: list.variables) else {
                    return TitleVariant(unknown: child)
                }
                return variant(child, found.list, at: found.key)
            }
        }
        title.kind = title.variants.contains(where: \.isLive) ? .live : .vod
    }

    private mutating func list(
        of child: TitleChild, variables: [String: String]
    ) -> (list: TitleList, key: ObjectKey)? {
        let ways = catalogue.keys.entryKeys(child.url, of: session)
        note(ways)
        for key in ways {
            guard let object = catalogue.store.peek(key),
                let head = StoredHead(encoded: object.head), head.isPlaylist,
                let found = list(object, head, variables: variables)
            else { continue }
            needed.insert(key)
            return (found, key)
        }
        lacksLists = true
        return nil
    }

    private func list(
        _ object: StoredObject, _ head: StoredHead, variables: [String: String]
    ) -> TitleList? {
        playlist(object, head, variables: variables).map { list in
            TitleList(list) { recordedWindow(at: head.finalURL) }
        }
    }

    /// Parses a stored playlist; blocks on the disk.
    ///
    /// - Returns: nil for one that is incomplete, or cannot be read, or is no playlist within the
    ///   limits.
    func playlist(
        _ object: StoredObject, _ head: StoredHead, variables: [String: String]
    ) -> Playlist? {
        let limits = session.limits(ofOrigins: catalogue.limits)
        guard object.isComplete, let total = object.total, total <= limits.byteCount,
            let base = try? AbsoluteURL(head.finalURL),
            let body = try? readBody(of: object, count: Int(total))
        else { return nil }
        return try? Playlist(
            body, base: base, PlaylistReading(limits: limits, variables: variables))
    }

    /// Returns the window of a recording's playlist, which has the epochs of its names; nil if
    /// there is none, or none that can be read.
    func recordedWindow(at finalURL: String) -> TimeShift? {
        guard session.shift.recording != nil, let url = try? AbsoluteURL(finalURL) else {
            return nil
        }
        let name = WindowName(session: session.id, url: url)
        return TimeShiftFiles.recorded(
            name, in: catalogue.store.folderPath, limits: session.shift.limits)
    }

    /// Returns the variant of a child playlist.
    ///
    /// Without a window, names mean what players are told: their present meaning, also after the
    /// end of a live list.
    private mutating func variant(
        _ child: TitleChild, _ list: TitleList, at key: ObjectKey
    ) -> TitleVariant {
        let current = list.hasWindow ? [:] : catalogue.currentEpochs(key)
        let keys = Dictionary(
            list.pieces.map { piece -> (TitlePiece.Name, ObjectKey) in
                let epoch = current[piece.url] ?? piece.name.epoch
                return (piece.name, catalogue.keys.mediaKey(piece.url, in: epoch))
            }, uniquingKeysWith: { first, _ in first })
        note(Array(keys.values))
        needed.formUnion(keys.values)
        return TitleVariant(child, list: list) { piece in
            keys[piece.name].flatMap { bytes(of: $0) }
        }
    }

    // MARK: Objects

    /// Looks up unknown rows in one query.
    mutating func note(_ keys: [ObjectKey]) {
        let unknown = keys.filter { entries[$0] == nil }
        guard !unknown.isEmpty else { return }
        for (key, row) in zip(unknown, catalogue.store.entries(of: unknown)) {
            entries.updateValue(row, forKey: key)
        }
    }

    /// Returns a row that has been looked up; nil if there is none.
    func row(_ key: ObjectKey) -> StoreEntry? { entries[key] ?? nil }

    /// Returns the stored bytes of a resource whose row has been looked up.
    private mutating func bytes(of key: ObjectKey) -> KeptBytes? {
        guard let row = row(key) else { return nil }
        if row.isComplete { return KeptBytes(isComplete: true, total: row.total) }
        if let known = kept[key] { return known }
        // The object is growing or incomplete: only the object itself knows its spans.
        guard let object = catalogue.store.peek(key) else { return nil }
        let bytes = Self.bytes(of: object)
        kept[key] = bytes
        return bytes
    }

    private static func bytes(of object: StoredObject) -> KeptBytes {
        KeptBytes(isComplete: object.isComplete, total: object.total, spans: object.spans)
    }
}
