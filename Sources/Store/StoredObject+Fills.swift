import Glibc
package import Posix
import Synchronization

/// The writing side of an object: fills, the body's length, and the end of it all.
extension StoredObject {
    /// Announces that bytes from `start` on will be written, up to `end` if that is known.
    package func beginFill(from start: Int64, to end: Int64?) -> FillID {
        state.withLock { state in
            state.lastFill += 1
            let id = FillID(number: state.lastFill)
            state.fills.append(Fill(id: id, end: end, watermark: start))
            return id
        }
    }

    /// Writes body bytes into the file (pwrite(2)); readers see them after `extend`.
    ///
    /// Only between `beginFill` and `endFill`. Room is counted before the bytes are written; an object
    /// that the budget has none for loses its name, and goes on as one that is not storable; so does
    /// one that is longer than a file may be. A failure for lack of storage also makes the store
    /// keep new objects off this disk for a few seconds.
    package func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(SystemError) {
        try obtainRoom(for: offset..<offset + Int64(bytes.count))
        do throws(SystemError) {
            try writeInPieces(bytes, at: bodyOffset + offset)
        } catch {
            channel.noteStorageFailure(error)
            throw error
        }
    }

    /// What one system call writes at most, cut at multiples of this in the file.
    ///
    /// The page cache takes such a piece as one folio. Measured on ext4 with blocks reserved, CPU
    /// seconds a GB: 64 KiB on the cuts 0.18 and anywhere 0.28, 128 KiB 0.16 and 0.22, 256 KiB 0.15
    /// and 0.17. But a virtual machine gives free memory back to its host in blocks of 128 KiB and
    /// more, and folios made of such cost 1.8: on the whole the smaller piece is the cheapest.
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

    /// Counts bytes before they are written, some ahead, so that it happens once a megabyte.
    private func obtainRoom(for range: Range<Int64>) throws(SystemError) {
        let missing = state.withLock { state -> Int64 in
            guard state.place == .unpublished || state.place == .current else { return 0 }
            var spans = state.spans
            spans.insert(range)
            return Footprint.bytes(header: bodyOffset, spans: spans) - state.charge
        }
        guard missing > 0, isOfThisEra, let room = channel.room else { return }
        let ahead = max(missing, min(1 << 20, channel.usage.budget / 64 / 4096 * 4096))
        let got = room.take(ahead) ? ahead : room.obtain(missing) ? missing : 0
        guard got > 0 else {
            // A budget without room says nothing of the disk; a disk without room takes nobody's.
            guard room.isDiskFull else {
                if room.forgetName(of: self) { return }
                throw SystemError("reserve", code: EDQUOT)
            }
            let error = SystemError("reserve", code: ENOSPC)
            channel.noteStorageFailure(error)
            throw error
        }
        state.withLock { $0.charge += got }
    }

    /// Moves a fill's watermark: everything before it is in the file and may be read.
    ///
    /// A watermark that does not move forward, or a fill that has ended, changes nothing.
    package func extend(_ fill: FillID, to watermark: Int64) {
        extend(fill, to: watermark, sums: [], of: 0..<0)
    }

    /// As `extend(_:to:)`, with the checksums of the bytes that were written last.
    func extend(_ fill: FillID, to watermark: Int64, sums: [UInt32], of summed: Range<Int64>) {
        let (ready, mustQueue, isUrgent) = state.withLock { state -> ([Waiter], Bool, Bool) in
            guard let index = state.fills.firstIndex(where: { $0.id == fill }) else {
                return ([], false, false)
            }
            let start = state.fills[index].watermark
            let end = state.total.map { min(watermark, $0) } ?? watermark
            guard end > start else { return ([], false, false) }
            state.fills[index].watermark = end
            state.spans.insert(start..<end)
            if state.place != .unnamed {
                state.extents.insert(start..<end, sums: summed == start..<end ? sums : [])
            }
            let before = state.uncommittedBytes
            state.uncommittedBytes += end - start
            chargeForSpans(&state)
            let limit = channel.configuration.commitBytes
            let isUrgent =
                before < limit && state.uncommittedBytes >= limit && state.place == .current
            return (state.takeReadyWaiters(), state.markDirty(), isUrgent)
        }
        if mustQueue { channel.noteDirty(self) }
        if isUrgent { channel.hurry() }
        for waiter in ready { waiter.wake(.progress) }
    }

