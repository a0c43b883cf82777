package import Posix
import Synchronization

/// Comparing stored bytes with their checksums.
extension StoredObject {
    /// Bytes read at a time.
    private static let step = 1 << 18

    /// Reads an extent and compares it; bytes that do not fit, or cannot be read, are a hole then.
    ///
    /// - Returns: true when the bytes are what was written.
    @discardableResult
    func prove(_ extent: Extent) -> Bool {
        let isSound = extent.sum.map { (try? checksum(of: extent.range)) == $0 } ?? true
        let mustQueue = state.withLock { state -> Bool in
            guard isSound else {
                // Read while it was being written anew, it may be another one by now.
                guard state.extents.holds(extent) else { return false }
                state.spans.remove(extent.range)
                state.extents.remove(extent.range)
                state.content = nil
                state.hasNewFacts = true
                return state.markDirty()
            }
            // The header says so as well, or the next run would compare again.
            guard state.extents.prove(extent) else { return false }
            state.hasNewFacts = true
            return state.markDirty()
        }
        if mustQueue { channel.noteDirty(self) }
        if !isSound {
            channel.counters.damagedExtents.add(1, ordering: .relaxed)
            channel.counters.damagedBytes.add(Int64(extent.range.count), ordering: .relaxed)
        }
        return isSound
    }

    /// Takes the bytes around an offset out, which the disk does not give; where that happens again, the
    /// whole object goes.
    package func noteUnreadable(at offset: Int64, _ error: SystemError) {
        let (isRepeated, mustQueue) = state.withLock { state -> (Bool, Bool) in
            state.readFailures += 1
            let shift = ExtentMap.smallestBlockShift
            let start = (offset >> shift) << shift
            let block = start..<start + (1 << shift)
            state.spans.remove(block)
            state.extents.remove(block)
            state.content = nil
            state.hasNewFacts = true
            return (state.readFailures > 1, state.markDirty())
        }
        channel.counters.damagedExtents.add(1, ordering: .relaxed)
        if mustQueue { channel.noteDirty(self) }
        if isRepeated { discard(because: error) }
    }

    /// Whether there is something to compare, and so little in all that it is done at once.
    var isDoubtfulAndSmall: Bool {
        state.withLock { state in
            !state.extents.isProven
                && state.spans.totalBytes <= 1 << ExtentMap.smallestBlockShift
        }
    }

    /// Compares what has not been compared since the last unclean stop, or all there is; blocks.
    ///
    /// - Returns: the bytes that were read, and how many of them were lost.
    func proveAll(again: Bool) -> (checked: Int64, lost: Int64) {
        sumUp()
        var (checked, lost): (Int64, Int64) = (0, 0)
        for extent in state.withLock({ $0.extents.extents }) where again || !extent.isProven {
            checked += Int64(extent.range.count)
            if !prove(extent) { lost += Int64(extent.range.count) }
        }
        return (checked, lost)
    }

    /// Reads back the extents whose checksums are not known; one that cannot be read is a hole then.
    func sumUp() {
        for range in state.withLock({ $0.extents.unsummed }) {
            let sum = try? checksum(of: range)
            state.withLock { state in
                if let sum { return state.extents.note(sum, of: range) }
                state.spans.remove(range)
                state.extents.remove(range)
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
            // A file that ends early has other bytes than were written.
            guard bytes.count == count else { return ~sum }
            offset += Int64(count)
        }
        return sum
    }
}
