// Which bytes of a body are present: sorted, disjoint, half-open ranges.
import Numbers

/// A sparse set of byte offsets.
///
/// Neighbouring ranges are merged, so that equal sets are equal values.
package struct SpanSet: Sendable, Equatable, CustomStringConvertible {
    /// The present ranges in ascending order; none is empty and none touches the next.
    package private(set) var ranges: [Range<Int64>] = []
    /// The number of blocks that the ranges lie in; counted with each change, since every write of a
    /// body needs it and an object may have very many ranges.
    private var blocks: Int64 = 0

    /// The binary logarithm of a block's length: 4 KiB.
    private static let blockShift: Int64 = 12

    package init() {}

    /// Creates a set of ranges, given in any order.
    package init(_ ranges: [Range<Int64>]) {
        for range in ranges { insert(range) }
    }

    /// The number of present bytes.
    package var totalBytes: Int64 {
        ranges.reduce(0) { $0 + Int64($1.count) }
    }

    /// The bytes of the blocks of 4 KiB that the spans lie in; two spans in one block count it once.
    ///
    /// Blocks are counted from offset 0.
    package var blockBytes: Int64 { blocks << Self.blockShift }

    /// Returns `blockBytes` as it would be with another range.
    package func blockBytes(inserting new: Range<Int64>) -> Int64 {
        guard !new.isEmpty else { return blockBytes }
        if let last = ranges.last, last.upperBound == new.lowerBound {
            return (blocks + Self.blocksEnd(new) - Self.blocksEnd(last)) << Self.blockShift
        }
        let (replaced, merged) = place(of: new)
        return (blocks + change(of: replaced, to: CollectionOfOne(merged))) << Self.blockShift
    }

    /// Returns the index after the last block of a range that is not empty.
    private static func blocksEnd(_ range: Range<Int64>) -> Int64 {
        (range.upperBound - 1) >> blockShift + 1
    }

    /// Returns by how much the number of blocks changes if other ranges replace some.
    private func change(
        of replaced: Range<Int>, to others: some Collection<Range<Int64>>
    ) -> Int64 {
        count(others, at: replaced) - count(ranges[replaced], at: replaced)
    }

    /// Returns the number of blocks of ranges in the place of others and of the range after them,
    /// without those of the range before them.
    private func count(_ parts: some Collection<Range<Int64>>, at replaced: Range<Int>) -> Int64 {
        var count: Int64 = 0
        var end = replaced.lowerBound > 0 ? Self.blocksEnd(ranges[replaced.lowerBound - 1]) : 0
        func add(_ range: Range<Int64>) {
            let next = Self.blocksEnd(range)
            count += next - max(range.lowerBound >> Self.blockShift, end)
            end = next
        }
        for range in parts { add(range) }
        if replaced.upperBound < ranges.count { add(ranges[replaced.upperBound]) }
        return count
    }

    /// True if a range of a body is present as far as the body reaches: playlists may name more than
    /// a file has, but nothing is present of a range behind its end.
    package func holds(_ range: Range<Int64>, ofTotal total: Int64?) -> Bool {
        guard !range.isEmpty else { return true }
        let end = min(range.upperBound, total ?? range.upperBound)
        return range.lowerBound < end && contains(range.lowerBound..<end)
    }

    /// The end of the last span; 0 for an empty set.
    package var end: Int64 { ranges.last?.upperBound ?? 0 }

    package var isEmpty: Bool { ranges.isEmpty }

    /// Adds a range; bytes that are present already are ignored.
    package mutating func insert(_ new: Range<Int64>) {
        precondition(new.lowerBound >= 0, "a span starts at 0 or later: \(new)")
        guard !new.isEmpty else { return }
        // The usual case, a fill that appends: the last span grows.
        if let last = ranges.last, last.upperBound == new.lowerBound {
            blocks += Self.blocksEnd(new) - Self.blocksEnd(last)
            ranges[ranges.count - 1] = last.lowerBound..<new.upperBound
            return
        }
        let (replaced, merged) = place(of: new)
        blocks += change(of: replaced, to: CollectionOfOne(merged))
        ranges.replaceSubrange(replaced, with: CollectionOfOne(merged))
    }

    /// Returns which ranges a new one touches, and the range that replaces them.
    private func place(of new: Range<Int64>) -> (replaced: Range<Int>, merged: Range<Int64>) {
        let first = index(ofFirstEndingAtOrAfter: new.lowerBound)
        var past = first
        var merged = new
        while past < ranges.count, ranges[past].lowerBound <= new.upperBound {
            let lower = min(merged.lowerBound, ranges[past].lowerBound)
            merged = lower..<max(merged.upperBound, ranges[past].upperBound)
            past += 1
        }
        return (first..<past, merged)
    }

    /// Removes a range; bytes that are not present are ignored.
    package mutating func remove(_ gone: Range<Int64>) {
        guard !gone.isEmpty else { return }
        let first = index(ofFirstEndingAtOrAfter: gone.lowerBound)
        var past = first
        var kept: [Range<Int64>] = []
        while past < ranges.count, ranges[past].lowerBound < gone.upperBound {
            let range = ranges[past]
            if range.lowerBound < gone.lowerBound {
                kept.append(range.lowerBound..<min(range.upperBound, gone.lowerBound))
            }
            if range.upperBound > gone.upperBound {
                kept.append(max(range.lowerBound, gone.upperBound)..<range.upperBound)
            }
            past += 1
        }
        blocks += change(of: first..<past, to: kept)
        ranges.replaceSubrange(first..<past, with: kept)
    }

    /// True when the byte at an offset is present.
    package func contains(_ offset: Int64) -> Bool {
        contiguousEnd(from: offset) > offset
    }

    /// True when every byte of a range is present; true for an empty range.
    package func contains(_ range: Range<Int64>) -> Bool {
        range.isEmpty || contiguousEnd(from: range.lowerBound) >= range.upperBound
    }

    /// Returns the first missing offset at or after `offset`; `offset` itself if that byte is
    /// missing.
    package func contiguousEnd(from offset: Int64) -> Int64 {
        let index = index(ofFirstEndingAtOrAfter: offset &+ 1)
        guard index < ranges.count, ranges[index].lowerBound <= offset else { return offset }
        return ranges[index].upperBound
    }

    /// Returns the first range of present bytes at or after an offset, cut to start there; nil for
    /// none.
    package func firstRange(from offset: Int64) -> Range<Int64>? {
        guard offset < .max else { return nil }
        let index = index(ofFirstEndingAtOrAfter: offset + 1)
        guard index < ranges.count else { return nil }
        return max(offset, ranges[index].lowerBound)..<ranges[index].upperBound
    }

    /// Returns the missing ranges inside a range, in ascending order.
    package func holes(in range: Range<Int64>) -> [Range<Int64>] {
        var found: [Range<Int64>] = []
        var offset = range.lowerBound
        var index = index(ofFirstEndingAtOrAfter: offset &+ 1)
        while offset < range.upperBound {
            guard index < ranges.count, ranges[index].lowerBound < range.upperBound else {
                found.append(offset..<range.upperBound)
                break
            }
            if ranges[index].lowerBound > offset { found.append(offset..<ranges[index].lowerBound) }
            offset = ranges[index].upperBound
            index += 1
        }
        return found
    }

    /// True if all of a body of `total` bytes is present; false while the total is unknown.
    package func isComplete(total: Int64?) -> Bool {
        guard let total else { return false }
        return total == 0 || contiguousEnd(from: 0) >= total
    }

    package var description: String {
        ranges.map { "\($0.lowerBound)..<\($0.upperBound)" }.joined(separator: " ")
    }

    private func index(ofFirstEndingAtOrAfter offset: Int64) -> Int {
        ranges.firstSortedIndex { $0.upperBound >= offset }
    }
}