    /// Ends a fill and wakes every waiter, so that each can look for another one.
    ///
    /// - Parameters:
    ///   - fill: from `beginFill`; one that has ended is ignored.
    ///   - failure: why it ended short; nil when it wrote all it had announced.
    package func endFill(_ fill: FillID, failure: (any Error)?) {
        let (woken, mustQueue) = state.withLock { state -> ([Waiter], Bool) in
            guard let index = state.fills.firstIndex(where: { $0.id == fill }) else {
                return ([], false)
            }
            state.fills.remove(at: index)
            state.endedFills += 1
            if let failure {
                state.didFailToStore = state.didFailToStore || failure is SystemError
                state.lastFailure = FillFailure(
                    error: failure, fill: fill, endedFills: state.endedFills)
            }
            // Blocks that stay reserved are given back with the next commit.
            let isShort = state.isPreallocated && state.fills.isEmpty
            state.hasNewFacts = state.hasNewFacts || isShort
            return (state.takeAllWaiters(), isShort && state.markDirty())
        }
        if mustQueue { channel.noteDirty(self) }
        for waiter in woken { waiter.wake(.fillEnded) }
    }

    /// Sets the length of the whole body.
    ///
    /// - Returns: false when it contradicts what is known: another length, or bytes beyond it.
    package func learnTotal(_ total: Int64) -> Bool {
        precondition(total >= 0, "a body's length is never negative: \(total)")
        let (isTrue, ready, mustQueue) = state.withLock { state -> (Bool, [Waiter], Bool) in
            if let known = state.total { return (known == total, [], false) }
            guard state.spans.end <= total else { return (false, [], false) }
            state.total = total
            state.hasNewFacts = true
            return (true, state.takeReadyWaiters(), state.markDirty())
        }
        if mustQueue { channel.noteDirty(self) }
        for waiter in ready { waiter.wake(.progress) }
        return isTrue
    }

    /// Notes the clean end of a body whose length was not announced (RFC 9112, 6.3).
    ///
    /// - Returns: as `learnTotal`.
    @discardableResult
    package func markBodyEnd(_ total: Int64) -> Bool {
        learnTotal(total)
    }

    /// Declares the object dead: no lookup finds it any more, nothing of it is committed, and its
    /// file goes when the last holder lets go.
    ///
    /// Waiters are woken. With `failure` they learn from `didFailToStore` that storing is what failed,
    /// also before the end of the fill that met it.
    package func discard(because failure: SystemError? = nil) {
        let (woken, mustRemove) = state.withLock { state -> ([Waiter], Bool) in
            guard !state.isDiscarded else { return ([], false) }
            state.isDiscarded = true
            state.didFailToStore = state.didFailToStore || failure != nil
            state.endedFills += 1
            return (state.takeAllWaiters(), state.place == .current)
        }
        // Held by the channel until its name is gone, so that no lookup reads it back from disk.
        if mustRemove { channel.noteDiscarded(self) }
        for waiter in woken { waiter.wake(.fillEnded) }
    }

    /// Gives the body bytes below an offset back to the disk (fallocate(2)).
    ///
    /// Only for objects that are not storable, once every reader is past the offset; the bytes are
    /// holes afterwards. Only whole pieces of the file go: of a part of one the kernel would zero
    /// bytes that may still be on their way into a socket.
    package func punch(upTo offset: Int64) {
        let block = channel.configuration.punchBytes
        let closed = state.withLock { state -> [SharedDescriptor] in
            guard state.place == .unnamed else { return [] }
            let fileEnd = (bodyOffset + offset) / block * block
            let cut = min(block, Self.piece)
            let fileStart = (bodyOffset + state.punchedEnd + cut - 1) / cut * cut
            guard fileEnd > fileStart else { return [] }
            let (start, end) = (fileStart - bodyOffset, fileEnd - bodyOffset)
            state.spans.remove(start..<end)
            // Under the lock, so that no reader is told of bytes that are just going.
            let closed = punch(fileStart..<fileEnd, &state)
            state.punchedEnd = end
            let left = Footprint.bytes(header: bodyOffset, spans: state.spans)
            if left < state.charge {
                giveBack(state.charge - left)
                state.charge = left
            }
            return closed
        }
        // The last holder closes a file, which takes as long as there are blocks in it.
        _ = consume closed
    }

