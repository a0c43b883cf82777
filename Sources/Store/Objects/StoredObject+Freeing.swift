import Numbers
import Posix
import Synchronization

/// The freeing of bytes of an unnamed object that its readers no longer need.
extension StoredObject {
    /// Frees the body bytes that all readers have passed (fallocate(2)).
    ///
    /// Only for unnamed objects; the bytes are holes afterwards. Only whole blocks of the file are
    /// punched: the kernel would zero the punched bytes of a partly punched page or folio, which
    /// may still be on their way into a socket. Bytes from a running fill's watermark on stay: they
    /// may be in the file already and would be taken for present once the fill goes on.
    ///
    /// One call frees at most `mostPunched` blocks, and the next one goes on: a film that loses its
    /// name while it is played may have gigabytes to free, for which the caller's loop and the
    /// object's lock would wait.
    ///
    /// - Parameter offset: called under the object's lock, so that a reader that has entered since
    ///   is counted or finds a hole.
    package func punch(upTo offset: @autoclosure () -> Int64) {
        let block = channel.configuration.punchBytes
        let closed = state.withLock { state -> [SharedDescriptor] in
            guard state.place == .unnamed else { return [] }
            let written = state.fills.lazy.map(\.watermark).min() ?? .max
            // The header goes too: without a name nothing reads it.
            let fileStart = state.punchedEnd == 0 ? 0 : bodyOffset + state.punchedEnd
            // Holes before the first bytes cost nothing.
            let first = bodyOffset + (state.spans.ranges.first?.lowerBound ?? 0)
            let fileEnd = min(
                (bodyOffset + min(offset(), written)) / block * block,
                max(fileStart, first / block * block) + Self.mostPunched * block)
            guard fileEnd > fileStart else { return [] }
            let (start, end) = (state.punchedEnd, fileEnd - bodyOffset)
            state.remove(start..<end)
            // Under the lock, so that no reader is offered bytes that are being punched.
            let closed = punch(fileStart..<fileEnd, &state)
            state.punchedEnd = end
            giveBackExcess(&state)
            return closed
        }
        // Outside the lock: closing a file's last reference takes time for each of its blocks.
        _ = consume closed
    }

    /// The most blocks that one call of `punch` frees: 64 MiB.
    private static let mostPunched: Int64 = 64

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

    /// Frees the body bytes outside of some windows (fallocate(2)).
    ///
    /// Only for unnamed objects in one file. Unlike `punch(upTo:)` it also frees bytes between a
    /// reader far behind and one far ahead; the former then finds a hole, for which it needs a fill
    /// of its own. What running fills may have written and not yet shown stays, and like there,
    /// only whole blocks of the file are punched, and so many per call.
    ///
    /// - Parameter windows: what stays, in any order; called under the object's lock, so that it
    ///   knows of every reader that was offered bytes before.
    /// - Returns: false if another call would free more.
    package func punch(outside windows: @autoclosure () -> [Range<Int64>]) -> Bool {
        state.withLock { state -> Bool in
            guard state.place == .unnamed, state.files == nil else { return true }
            let unseen = state.fills.map {
                $0.watermark..<$0.watermark.addingSaturated(Self.mostUnseen)
            }
            let ordered = (windows() + unseen).sorted { $0.lowerBound < $1.lowerBound }
            var room = Self.mostPunched * channel.configuration.punchBytes
            for gap in SpanSet(ordered).holes(in: 0..<state.spans.end) where room > 0 {
                punch(inside: gap, &room, &state)
            }
            giveBackExcess(&state)
            return room > 0
        }
    }

    /// The most bytes of one fill that are in the file, or on their way there, behind its
    /// watermark: those of a full queue of `BodyWriter`, and more.
    private static let mostUnseen: Int64 = 4 << 20

    /// Frees the whole blocks inside a gap that hold bytes, and subtracts them from `room`.
    private func punch(inside gap: Range<Int64>, _ room: inout Int64, _ state: inout ObjectState) {
        let block = channel.configuration.punchBytes
        // Offsets in the file, which begins with the header.
        var place = (bodyOffset + gap.lowerBound + block - 1) / block * block
        let end = (bodyOffset + gap.upperBound) / block * block
        while room > 0, place < end,
            let present = state.spans.firstRange(from: place - bodyOffset),
            bodyOffset + present.lowerBound < end
        {
            let first = max(place, (bodyOffset + present.lowerBound) / block * block)
            let last = min(
                end, first + room, (bodyOffset + present.upperBound + block - 1) / block * block)
            state.remove(first - bodyOffset..<last - bodyOffset)
            // The object has no other files, so none is closed.
            _ = punch(first..<last, &state)
            room -= last - first
            place = last
        }
    }

    /// True if the body lies on the store's own disk, which has no more free than must stay free;
    /// asks the file system.
    package var isOnShortDisk: Bool {
        countsForBudget && isOfThisEra && channel.room?.isDiskFull == true
    }
}
