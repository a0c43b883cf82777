// Proof by content that a response goes on where the stored bytes end.
//
// Without a strong validator two versions of equal length cannot be told apart by their heads. So the
// rest of such a body is asked for from a little before the first byte that is missing, and what
// comes is compared with what is there before anything of it is taken.
import Model
import CachePolicy
import HTTP
import Logging
import Posix
import Store
import Upstream
import URISyntax

/// A response whose first bytes are there already, and are being compared.
struct Overlap {
    let head: TransferHead
    /// Where the next byte of the response belongs.
    var position: Int64
    /// Where the bytes begin that are wanted.
    let start: Int64
    /// What the response says of its end, and of the length of the whole.
    let end: Int64?
    let total: Int64?
}

extension Flight {
    /// The object that the rest is compared with; nil where a strong validator tells, or nothing need
    /// be told.
    var compared: StoredObject? {
        guard resource.live.growth == nil, resource.kind == nil, !revalidates, !isOpaque,
            let known = object ?? terms.rest, let head = ObjectFacts.of(known)?.head,
            head.strongValidator == nil, !head.isPlaylist
        else { return nil }
        return known
    }

    /// How many bytes before the wanted ones are asked for again.
    func chooseOverlap() -> Int64 {
        guard case .span(let start, _) = wanted, start > 0, let known = compared else { return 0 }
        let before = known.spans.ranges.last { $0.lowerBound < start && $0.upperBound >= start }
        return before.map { min(Wanted.overlapLimit, start - $0.lowerBound) } ?? 0
    }

    /// What is asked for: the wanted bytes with those that are compared.
    var rangeField: String? {
        guard overlapCount + tailCount > 0, case .span(let start, let end) = wanted else {
            return wanted.rangeField
        }
        return Wanted.span(start: start - overlapCount, end: end.map { $0 + tailCount }).rangeField
            ?? "bytes=0-"
    }

    /// Compares what a response begins with, where it begins before the wanted bytes: those just before
    /// them, or what is stored from its first byte on.
    ///
    /// - Returns: false where it does not, or there is nothing to compare.
    func beginsWithOverlap(
        _ head: TransferHead, from first: Int64, to end: Int64?, total: Int64?
    ) -> Bool {
        guard case .span(let start, _) = wanted, first < start, let known = compared,
            known.total == nil || total == nil || known.total == total,
            end ?? total ?? start >= start
        else { return false }
        var proven = start
        if !known.spans.contains(max(first, start - Wanted.overlapLimit)..<start) {
            proven = min(known.spans.contiguousEnd(from: first), first + Wanted.overlapLimit, start)
        }
        guard proven > first else { return false }
        overlap = Overlap(head: head, position: first, start: proven, end: end, total: total)
        return true
    }

    /// Compares bytes with the stored ones.
    ///
    /// - Returns: the bytes behind the overlap, or none.
    func compare(_ bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        guard var next = overlap, let known = object ?? terms.rest else { return bytes }
        let count = Int(min(Int64(bytes.count), next.start - next.position))
        let compared = UnsafeRawBufferPointer(rebasing: bytes[..<count])
        guard Self.agree(compared, with: known, at: next.position) else {
            overlap = nil
            overlapDiffers()
            return UnsafeRawBufferPointer(rebasing: bytes[..<0])
        }
        next.position += Int64(count)
        overlap = next
        if next.position == next.start { beginBehindOverlap() }
        return UnsafeRawBufferPointer(rebasing: bytes[count...])
    }

    private func beginBehindOverlap() {
        guard let proven = overlap else { return }
        overlap = nil
        isProvenRest = true
        begin(proven.head, from: proven.start, to: proven.end, total: proven.total)
        isProvenRest = false
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

    /// The origin has another version: what is stored is no good any more, and whoever has got nothing
    /// of it yet gets the new one.
    func overlapDiffers() {
        let running = transfer
        transfer = nil
        running?.cancel()
        table.log.notice(
            "another version where a body was to go on",
            metadata: ["url": "\(resource.url.redacted)"])
        object?.discard()
        guard writer == nil, !waiters.isEmpty, terms.rest == nil else {
            return fail(
                ProxyFailure(
                    .origin, .badGateway,
                    "\(resource.url.redacted): the origin has another version now"),
                cause: FillEnd.representationChanged)
        }
        object = nil
        outcome = nil
        table.counters.add(.originRetries)
        ask()
    }
}