    private func punch(_ gone: Range<Int64>, _ state: inout ObjectState) -> [SharedDescriptor] {
        guard state.files != nil else {
            punchHole(descriptor.number, offset: gone.lowerBound, length: Int64(gone.count))
            return []
        }
        let left = state.spans.ranges.map {
            bodyOffset + $0.lowerBound..<bodyOffset + $0.upperBound
        }
        return state.files?.punch(gone, left: SpanSet(left), own: descriptor.number) ?? []
    }

    /// Counts bytes that are new on the disk; a preallocated object was counted when it was made.
    private func chargeForSpans(_ state: inout ObjectState) {
        let needed = Footprint.bytes(header: bodyOffset, spans: state.spans)
        guard countsForBudget, isOfThisEra, needed > state.charge else { return }
        channel.usage.charge(needed - state.charge)
        state.charge = needed
        if channel.usage.isOverBudget, !channel.usage.isStuck { channel.askEviction(bytes: 0) }
    }
}

/// Appends a body to an object through one fill: the loop-owned end of a transfer.
package struct FillWriter {
    package let object: StoredObject
    package let fill: FillID
    /// The body offset of the next byte.
    package private(set) var offset: Int64
    private var putOff: PutOff?
    private var writer: BodyWriter?

    /// Begins a fill of `object` at `start`.
    package init(_ object: StoredObject, from start: Int64, to end: Int64?) {
        self.object = object
        offset = start
        fill = object.beginFill(from: start, to: end)
    }

    /// The bytes from here to where the file is cut next; at least one.
    package func bytesToCut(every piece: Int) -> Int {
        piece - Int((object.bodyOffset + offset) % Int64(piece))
    }

    /// The end of what readers have: behind `offset` while bytes are put off.
    package var written: Int64 { putOff?.state.withLock { $0.written } ?? offset }

    /// Writes the next bytes and lets readers have them, after all that was put off.
    package mutating func append(_ bytes: UnsafeRawBufferPointer) throws(SystemError) {
        try settle()
        guard !bytes.isEmpty else { return }
        try object.append(bytes, at: offset, by: fill)
        offset += Int64(bytes.count)
    }

    /// Has the next bytes written by a thread of its own, which lets readers have them.
    ///
    /// - Parameters:
    ///   - bytes: taken over where there is room for them, else left as they are.
    ///   - writer: the same one for all of a fill.
    ///   - whenFailed: called once, on that thread, when they cannot be written; `settle` says why.
    /// - Returns: false where that thread has enough to do.
    package mutating func putOff(
        _ bytes: inout [UInt8], to writer: BodyWriter,
        whenFailed: @autoclosure () -> @Sendable () -> Void
    ) -> Bool {
        let behind = putOff ?? PutOff(from: offset, whenFailed: whenFailed())
        let count = Int64(bytes.count)
        guard count > 0, writer.queue.add(&bytes, of: self, behind) else { return false }
        putOff = behind
        self.writer = writer
        offset += count
        return true
    }

    /// Returns once all that was put off is in the file; blocks for as long as a piece or a few take.
    ///
    /// - Throws: why something could not be written; what came behind it was dropped.
    package mutating func settle() throws(SystemError) {
        guard let behind = putOff else { return }
        writer?.queue.settle(behind)
        if let failure = behind.state.withLock({ $0.failure }) { throw failure }
        // What is written from here on does not count there.
        putOff = nil
    }

    /// Ends the fill, once all that was put off is written.
    package func end(failure: (any Error)?) {
        if let putOff { writer?.queue.settle(putOff) }
        object.endFill(fill, failure: failure ?? putOff?.state.withLock { $0.failure })
    }
}

extension StoredObject {
    /// Writes bytes of a fill and lets readers have them.
    func append(
        _ bytes: UnsafeRawBufferPointer, at offset: Int64, by fill: FillID
    ) throws(SystemError) {
        try write(bytes, at: offset)
        let written = offset..<offset + Int64(bytes.count)
        // Here, while the bytes are in the processor's cache.
        let sums = keepsChecksums ? checksums(of: bytes, at: offset) : []
        extend(fill, to: written.upperBound, sums: sums, of: written)
    }
}
