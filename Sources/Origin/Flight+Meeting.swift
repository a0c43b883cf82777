// Proof by content where a hole ends, and what is done without any proof.
//
// Without a strong validator the bytes that fill a hole may be of another version than those behind
// it. So the fill asks for a little more than the hole, keeps the last byte of the hole back, compares
// what comes behind it with what is stored there, and only then lets readers pass.
import Model
import CachePolicy
import HTTP
import Posix
import Reactor
import Store
import Upstream

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
    /// How many bytes behind the wanted ones are asked for, to be compared.
    func chooseTail() -> Int64 {
        guard case .span(let start, let end?) = wanted, let known = compared,
            let stored = known.firstPresent(from: start), stored.lowerBound == end
        else { return 0 }
        return min(Wanted.overlapLimit, Int64(stored.count))
    }

    /// Takes bytes up to the next stored ones, and compares these before any reader gets there.
    func takeComparing(_ bytes: UnsafeRawBufferPointer) {
        var rest = bytes
        while !rest.isEmpty, let object, let writer {
            if meeting != nil {
                guard let left = keepBack(rest, for: object) else { return }
                rest = left
                continue
            }
            let position = writer.offset + Int64(gathered.count)
            if let provenEnd, position >= provenEnd {
                // Of what was asked for to be compared nothing is left to do.
                if let receivedEnd, position + Int64(rest.count) <= receivedEnd { return }
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
            let known = (receivedEnd ?? object.total ?? .max) - next.lowerBound
            let count = min(Wanted.overlapLimit, Int64(next.count), known)
            // The last byte of the hole is asked for again, with some behind it.
            guard count > 0 else { return endAtProven() }
            meeting = Meeting(start: next.lowerBound, count: Int(count))
        }
    }

    /// Keeps bytes back until there are enough to compare.
    ///
    /// - Returns: what comes behind these; nil where the flight has ended.
    private func keepBack(
        _ bytes: UnsafeRawBufferPointer, for object: StoredObject
    ) -> UnsafeRawBufferPointer? {
        guard var next = meeting else { return bytes }
        let count = min(bytes.count, 1 + next.count - next.held.count)
        next.held += bytes[..<count]
        meeting = next
        guard next.held.count == 1 + next.count else {
            return UnsafeRawBufferPointer(rebasing: bytes[count...])
        }
        meeting = nil
        let isSame = next.held.withUnsafeBytes { held in
            Self.agree(
                UnsafeRawBufferPointer(rebasing: held[1...]), with: object, at: next.start)
        }
        guard isSame else {
            overlapDiffers()
            return nil
        }
        let end = provenEnd ?? .max
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
        _ candidate: StoredObject, _ head: StoredHead, from start: Int64, total: Int64?
    ) -> Bool {
        guard candidate === object, mayBeSame(candidate, head, total: total) else { return false }
        if candidate.presentBytes == 0 { return !isFilledByOthers(candidate) }
        guard let next = candidate.firstPresent(from: start), next.lowerBound > start else {
            return false
        }
        return (receivedEnd ?? total ?? 0) > next.lowerBound
    }

    /// An object that others fill, and that this response may or may not belong to.
    func rival(_ head: StoredHead, total: Int64?) -> StoredObject? {
        let others = table.flights(of: resource.key).lazy.compactMap(\.object)
        return ([object].compactMap { $0 } + others).first {
            $0.isStorable && !$0.isDiscarded && isFilledByOthers($0)
                && mayBeSame($0, head, total: total)
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
            $0 !== self && $0.object === known && $0.writer != nil
        }
    }

    // MARK: Ahead of players

    /// Asks again once the other flights are done, or have come to where this one begins: what nobody
    /// waits for yet need not be passed on unproven.
    func waitForOthers(to fill: StoredObject) {
        let running = transfer
        transfer = nil
        running?.cancel()
        state = .backingOff
        table.counters.add(.originRetries)
        object = fill
        lookForOthers(fill)
    }

    private func lookForOthers(_ known: StoredObject) {
        table.loop.schedule(after: .milliseconds(100)) { [weak self] _ in
            guard let self, state == .backingOff else { return }
            guard table.isWorthResuming(self) else { return abandon() }
            if known.isDiscarded {
                object = nil
                return askInTurn(after: .zero)
            }
            if case .present = known.state(at: wanted.start) { return answerFilled(known) }
            guard isAhead, isFilledByOthers(known), chooseOverlap() == 0 else {
                return askInTurn(after: .zero)
            }
            lookForOthers(known)
        }
    }

    /// Others have brought what was wanted.
    private func answerFilled(_ known: StoredObject) {
        let waiting = waiters
        waiters = []
        close(cause: nil)
        let outcome = FetchOutcome(isCollapsed: true, status: .ok, notStored: nil)
        for waiter in waiting { waiter.answer(.object(known, outcome), table) }
    }
}
