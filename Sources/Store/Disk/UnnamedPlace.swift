// Where the bodies of unnamed objects are placed.

/// A folder that may take the body of an unnamed object.
struct UnnamedPlace: Equatable {
    let path: String
    /// The free bytes of its disk; -1 if unknown, as for a folder that does not exist.
    let free: Int64
    /// The free bytes that should stay.
    var reserve: Int64 = 0
    /// True if its disk has just refused bytes.
    var isFailing = false
    /// True for a temporary folder on the disk of the cache folder: it has no room that this lacks,
    /// and bodies in it would take the bytes that must stay free.
    var isOnOwnDisk = false

    /// True if a body of this many bytes leaves the reserve.
    func hasRoom(for bytes: Int64) -> Bool { !isFailing && free - reserve >= bytes }

    /// Sorts folders, best first.
    ///
    /// Those with room keep their order. Of the others, none of which is known to hold the body to
    /// its end, the one with the most free bytes is first, and one that fails is last. Those
    /// on the cache folder's disk follow, for a cache folder that takes no files.
    static func sorted(_ places: [UnnamedPlace], for bytes: Int64) -> [String] {
        let separate = places.filter { !$0.isOnOwnDisk }
        let full = separate.filter { !$0.hasRoom(for: bytes) }
        let order =
            separate.filter { $0.hasRoom(for: bytes) }
            + full.filter { !$0.isFailing }.sorted { $0.free > $1.free }
            + full.filter(\.isFailing)
        return order.map(\.path) + places.filter(\.isOnOwnDisk).map(\.path)
    }
}
