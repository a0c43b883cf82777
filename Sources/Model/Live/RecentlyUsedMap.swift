/// A dictionary bounded in keys and bytes, which drops what was not used for long.
///
/// Keys have turns, in the order of their insertion. At its turn a key is dropped, unless it was
/// used since its last turn; then it gets another turn behind all others. A use therefore only sets
/// a mark.
///
/// Inlinable, since other modules would otherwise use witness tables for each key and value.
@usableFromInline
package struct RecentlyUsedMap<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    @usableFromInline
    struct Entry: Sendable {
        @usableFromInline var value: Value
        @usableFromInline var bytes: Int
        @usableFromInline var isUsed: Bool

        @inlinable init(value: Value, bytes: Int, isUsed: Bool) {
            self.value = value
            self.bytes = bytes
            self.isUsed = isUsed
        }
    }

    @usableFromInline var entries: [Key: Entry] = [:]
    /// The keys in the order of their turns, from `first` on.
    @usableFromInline var turns: [Key] = []
    @usableFromInline var first = 0
    @usableFromInline var bytes = 0
    @usableFromInline let mostKeys: Int
    @usableFromInline let mostBytes: Int

    /// - Parameters:
    ///   - mostKeys: the most keys, 1 or more.
    ///   - mostBytes: the most bytes of all values; a single one may have more.
    @inlinable package init(mostKeys: Int, mostBytes: Int) {
        self.mostKeys = mostKeys
        self.mostBytes = mostBytes
    }

    /// The value of a key; reading it here does not count as a use.
    @inlinable package subscript(key: Key) -> Value? { entries[key]?.value }

    /// Returns the value of a key and notes that it is used.
    @inlinable package mutating func use(_ key: Key) -> Value? {
        guard !entries.isEmpty, let index = entries.index(forKey: key) else { return nil }
        entries.values[index].isUsed = true
        return entries.values[index].value
    }

    /// Sets the value of a key, of a size in bytes, and drops others beyond the limits.
    @inlinable package mutating func keep(_ value: Value, bytes size: Int, for key: Key) {
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
