import Glibc
import Posix

/// The objects that a clear spares, and their second links in the folder that it sets aside.
///
/// They are linked while other threads change the store: a million of them take long. `follow` and
/// `followPins` make up for these changes, the last time with all names locked. Owned by the store
/// thread.
struct SparedObjects {
    private let core: StoreCore
    private let aside: ClearedFolder
    /// False for a clear that spares nothing.
    private let includesPinned: Bool
    private var linked: [ObjectKey: StoreEntry] = [:]
    /// The pins whose objects were linked.
    private var pins: [UInt64: Pin] = [:]
    /// First bytes of the keys whose links were made or removed since the last sync.
    private(set) var unsynced: Set<UInt8> = []

    init(core: StoreCore, aside: ClearedFolder, includesPinned: Bool) {
        self.core = core
        self.aside = aside
        self.includesPinned = includesPinned
    }

    var count: Int { linked.count }

    func contains(_ key: ObjectKey) -> Bool { linked[key] != nil }

    /// The rows of the linked objects, those used longest ago first.
    var rows: [StoreEntry] {
        linked.values.sorted { $0.lastUsed < $1.lastUsed }
    }

    /// Links what pins hold that were added or extended since the last call; reads the index.
    mutating func followPins() throws {
        guard includesPinned else { return }
        for pin in core.pins.all {
            let former = pins.updateValue(pin, forKey: pin.title)
            guard former != pin else { continue }
            let known = Set(former?.keys ?? [])
            for row in try core.index.rows(of: pin.keys.filter { !known.contains($0) }) {
                if let row { try link(row) }
            }
            guard former == nil, pin.title != 0 else { continue }
            for row in try core.index.rows(ofTitle: pin.title) { try link(row) }
        }
    }

    /// Follows changes that the index does not have: an object that was replaced has another file.
    mutating func follow(_ changes: [ObjectKey: RowChange]) throws {
        guard includesPinned else { return }
        for (key, change) in changes {
            try removeLink(of: key)
            switch change {
            case .put(let row), .adopt(let row):
                if core.pins.holds(key, ofTitle: row.title) { try link(row) }
            case .delete: break
            }
        }
    }

    private mutating func link(_ row: StoreEntry) throws(SystemError) {
        guard linked[row.key] == nil else { return }
        do throws(SystemError) {
            try linkFile(
                core.folder.objectPath(row.key), as: core.folder.path(of: row.key, in: aside))
        } catch {
            // Another thread has removed it, or a power cut has.
            guard error.code == ENOENT else { throw error }
            return
        }
        linked[row.key] = row
        unsynced.insert(row.key.firstByte)
    }

    private mutating func removeLink(of key: ObjectKey) throws(SystemError) {
        guard linked.removeValue(forKey: key) != nil else { return }
        try removeFile(core.folder.path(of: key, in: aside))
        unsynced.insert(key.firstByte)
    }

    /// Waits until the links made and removed since the last sync are on the disk; blocks.
    mutating func sync() throws(SystemError) {
        for byte in unsynced { try syncFolder(aside.subfolder(of: byte)) }
        unsynced = []
    }

    /// Notes that the whole file system was synced.
    mutating func noteSynced() { unsynced = [] }
}
