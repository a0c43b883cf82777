import Glibc
package import Posix
import Synchronization

/// The writing side of an object: fills, the body's length and discarding.
extension StoredObject {
    /// Begins a fill that will write bytes from `start`, up to `end` if that is known.
    package func beginFill(from start: Int64, to end: Int64?) -> FillID {
        state.withLock { state in
            state.lastFill += 1
            let id = FillID(number: state.lastFill)
            state.fills.append(Fill(id: id, end: end, watermark: start))
            return id
        }
    }

    /// Writes body bytes to the file (pwrite(2)); readers see them after `extend`.
    ///
    /// May only be called between `beginFill` and `endFill`. Room is charged before the bytes are
    /// written. An object that exceeds the budget or the maximum file size loses its name and
    /// continues as one that is not storable. A failure for lack of storage on the store's own disk
    /// also makes the store keep new objects off it for a few seconds; one of a temporary file on
    /// another disk says nothing about it, nor does the limit of a file's length (EFBIG).
    package func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(SystemError) {
        try obtainRoom(for: offset..<offset + Int64(bytes.count))
        do throws(SystemError) {
            try writeInPieces(bytes, at: bodyOffset + offset)
        } catch {
            if countsForBudget, error.code != EFBIG { channel.noteStorageFailure(error) }
            throw error
        }
    }

    /// The maximum length of one system call's write; writes are cut at multiples of it in the
    /// file.
    ///
    /// The page cache takes such a piece as one folio. Measured on ext4 with blocks preallocated,
    /// CPU seconds per GB: 64 KiB aligned 0.18, unaligned 0.28; 128 KiB 0.16 and 0.22; 256 KiB 0.15
    /// and 0.17. But a virtual machine returns free memory to its host in blocks of 128 KiB and
    /// more, and folios made of such memory cost 1.8 s: overall the smaller piece is the cheapest.
    private static let piece = BodyLayout.cut

    private func writeInPieces(
        _ bytes: UnsafeRawBufferPointer, at offset: Int64
    ) throws(SystemError) {
        var done = 0
        while done < bytes.count {
            let place = offset + Int64(done)
            let count = min(bytes.count - done, Int(Self.piece - place % Self.piece))
            let part = UnsafeRawBufferPointer(rebasing: bytes[done..<done + count])
            if isSpread {
                try writeSpread(part, at: place)
            } else {
                do throws(SystemError) {
                    try writeAll(part, to: descriptor.number, at: place)
                } catch {
                    guard error.code == EFBIG else { throw error }
                    try writeSpread(part, at: place)
                }
            }
            done += count
        }
    }

    /// Charges bytes before they are written, up to 1 MiB ahead, so that it happens rarely.
    private func obtainRoom(for range: Range<Int64>) throws(SystemError) {
        let (missing, own) = state.withLock { state -> (Int64, Int64) in
            guard state.place == .unpublished || state.place == .current else { return (0, 0) }
            let needed = bodyOffset + state.spans.blockBytes(inserting: range)
            return (needed - state.charge, state.charge)
        }
        guard missing > 0, isOfThisEra, let room = channel.room else { return }
        let ahead = max(missing, min(1 << 20, channel.usage.budget / 64 / 4096 * 4096))
        var got = room.take(ahead) ? ahead : 0
        if got == 0,
            room.obtain(missing, beside: own, isPinned: room.pins.holds(key, ofTitle: title))
        {
            got = missing
        }
        guard got > 0 else {
            // A full budget is not a fault of the disk, nor is space that other programs took and
            // that evictions make again, or that was freed and is reported later: drop the name. A
            // full disk stops all storing.
            guard room.isDiskFull, channel.usage.isStuck, !channel.usage.awaitsDisk else {
                if room.forgetName(of: self) { return }
                throw SystemError("reserve", code: EDQUOT)
            }
            let error = SystemError("reserve", code: ENOSPC)
            channel.noteStorageFailure(error)
            throw error
        }
        let charged = got
        state.withLock { $0.charge += charged }
    }

    /// Writes bytes of a fill and lets readers see them.
    func append(
        _ bytes: UnsafeRawBufferPointer, at offset: Int64, by fill: FillID
    ) throws(SystemError) {
        try write(bytes, at: offset)
        let written = offset..<offset + Int64(bytes.count)
        // Computed here, while the bytes are in the processor's cache.
        let sums = keepsChecksums ? checksums(of: bytes, at: offset) : []
        extend(fill, to: written.upperBound, sums: sums, of: written)
    }

    /// Moves a fill's watermark: everything before it is in the file and may be read.
    ///
    /// Does nothing if the watermark does not advance or the fill has ended.
    package func extend(_ fill: FillID, to watermark: Int64) {
        extend(fill, to: watermark, sums: [], of: 0..<0)
    }

