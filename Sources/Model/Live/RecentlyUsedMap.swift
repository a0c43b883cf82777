/// A dictionary bounded in keys and bytes, which drops what was not used for long.
///
/// Keys have turns, in the order of their insertion. At its turn a key is dropped, unless it was
/// used since its last turn; then it gets another turn behind all others. A use therefore only sets
/// a mark.
struct RecentlyUsedMap<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private struct Entry {
        var value: Value
        var bytes: Int
        var isUsed: Bool
    }

    private var entries: [Key: Entry] = [:]
    /// The keys in the order of their turns, from `first` on.
    private var turns: [Key] = []
    private var first = 0
    private var bytes = 0
    private let mostKeys: Int
    private let mostBytes: Int

    /// - Parameters:
    ///   - mostKeys: the most keys, 1 or more.
    ///   - mostBytes: the most bytes of all values; a single one may have more.
    init(mostKeys: Int, mostBytes: Int) {
        self.mostKeys = mostKeys
        self.mostBytes = mostBytes
    }

    /// The value of a key; reading it here does not count as a use.
    subscript(key: Key) -> Value? { entries[key]?.value }

    /// Returns the value of a key and notes that it is used.
    mutating func use(_ key: Key) -> Value? {
        guard !entries.isEmpty, let index = entries.index(forKey: key) else { return nil }
        entries.values[index].isUsed = true
        return entries.values[index].value
    }

    /// Sets the value of a key, of a size in bytes, and drops others beyond the limits.
    mutating func keep(_ value: Value, bytes size: Int, for key: Key) {
        let former = entries[key]?.bytes
        entries[key] = Entry(value: value, bytes: size, isUsed: former != nil)
        bytes += size - (former ?? 0)
        if former == nil { turns.append(key) }
        // Marks are removed on the way, so that the second turn of a key is its last one.
        while entries.count > mostKeys || bytes > mostBytes, entries.count > 1 {
            let next = turns[first]
            first += 1
            if next == key || entries[next]?.isUsed == true {
                entries[next]?.isUsed = false
                turns.append(next)
            } else if let dropped = entries.removeValue(forKey: next) {
                bytes -= dropped.bytes
            }
        }
        // Done seldom, so that a key is moved at most once for each of its turns.
        if first > turns.count / 2 {
            turns.removeFirst(first)
            first = 0
        }
    }
}
