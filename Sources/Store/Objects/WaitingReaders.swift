import Numbers

/// The readers that wait for bytes of one object, by offset.
struct WaitingReaders: Sendable {
    private struct Reader: Sendable {
        let offset: Int64
        let waiter: Waiter
    }

    /// The last offset first, so that the readers that bytes reach next are removed from the end: a
    /// client may wait at very many offsets.
    private var readers: [Reader] = []

    /// Adds a reader that waits for the byte at an offset.
    mutating func add(_ waiter: Waiter, at offset: Int64) {
        readers.insert(Reader(offset: offset, waiter: waiter), at: count(from: offset))
    }

    /// Removes a reader, if it still waits.
    mutating func remove(_ id: UInt64) {
        guard let index = readers.firstIndex(where: { $0.waiter.id == id }) else { return }
        readers.remove(at: index)
    }

    /// Removes and returns the readers that wait for bytes which have arrived, in their order.
    mutating func take(in range: Range<Int64>) -> [Waiter] {
        guard !readers.isEmpty else { return [] }
        return take(count(from: range.upperBound)..<count(from: range.lowerBound))
    }

    /// Removes and returns the readers at or after an offset, which is the end.
    mutating func take(from end: Int64) -> [Waiter] { take(0..<count(from: end)) }

    mutating func takeAll() -> [Waiter] { take(readers.indices) }

    private mutating func take(_ indices: Range<Int>) -> [Waiter] {
        guard !indices.isEmpty else { return [] }
        let taken = readers[indices].reversed().map(\.waiter)
        readers.removeSubrange(indices)
        return taken
    }

    /// Returns the number of readers at or after an offset.
    private func count(from offset: Int64) -> Int {
        readers.firstSortedIndex { $0.offset < offset }
    }
}
