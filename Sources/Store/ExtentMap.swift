// Checksums of what is stored, stretch by stretch.
//
// A body is cut at every multiple of a block, 1 MiB to begin with; what is present between two
// cuts without a gap is one extent with one CRC-32C. So a checksum can be compared before the first
// byte of its block is sent, a damaged disk costs a block and not a film, and there are never more
// checksums than blocks and spans together: a header that has no room for them doubles the block.
//
// Measured on the machine of the decision record on durability: computing a CRC-32C while the bytes
// are in the processor's cache takes 0.04 s of processor time a GB, reading them back from the page
// cache to do it takes four times as much; zlib's CRC-32 0.6 s, libcrypto's SHA-256 0.7 s.
import Posix

/// A stretch of present bytes inside one block.
struct Extent: Sendable, Equatable {
    var range: Range<Int64>
    /// CRC-32C of the bytes; nil where they have to be read back first.
    var sum: UInt32?
    /// False until the bytes have been compared with the checksum, after an unclean stop.
    var isProven = true
}

/// The extents of one body, in ascending order, disjoint.
struct ExtentMap: Sendable, Equatable {
    static let smallestBlockShift: UInt8 = 20
    private static let largestBlockShift: UInt8 = 62

    private(set) var extents: [Extent] = []
    private(set) var blockShift = ExtentMap.smallestBlockShift
    /// True when every extent is proven; a flag, because every read asks.
    private(set) var isProven = true

    init() {}

    /// Reads back what `spans` and `sums` of another map gave; nil when they do not fit together.
    init?(spans: SpanSet, sums: [UInt32], blockShift: UInt8, isProven: Bool) {
        guard (Self.smallestBlockShift...Self.largestBlockShift).contains(blockShift) else {
            return nil
        }
        self.blockShift = blockShift
        self.isProven = isProven || sums.isEmpty
        extents.reserveCapacity(sums.count)
        for span in spans.ranges {
            var start = span.lowerBound
            while start < span.upperBound {
                guard extents.count < sums.count else { return nil }
                let end = min(span.upperBound, (start >> blockShift &+ 1) << blockShift)
                extents.append(
                    Extent(range: start..<end, sum: sums[extents.count], isProven: isProven))
                start = end
            }
        }
        guard extents.count == sums.count else { return nil }
    }

    /// Extents whose checksums are not known: those of objects of format 1.
    init(unsummed spans: SpanSet) {
        for span in spans.ranges { insert(span, sums: []) }
    }

    // MARK: Growth

    /// Adds bytes that were written just now.
    ///
    /// - Parameters:
    ///   - range: where they are.
    ///   - sums: of the parts that the smallest blocks cut it into; none when they are unknown.
    mutating func insert(_ range: Range<Int64>, sums: [UInt32]) {
        var start = range.lowerBound
        var index = 0
        let shift = sums.isEmpty ? blockShift : Self.smallestBlockShift
        while start < range.upperBound {
            let end = min(range.upperBound, (start >> shift &+ 1) << shift)
            insert(Extent(range: start..<end, sum: index < sums.count ? sums[index] : nil))
            start = end
            index += 1
        }
    }

    private mutating func insert(_ new: Extent) {
        var new = new
        var index = index(ofFirstEndingAfter: new.range.lowerBound)
        if index < extents.count, extents[index].range.lowerBound < new.range.upperBound {
            // Whichever of two writers came last, its bytes are there: only reading them back tells.
            remove(new.range)
            new.sum = nil
            index = self.index(ofFirstEndingAfter: new.range.lowerBound)
        }
        if index < extents.count, let joined = joined(new, extents[index]) {
            extents[index] = joined
        } else {
            extents.insert(new, at: index)
        }
        if index > 0, let joined = joined(extents[index - 1], extents[index]) {
            extents[index - 1] = joined
            extents.remove(at: index)
        }
    }

    /// One extent instead of two; nil unless they touch inside one block and both are summed.
    private func joined(_ first: Extent, _ second: Extent) -> Extent? {
        guard first.range.upperBound == second.range.lowerBound,
            first.range.lowerBound >> blockShift == second.range.lowerBound >> blockShift,
            let firstSum = first.sum, let secondSum = second.sum
        else { return nil }
        return Extent(
            range: first.range.lowerBound..<second.range.upperBound,
            sum: joinedCRC32C(firstSum, secondSum, secondCount: second.range.count),
            isProven: first.isProven && second.isProven)
    }

