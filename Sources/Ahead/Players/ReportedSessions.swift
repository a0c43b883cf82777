/// The sessions of which a playlist was reported.
///
/// The planner knows segments only from playlists of their own session. Several sessions share a
/// bit: an unnecessary report costs the planner only a look-up.
struct ReportedSessions {
    private var words = [UInt64](repeating: 0, count: 256)

    private static func place(_ session: UInt64) -> (word: Int, bit: UInt64) {
        let hash = session &* 0x9E37_79B9_7F4A_7C15
        return (Int(hash >> 56), 1 << (hash >> 50 & 63))
    }

    mutating func insert(_ session: UInt64) {
        let (word, bit) = Self.place(session)
        words[word] |= bit
    }

    func mayContain(_ session: UInt64) -> Bool {
        let (word, bit) = Self.place(session)
        return words[word] & bit != 0
    }
}
