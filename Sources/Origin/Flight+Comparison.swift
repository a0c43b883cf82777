// Proof by content where a response meets stored bytes, and what is done without any proof.
//
// Without a strong validator two versions of equal length cannot be told apart by their heads. So the
// rest of such a body is asked for from a little before the first byte that is missing, and what
// comes is compared with what is there before anything of it is taken.
//
// In the same way the bytes that fill a hole may be of another version than those behind
// it. So the fill asks for a little more than the hole, keeps the last byte of the hole back, compares
// what comes behind it with what is stored there, and only then lets readers pass.
import CachePolicy
import HTTP
import Model
import Reactor
import Store

/// The bytes around the end of a hole, which are being compared.
struct Meeting {
    /// Where the stored bytes begin.
    let start: Int64
    /// How many of them are compared.
    let count: Int
    /// The last byte of the hole, and those behind it, as far as they have come.
    var held: [UInt8] = []
}

extension Flight {
    /// Takes bytes of the body, as far as the response has said that it holds them.
    func take(_ bytes: UnsafeRawBufferPointer) {
        guard writer != nil, !bytes.isEmpty else { return }
        if case .unchecked = expected.ahead { return takeProven(bytes) }
        takeComparing(bytes)
    }

    /// As `take`, of bytes that nothing stored has to be compared with.
    func takeProven(_ bytes: UnsafeRawBufferPointer) {
        let count = provenCount(of: bytes.count)
        gather(UnsafeRawBufferPointer(rebasing: bytes[..<count]))
        if count < bytes.count { endAtProven() }
    }

    /// How many of the next bytes lie within what the response has said it holds.
    private func provenCount(of count: Int) -> Int {
        guard let end = expected.end, let writer else { return count }
        return Int(max(0, min(Int64(count), end - writer.offset - Int64(gathered.bytes.count))))
    }

    /// Ends a transfer that goes on behind the end of what it said it holds.
    func endAtProven() {
        dropTransfer()
        flush()
        settleWrites()
        guard machine.isFilling else { return }
        perform(machine.wasWhole(now: table.loop.now))
    }

    /// Compares bytes with the stored ones.
    ///
    /// - Returns: the bytes behind those that are compared, or none.
    func compare(_ bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        guard let next = machine.comparison, let known = object ?? terms.rest else { return bytes }
        let count = Int(min(Int64(bytes.count), next.start - next.position))
        let compared = UnsafeRawBufferPointer(rebasing: bytes[..<count])
        let areSame = Self.agree(compared, with: known, at: next.position)
        perform(machine.compared(Int64(count), areSame: areSame))
        return UnsafeRawBufferPointer(rebasing: areSame ? bytes[count...] : bytes[..<0])
    }

    /// True where the bytes of an object agree, as far as it has them; those that cannot be read do not.
    static func agree(
        _ bytes: UnsafeRawBufferPointer, with object: StoredObject, at offset: Int64
    ) -> Bool {
        let end = offset + Int64(bytes.count)
        let present = SpanSet(
            object.spans.ranges.compactMap { range in
                let part = range.clamped(to: offset..<end)
                return part.isEmpty ? nil : part
            })
        for range in present.ranges {
            guard
                let stored = try? object.readBody(from: range.lowerBound, count: range.count),
                stored.elementsEqual(
                    bytes[Int(range.lowerBound - offset)..<Int(range.upperBound - offset)])
            else { return false }
        }
        return true
    }

    /// Takes bytes up to the next stored ones, and compares these before any reader gets there.
    func takeComparing(_ bytes: UnsafeRawBufferPointer) {
        var rest = bytes
        while !rest.isEmpty, let object, let writer {
            if case .meeting(let meeting) = expected.ahead {
                guard let left = keepBack(rest, of: meeting, for: object) else { return }
                rest = left
                continue
            }
            let position = writer.offset + Int64(gathered.bytes.count)
            if let end = expected.end, position >= end {
                // Of what was asked for to be compared nothing is left to do.
                if let receivedEnd = expected.receivedEnd,
                    position + Int64(rest.count) <= receivedEnd
                {
                    return
                }
                return takeProven(rest)
            }
            guard let next = object.firstPresent(from: position),
                next.lowerBound <= position + Int64(rest.count)
            else { return takeProven(rest) }
            guard next.lowerBound > position else {
                // Compared before, and written over.
                let known = min(rest.count, next.count)
                takeProven(UnsafeRawBufferPointer(rebasing: rest[..<known]))
                rest = UnsafeRawBufferPointer(rebasing: rest[known...])
                continue
            }
            let safe = Int(next.lowerBound - 1 - position)
            if safe > 0 { takeProven(UnsafeRawBufferPointer(rebasing: rest[..<safe])) }
            rest = UnsafeRawBufferPointer(rebasing: rest[safe...])
            let known = (expected.receivedEnd ?? object.total ?? .max) - next.lowerBound
            let count = min(StoredBody.mostCompared, Int64(next.count), known)
            // The last byte of the hole is asked for again, with some behind it.
            guard count > 0 else { return endAtProven() }
            expected.ahead = .meeting(Meeting(start: next.lowerBound, count: Int(count)))
        }
    }

