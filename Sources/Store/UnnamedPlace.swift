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

    /// True if a body of this many bytes leaves the reserve.
    func hasRoom(for bytes: Int64) -> Bool { !isFailing && free - reserve >= bytes }

    /// Sorts folders, best first.
    ///
    /// Those with room keep their order. Of the others, none of which is known to hold the body to
    /// its end, the one with the most free bytes is first, and one that fails is last.
    static func sorted(_ places: [UnnamedPlace], for bytes: Int64) -> [String] {
        let full = places.filter { !$0.hasRoom(for: bytes) }
        let order =
            places.filter { $0.hasRoom(for: bytes) }
            + full.filter { !$0.isFailing }.sorted { $0.free > $1.free }
            + full.filter(\.isFailing)
        return order.map(\.path)
    }
}