    /// Takes bytes out; what is left of an extent has to be read back.
    mutating func remove(_ gone: Range<Int64>) {
        guard !gone.isEmpty else { return }
        let first = index(ofFirstEndingAfter: gone.lowerBound)
        var past = first
        var kept: [Extent] = []
        while past < extents.count, extents[past].range.lowerBound < gone.upperBound {
            let range = extents[past].range
            if range.lowerBound < gone.lowerBound {
                kept.append(Extent(range: range.lowerBound..<gone.lowerBound))
            }
            if range.upperBound > gone.upperBound {
                kept.append(Extent(range: gone.upperBound..<range.upperBound))
            }
            past += 1
        }
        extents.replaceSubrange(first..<past, with: kept)
        if !isProven { isProven = extents.allSatisfy(\.isProven) }
    }

    // MARK: Checksums that are missing

    /// The extents whose bytes have to be read back.
    var unsummed: [Range<Int64>] { extents.filter { $0.sum == nil }.map(\.range) }

    /// Notes the checksum of bytes that were read back; nothing happens when they changed meanwhile.
    mutating func note(_ sum: UInt32, of range: Range<Int64>) {
        let index = index(ofFirstEndingAfter: range.lowerBound)
        guard index < extents.count, extents[index].range == range, extents[index].sum == nil else {
            return
        }
        extents[index].sum = sum
        joinAll()
    }

    private mutating func joinAll() {
        var all: [Extent] = []
        all.reserveCapacity(extents.count)
        for extent in extents {
            if let last = all.last, let joined = joined(last, extent) {
                all[all.count - 1] = joined
            } else {
                all.append(extent)
            }
        }
        extents = all
    }

    /// Doubles the block until at most so many checksums are left, or as few as there are spans.
    mutating func coarsen(to count: Int) {
        while extents.count > count, blockShift < Self.largestBlockShift {
            let before = extents.count
            blockShift += 1
            joinAll()
            // A map of many short spans does not get smaller by that.
            if extents.count == before, summedSpans.ranges.count >= before { break }
        }
    }

    /// The bytes whose checksums are known: what a header may claim.
    var summedSpans: SpanSet {
        var spans = SpanSet()
        for extent in extents where extent.sum != nil { spans.insert(extent.range) }
        return spans
    }

    var sums: [UInt32] { extents.compactMap(\.sum) }

    // MARK: Proof

    /// The extent around an offset, if it has to be compared with its bytes before they are used.
    func unproven(at offset: Int64) -> Extent? {
        guard !isProven else { return nil }
        let index = index(ofFirstEndingAfter: offset)
        guard index < extents.count, extents[index].range.contains(offset),
            !extents[index].isProven
        else { return nil }
        return extents[index]
    }

    /// The first offset after `offset` that is not proven; nil when there is none.
    func unprovenStart(after offset: Int64) -> Int64? {
        guard !isProven else { return nil }
        let index = index(ofFirstEndingAfter: offset)
        return extents[index...].first { !$0.isProven && $0.range.lowerBound > offset }?
            .range.lowerBound
    }

    /// Notes that an extent's bytes fit its checksum.
    ///
    /// - Returns: true when now everything is proven and was not before.
    mutating func prove(_ extent: Extent) -> Bool {
        let index = index(ofFirstEndingAfter: extent.range.lowerBound)
        guard index < extents.count, extents[index] == extent, !isProven else { return false }
        extents[index].isProven = true
        isProven = extents.allSatisfy(\.isProven)
        return isProven
    }

    /// True when an extent is still what it was.
    func holds(_ extent: Extent) -> Bool {
        let index = index(ofFirstEndingAfter: extent.range.lowerBound)
        return index < extents.count && extents[index].range == extent.range
            && extents[index].sum == extent.sum
    }

    private func index(ofFirstEndingAfter offset: Int64) -> Int {
        if let last = extents.last, last.range.upperBound <= offset { return extents.count }
        var low = 0
        var high = extents.count
        while low < high {
            let middle = (low + high) / 2
            if extents[middle].range.upperBound > offset { high = middle } else { low = middle + 1 }
        }
        return low
    }
}

/// CRC-32C of the parts that the smallest blocks cut a range into.
func checksums(of bytes: UnsafeRawBufferPointer, at offset: Int64) -> [UInt32] {
    let shift = ExtentMap.smallestBlockShift
    var sums: [UInt32] = []
    var start = offset
    let end = offset + Int64(bytes.count)
    while start < end {
        let cut = min(end, (start >> shift &+ 1) << shift)
        let part = UnsafeRawBufferPointer(rebasing: bytes[Int(start - offset)..<Int(cut - offset)])
        sums.append(crc32c(part))
        start = cut
    }
    return sums
}
