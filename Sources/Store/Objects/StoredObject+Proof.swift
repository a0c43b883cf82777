import Glibc
package import Posix
import Synchronization

/// Comparison of stored bytes with their checksums.
extension StoredObject {
    /// The number of bytes read at a time.
    private static let step = 1 << 18

    /// Reads an extent and compares it with its checksum; turns it into a hole if it does not match
    /// or cannot be read.
    ///
    /// - Returns: true if the bytes match.
    @discardableResult
    func prove(_ extent: Extent) -> Bool {
        let isSound = extent.sum.map { (try? checksum(of: extent.range)) == $0 } ?? true
        guard isSound else {
            lose(extent)
            return false
        }
        // The header must be rewritten, or the next run would compare again.
        changeFacts { $0.extents.prove(extent) }
        return true
    }

    /// Compares bytes that were just read, from the start of the body, with the checksums of the
    /// extents in them; those that do not match become holes.
    ///
    /// A disk may change what was proven. The cost is that of a checksum: a microsecond for a
    /// playlist of some kB.
    ///
    /// - Parameters:
    ///   - bytes: the bytes.
    ///   - extents: the extents of the body before they were read.
    /// - Throws: EIO if bytes do not match.
    func compare(_ bytes: [UInt8], with extents: [Extent]) throws(SystemError) {
        let read = extents.prefix { $0.range.upperBound <= Int64(bytes.count) }
        let damaged = bytes.withUnsafeBytes { bytes in
            read.filter { extent in
                let range = Int(extent.range.lowerBound)..<Int(extent.range.upperBound)
                let part = UnsafeRawBufferPointer(rebasing: bytes[range])
                return extent.sum.map { $0 != crc32c(part) } ?? false
            }
        }
        guard !damaged.isEmpty else { return }
        for extent in damaged { lose(extent) }
        throw SystemError("pread", code: EIO, subject: "bytes do not match their checksum")
    }

    /// Turns an extent that does not match its checksum, or cannot be read, into a hole.
    private func lose(_ extent: Extent) {
        changeFacts { state in
            // The extent may have been rewritten while it was being read.
            guard state.extents.holds(extent) else { return false }
            state.drop(extent)
            state.content = nil
            return true
        }
        channel.counters.damagedExtents.add(1, ordering: .relaxed)
        channel.counters.note { $0.damagedBytes += Int64(extent.range.count) }
    }

    /// Removes the block around an offset that cannot be read; discards the whole object if that
    /// happens again.
    package func noteUnreadable(at offset: Int64, _ error: SystemError) {
        var isRepeated = false
        changeFacts { state in
            state.readFailures += 1
            isRepeated = state.readFailures > 1
            let shift = ExtentMap.smallestBlockShift
            let start = (offset >> shift) << shift
            let block = start..<start + (1 << shift)
            state.remove(block)
            state.content = nil
            return true
        }
        channel.counters.damagedExtents.add(1, ordering: .relaxed)
        if isRepeated { discard(because: error) }
    }

    /// True if there are unproven bytes and the object is small enough to verify them immediately.
    var isDoubtfulAndSmall: Bool {
        state.withLock { state in
            !state.extents.isProven
                && state.spans.totalBytes <= 1 << ExtentMap.smallestBlockShift
        }
    }

    /// Compares all extents, or only those unproven since the last unclean stop; blocks.
    ///
    /// - Parameters:
    ///   - again: true for all extents.
    ///   - goesOn: called before each of them; false ends the comparison.
    /// - Returns: the number of bytes read, and how many of them were lost.
    func proveAll(
        again: Bool, _ goesOn: () -> Bool = { true }
    ) -> (checked: Int64, lost: Int64) {
        sumUp()
        var (checked, lost): (Int64, Int64) = (0, 0)
        for extent in state.withLock({ $0.extents.extents }) where again || !extent.isProven {
            guard goesOn() else { break }
            checked += Int64(extent.range.count)
            if !prove(extent) { lost += Int64(extent.range.count) }
        }
        return (checked, lost)
    }

    /// Computes missing checksums by reading extents back; an extent that cannot be read becomes a
    /// hole.
    func sumUp() {
        for range in state.withLock({ $0.extents.unsummed }) {
            let sum = try? checksum(of: range)
            state.withLock { state in
                if let sum { return state.extents.note(sum, of: range) }
                state.drop(Extent(range: range))
                state.content = nil
            }
        }
    }

    private func checksum(of range: Range<Int64>) throws(SystemError) -> UInt32 {
        var sum: UInt32 = 0
        var offset = range.lowerBound
        while offset < range.upperBound {
            let count = Int(min(Int64(Self.step), range.upperBound - offset))
            let bytes = try readBytes(
                from: descriptor.number, at: bodyOffset + offset, count: count)
            sum = bytes.withUnsafeBytes { crc32c($0, after: sum) }
            // The file is shorter than what was written: return a sum that cannot match.
            guard bytes.count == count else { return ~sum }
            offset += Int64(count)
        }
        return sum
    }
}