    /// Moves the watermark like `extend(_:to:)`, with the checksums of the bytes written last.
    func extend(_ fill: FillID, to watermark: Int64, sums: [UInt32], of summed: Range<Int64>) {
        let isDue = isDueWhenWhole.load(ordering: .relaxed)
        // Before readers see the last byte: what they request next must find this object.
        if isDue, isWhole(with: fill, upTo: watermark) { takeName() }
        let (ready, mustQueue, isUrgent) = state.withLock { state -> ([Waiter], Bool, Bool) in
            guard let index = state.fills.firstIndex(where: { $0.id == fill }) else {
                return ([], false, false)
            }
            let start = state.fills[index].watermark
            let end = state.total.map { min(watermark, $0) } ?? watermark
            guard end > start else { return ([], false, false) }
            state.fills[index].watermark = end
            state.insert(start..<end, sums: summed == start..<end ? sums : [])
            let before = state.uncommittedBytes
            state.uncommittedBytes += end - start
            chargeForSpans(&state)
            let limit = channel.configuration.commitBytes
            let isUrgent =
                before < limit && state.uncommittedBytes >= limit && state.place == .current
            return (state.waiting.take(in: start..<end), state.markDirty(), isUrgent)
        }
        if mustQueue { channel.noteDirty(self) }
        if isUrgent { channel.hurry() }
        // Two fills that bring the last bytes at the same time do not see each other's before.
        if isDue, former != nil, isComplete { takeName() }
        for waiter in ready { waiter.wake(.progress) }
    }

    /// True if the body is whole with the bytes of a fill up to a watermark.
    private func isWhole(with fill: FillID, upTo watermark: Int64) -> Bool {
        state.withLock { state in
            guard let total = state.total,
                let start = state.fills.first(where: { $0.id == fill })?.watermark,
                start < min(watermark, total)
            else { return false }
            var spans = state.spans
            spans.insert(start..<min(watermark, total))
            return spans.isComplete(total: total)
        }
    }

    /// Takes the name of the key, unless a purge or another generation has come first; blocks on
    /// the disk.
    ///
    /// If the disk refuses, the former object keeps the name. A store that was closed stores
    /// nothing more.
    private func takeName() {
        guard channel.worker != nil, let room = channel.room else { return }
        try? room.publish(self)
    }

    /// Ends a fill and wakes every waiter, so that each can start or join another one.
    ///
    /// - Parameters:
    ///   - fill: from `beginFill`; ignored if it has ended already.
    ///   - failure: why it ended early; nil if it wrote everything announced.
    package func endFill(_ fill: FillID, failure: (any Error)?) {
        let (woken, mustQueue) = state.withLock { state -> ([Waiter], Bool) in
            guard let index = state.fills.firstIndex(where: { $0.id == fill }) else {
                return ([], false)
            }
            let ended = state.fills.remove(at: index)
            state.endedFills += 1
            if let failure {
                state.didFailToStore = state.didFailToStore || failure is SystemError
                state.lastFailure = FillFailure(
                    error: failure, ended: ended, endedFills: state.endedFills)
            }
            // Blocks that are still preallocated are freed with the next commit.
            let isShort = state.isPreallocated && state.fills.isEmpty
            state.hasNewFacts = state.hasNewFacts || isShort
            return (state.waiting.takeAll(), isShort && state.markDirty())
        }
        if mustQueue { channel.noteDirty(self) }
        for waiter in woken { waiter.wake(.fillEnded) }
    }

    /// Sets the length of the whole body, also at the clean end of one whose length was not
    /// announced (RFC 9112, 6.3).
    ///
    /// - Returns: false if that contradicts another known length or bytes beyond it.
    @discardableResult
    package func learnTotal(_ total: Int64) -> Bool {
        precondition(total >= 0, "a body's length is never negative: \(total)")
        var ready: [Waiter] = []
        var isTrue = true
        changeFacts { state in
            guard state.total == nil, state.spans.end <= total else {
                isTrue = state.total == total
                return false
            }
            state.total = total
            ready = state.waiting.take(from: total)
            return true
        }
        for waiter in ready { waiter.wake(.progress) }
        return isTrue
    }

    /// Forgets the length of a body that turns out to grow; present bytes stay.
    package func forgetTotal() {
        changeFacts { state in
            guard state.total != nil else { return false }
            state.forgetTotal()
            return true
        }
    }

    /// Discards the object: no lookup finds it any more, nothing of it is committed, and its file
    /// is freed with its last holder.
    ///
    /// Wakes all waiters. With `failure`, `didFailToStore` reports to them that storing failed, even
    /// before the affected fill ends. With `didSync` false a sync failed, so that the file must not
    /// be opened again.
    package func discard(because failure: SystemError? = nil, didSync: Bool = true) {
        let (woken, mustRemove) = state.withLock { state -> ([Waiter], Bool) in
            let mayBeSound = !state.isDiscarded || state.isFaultOfDisk
            state.isFaultOfDisk = failure != nil && didSync && mayBeSound
            guard !state.isDiscarded else { return ([], false) }
            state.isDiscarded = true
            state.didFailToStore = state.didFailToStore || failure != nil
            state.endedFills += 1
            return (state.waiting.takeAll(), state.place == .current)
        }
        // The channel keeps a reference until the name is removed, so that no lookup reloads it
        // from disk.
        if mustRemove { channel.noteDiscarded(self) }
        for waiter in woken { waiter.wake(.fillEnded) }
    }

    /// Charges newly written bytes; those of a preallocated object were charged at its creation.
    ///
    /// Nothing is evicted for the window of an unnamed object, which nobody finds later. What is
    /// stored next makes room for both.
    private func chargeForSpans(_ state: inout ObjectState) {
        let needed = Footprint.bytes(header: bodyOffset, spans: state.spans)
        guard countsForBudget, isOfThisEra, needed > state.charge, !state.hasLeftFile else {
            return
        }
        channel.usage.charge(needed - state.charge)
        state.charge = needed
    }
}
