// Comparison of received bytes with stored ones.
//
// Without a strong validator, the heads of two versions of equal length do not differ. Therefore
// the rest of such a body is requested from a little before the first missing byte, and the overlap
// is compared with the stored bytes before anything is written. What follows a hole is compared
// likewise, see `ExpectedBody`.
import CachePolicy
import HTTP
import Model
import Reactor
import Store

extension Flight {
    /// Handles bytes of the body, up to the end that the response has stated.
    func take(_ bytes: UnsafeRawBufferPointer) {
        guard writer != nil, !bytes.isEmpty else { return }
        if let endless { return take(bytes, of: endless) }
        if case .unchecked = expected.ahead { return takeProven(bytes) }
        takeComparing(bytes)
    }

    private func take(_ bytes: UnsafeRawBufferPointer, of endless: EndlessFill) {
        guard let writer else { return }
        let end = writer.offset + Int64(gathered.bytes.count)
        endless.take(bytes, end: end, now: table.loop.now) { gather($0) }
    }

    /// Handles bytes that need no comparison with stored ones.
    private func takeProven(_ bytes: UnsafeRawBufferPointer) {
        guard let writer else { return }
        let count = expected.proven(
            of: bytes.count, at: writer.offset + Int64(gathered.bytes.count))
        gather(UnsafeRawBufferPointer(rebasing: bytes[..<count]))
        if count < bytes.count { endAtProven() }
    }

    /// Ends a transfer that continues beyond its stated end.
    private func endAtProven() {
        dropTransfer()
        flush()
        drainWrites()
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
    private func takeComparing(_ bytes: UnsafeRawBufferPointer) {
        var rest = bytes
        while !rest.isEmpty, let object, let writer {
            let position = writer.offset + Int64(gathered.bytes.count)
            let step = expected.next(
                rest.count, at: position, stored: object.firstPresent(from: position),
                total: object.total)
            switch step {
            case .skip: return
            case .end: return endAtProven()
            case .take(let count):
                takeProven(UnsafeRawBufferPointer(rebasing: rest[..<count]))
                rest = UnsafeRawBufferPointer(rebasing: rest[count...])
            case .hold(let count):
                let meeting = expected.hold(UnsafeRawBufferPointer(rebasing: rest[..<count]))
                rest = UnsafeRawBufferPointer(rebasing: rest[count...])
                if let meeting, !passes(meeting, object) { return }
            }
        }
    }

    /// Compares the bytes around the end of a hole, and hands them on if they are the same.
    ///
    /// - Returns: false if the flight has ended.
    private func passes(_ meeting: ExpectedBody.Meeting, _ object: StoredObject) -> Bool {
        meeting.held.withUnsafeBytes { held in
            guard
                Self.agree(
                    UnsafeRawBufferPointer(rebasing: held[1...]), with: object, at: meeting.start)
            else {
                perform(machine.isOtherVersion())
                return false
            }
            takeProven(UnsafeRawBufferPointer(rebasing: held[..<expected.taken(of: meeting)]))
            return true
        }
    }
}
