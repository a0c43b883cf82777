// Comparison of received bytes with stored ones, and responses that have no validator at all.
//
// Without a strong validator, the heads of two versions of equal length do not differ. Therefore
// the rest of such a body is requested from a little before the first missing byte, and the overlap
// is compared with the stored bytes before anything is written.
//
// Likewise, the bytes that fill a hole may be of another version than those after it. Therefore the
// request for a hole extends a little beyond it, the flight holds back the last byte of the hole,
// compares what follows it with the stored bytes, and only then lets readers pass.
import CachePolicy
import HTTP
import Model
import Reactor
import Store

/// The bytes around the end of a hole while they are compared.
struct Meeting {
    /// Where the stored bytes begin.
    let start: Int64
    /// How many of them are compared.
    let count: Int
    /// The last byte of the hole and those after it, as far as received.
    var held: [UInt8] = []
}

extension Flight {
    /// Handles bytes of the body, up to the end that the response has stated.
    func take(_ bytes: UnsafeRawBufferPointer) {
        guard writer != nil, !bytes.isEmpty else { return }
        if case .unchecked = expected.ahead { return takeProven(bytes) }
        takeComparing(bytes)
    }

    /// Handles bytes that need no comparison with stored ones.
    func takeProven(_ bytes: UnsafeRawBufferPointer) {
        let count = provenCount(of: bytes.count)
        gather(UnsafeRawBufferPointer(rebasing: bytes[..<count]))
        if count < bytes.count { endAtProven() }
    }

    /// Returns how many of the next bytes lie before the end that the response has stated.
    private func provenCount(of count: Int) -> Int {
        guard let end = expected.end, let writer else { return count }
        return Int(max(0, min(Int64(count), end - writer.offset - Int64(gathered.bytes.count))))
    }

    /// Ends a transfer that continues beyond its stated end.
    func endAtProven() {
        dropTransfer()
        flush()
        settleWrites()
        guard machine.isFilling else { return }
        perform(machine.wasWhole(now: table.loop.now))
    }

    /// Compares bytes with the stored ones.
    ///
    /// - Returns: the bytes after the compared ones; none if they differ.
    func compare(_ bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        guard let next = machine.comparison, let known = object ?? terms.rest else { return bytes }
        let count = Int(min(Int64(bytes.count), next.start - next.position))
        let compared = UnsafeRawBufferPointer(rebasing: bytes[..<count])
        let areSame = Self.agree(compared, with: known, at: next.position)
        perform(machine.compared(Int64(count), areSame: areSame))
        return UnsafeRawBufferPointer(rebasing: areSame ? bytes[count...] : bytes[..<0])
    }

    /// Returns true if the present bytes of an object equal the given ones; unreadable bytes count
    /// as different.
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

    /// Handles bytes up to the next stored ones, and compares those before any reader gets there.
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
                // These bytes were requested only for comparison, which is done.
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
                // Already compared; written over the stored ones.
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
            // The last byte of the hole is left to another request, which extends beyond it.
            guard count > 0 else { return endAtProven() }
            expected.ahead = .meeting(Meeting(start: next.lowerBound, count: Int(count)))
        }
    }

    /// Holds bytes back until there are enough to compare.
    ///
    /// - Returns: the bytes after these; nil if the flight has ended.
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

    /// True if a response without any validator may be written into the object that the flight was
    /// started for.
    ///
    /// Equal lengths prove nothing. If the response will reach stored bytes, they are compared
    /// before a reader can pass from one to the other; if nothing is stored, nothing can be mixed.
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

    /// Returns an object that this response may belong to and that must not be discarded: other
    /// flights fill it, or another request allows comparing the response with it.
    func rival(_ head: StoredHead, total: Int64?) -> StoredObject? {
        let known = [object].compactMap { $0 }
        let others = table.flights(of: resource.key).lazy.compactMap(\.object)
        let filled = (known + others).first {
            isRival($0, head, total: total) && isFilledByOthers($0)
        }
        guard filled == nil, machine.mayAskAgain else { return filled }
        // An object stored since this flight sent its request is not the flight's own yet.
        let stored = object?.isDiscarded == false ? nil : table.store.peek(resource.key)
        return (known + [stored].compactMap { $0 }).first {
            isRival($0, head, total: total) && $0.presentBytes > 0
                && (hasNewNeighbour($0) || machine.waitsForRivals && isAwaitedBefore($0))
        }
    }

    /// True if the flight sends another request for the sake of a rival, instead of passing the
    /// response on.
    ///
    /// A player does not wait for other flights; but one more request is better than dropping what
    /// was stored next to its bytes while it waited for the first.
    func asksAgain(for rival: StoredObject) -> Bool {
        machine.waitsForRivals || machine.mayAskAgain && !isFilledByOthers(rival)
    }

    private func isRival(_ known: StoredObject, _ head: StoredHead, total: Int64?) -> Bool {
        known.isStorable && !known.isDiscarded && mayBeSame(known, head, total: total)
    }

    /// True if bytes next to the wanted ones were stored after this flight sent its request.
    private func hasNewNeighbour(_ known: StoredObject) -> Bool {
        guard machine.asksWithoutProof else { return false }
        let body = StoredBody(spans: known.spans, total: known.total)
        return body.before(machine.wanted) != 0 || body.behind(machine.wanted) != 0
    }

    /// True if another flight will fetch bytes of an object that precede the wanted ones.
    ///
    /// Only flights for earlier bytes count, so that one of several always proceeds.
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

    /// The state of other flights for an ahead fetch that waits for them.
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