    /// Keeps bytes back until there are enough to compare.
    ///
    /// - Returns: what comes behind these; nil where the flight has ended.
    private func keepBack(
        _ bytes: UnsafeRawBufferPointer, of meeting: Meeting, for object: StoredObject
    ) -> UnsafeRawBufferPointer? {
        var next = meeting
        let count = min(bytes.count, 1 + next.count - next.held.count)
        next.held += bytes[..<count]
        expected.ahead = .meeting(next)
        guard next.held.count == 1 + next.count else {
            return UnsafeRawBufferPointer(rebasing: bytes[count...])
        }
        expected.ahead = .checked
        let isSame = next.held.withUnsafeBytes { held in
            Self.agree(
                UnsafeRawBufferPointer(rebasing: held[1...]), with: object, at: next.start)
        }
        guard isSame else {
            perform(machine.isOtherVersion())
            return nil
        }
        let end = expected.end ?? .max
        let taken = Int(min(Int64(next.held.count), max(1, end - next.start + 1)))
        next.held.withUnsafeBytes { takeProven(UnsafeRawBufferPointer(rebasing: $0[..<taken])) }
        return UnsafeRawBufferPointer(rebasing: bytes[count...])
    }

    // MARK: Without a validator

    /// Whether a response without any validator may go into the object that it was asked for.
    ///
    /// Equal lengths prove nothing. Where it meets stored bytes later, these are compared before a
    /// reader can get from the ones to the others; where nothing is stored, there is nothing to mix.
    func isProvenLater(
        _ candidate: StoredObject, _ head: StoredHead, _ placement: Placement
    ) -> Bool {
        let (start, total) = (placement.start, placement.total)
        guard candidate === object, mayBeSame(candidate, head, total: total) else { return false }
        if candidate.presentBytes == 0 { return !isFilledByOthers(candidate) }
        guard let next = candidate.firstPresent(from: start), next.lowerBound > start else {
            return false
        }
        return (placement.receivedEnd ?? total ?? 0) > next.lowerBound
    }

    /// An object that this response may or may not belong to and that has to be kept: others fill
    /// it, or the response can be compared with it by asking again.
    func rival(_ head: StoredHead, total: Int64?) -> StoredObject? {
        let known = [object].compactMap { $0 }
        let others = table.flights(of: resource.key).lazy.compactMap(\.object)
        let filled = (known + others).first {
            isRival($0, head, total: total) && isFilledByOthers($0)
        }
        guard filled == nil, machine.mayAskAgain else { return filled }
        // What was stored since this flight asked is not its own object yet.
        let stored = object?.isDiscarded == false ? nil : table.store.peek(resource.key)
        return (known + [stored].compactMap { $0 }).first {
            isRival($0, head, total: total) && $0.presentBytes > 0
                && (hasNewNeighbour($0) || machine.waitsForRivals && isAwaitedBefore($0))
        }
    }

    /// Whether to ask again for the sake of a rival, instead of passing the response on.
    ///
    /// A player does not wait for others; but one request more is better than to drop what was stored
    /// beside its bytes while it waited for the first.
    func asksAgain(for rival: StoredObject) -> Bool {
        machine.waitsForRivals || machine.mayAskAgain && !isFilledByOthers(rival)
    }

    private func isRival(_ known: StoredObject, _ head: StoredHead, total: Int64?) -> Bool {
        known.isStorable && !known.isDiscarded && mayBeSame(known, head, total: total)
    }

    /// Whether bytes next to the wanted ones were stored after this flight had asked.
    private func hasNewNeighbour(_ known: StoredObject) -> Bool {
        guard machine.asksWithoutProof else { return false }
        let body = StoredBody(spans: known.spans, total: known.total)
        return body.before(machine.wanted) != 0 || body.behind(machine.wanted) != 0
    }

    /// Whether another flight is to bring bytes of an object that lie before the wanted ones.
    ///
    /// Only flights for earlier bytes count, so that one of several always goes on.
    private func isAwaitedBefore(_ known: StoredObject) -> Bool {
        let start = machine.wanted.start
        return table.flights(of: resource.key).contains {
            $0 !== self && ($0.object == nil || $0.object === known) && !$0.machine.isOpaque
                && ($0.position ?? .max) < start
        }
    }

    private func mayBeSame(_ known: StoredObject, _ head: StoredHead, total: Int64?) -> Bool {
        guard resource.kind == nil, let total, known.total == total,
            let stored = ObjectFacts.of(known)?.head, !stored.isPlaylist
        else { return false }
        return ![stored, head].contains {
            $0.fields.contains(.etag) || $0.fields.contains(.lastModified)
                || $0.status == .partialContent
        }
    }

    private func isFilledByOthers(_ known: StoredObject) -> Bool {
        table.flights(of: resource.key).contains {
            $0 !== self && $0.object === known && $0.hasFill
        }
    }

    /// What other flights have done for a fetch ahead that waits for them.
    var others: FlightMachine.Others {
        guard let known = object, !known.isDiscarded else { return .discarded }
        if case .present = known.state(at: machine.wanted.start) { return .filled }
        if (compared?.before(machine.wanted) ?? 0) != 0 { return .done }
        if isFilledByOthers(known) { return .busy }
        guard machine.waitsForRivals, known.presentBytes > 0 else { return .done }
        if isAwaitedBefore(known) { return .busy }
        return (compared?.behind(machine.wanted) ?? 0) != 0 ? .done : .gone
    }
}
