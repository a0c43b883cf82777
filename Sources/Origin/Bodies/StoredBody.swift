// The comparison of a response with stored bytes: which ones, and whether they are the same.
import Glibc
import Model
import Posix
import Store

/// A stored body for comparison with a response.
struct StoredBody: Equatable {
    /// The most bytes that are compared.
    static let mostCompared = Wanted.overlapLimit

    let spans: SpanSet
    var total: Int64?

    /// Returns how many bytes before the wanted ones are requested again for comparison.
    func before(_ wanted: Wanted) -> Int64 {
        guard case .span(let start, _) = wanted, start > 0 else { return 0 }
        let before = spans.ranges.last { $0.lowerBound < start && $0.upperBound >= start }
        return before.map { min(Self.mostCompared, start - $0.lowerBound) } ?? 0
    }

    /// Returns how many bytes after the wanted ones are requested for comparison.
    func behind(_ wanted: Wanted) -> Int64 {
        guard case .span(let start, let end?) = wanted,
            let stored = spans.ranges.first(where: { $0.upperBound > start }),
            max(stored.lowerBound, start) == end
        else { return 0 }
        return min(Self.mostCompared, stored.upperBound - end)
    }

    /// Returns the end of the bytes at the beginning of a response that are compared: those just
    /// before the wanted ones or, if they are not all stored, those stored from the first byte of
    /// the response on.
    ///
    /// - Returns: nil if the response does not begin before the wanted bytes, or there is nothing
    ///   to compare.
    func provenStart(of response: Placement, wanted start: Int64) -> Int64? {
        let first = response.start
        guard first < start, total == nil || response.total == nil || total == response.total,
            response.last ?? start >= start
        else { return nil }
        var proven = start
        if !spans.contains(max(first, start - Self.mostCompared)..<start) {
            proven = min(spans.contiguousEnd(from: first), first + Self.mostCompared, start)
        }
        return proven > first ? proven : nil
    }
}

extension StoredObject {
    /// Removes present bytes that cannot be read, or that an unclean stop has spoiled: they say
    /// nothing about the origin's version, and are fetched again like others that are missing.
    ///
    /// - Returns: true if there were any.
    func removeDamaged(in range: Range<Int64>) -> Bool {
        var place = range.lowerBound
        var hasRemoved = false
        while let present = firstPresent(from: place), present.lowerBound < range.upperBound {
            place = present.lowerBound
            // Compares them with their checksum if that is due.
            guard case .present(let sound) = state(at: place) else {
                hasRemoved = true
                continue
            }
            do throws(SystemError) {
                let bytes = try readBody(
                    from: place, count: Int(min(sound, range.upperBound - place)))
                if bytes.isEmpty { throw SystemError("pread", code: EIO, subject: "short file") }
                place += Int64(bytes.count)
            } catch {
                noteUnreadable(at: place, error)
                hasRemoved = true
            }
        }
        return hasRemoved
    }

    /// Returns true if the present bytes of the object equal the given ones; unreadable bytes count
    /// as different.
    func agrees(with bytes: UnsafeRawBufferPointer, at offset: Int64) -> Bool {
        let given = offset..<offset + Int64(bytes.count)
        for range in spans.ranges where range.overlaps(given) {
            let part = range.clamped(to: given)
            guard let stored = try? readBody(from: part.lowerBound, count: part.count),
                stored.elementsEqual(
                    bytes[Int(part.lowerBound - offset)..<Int(part.upperBound - offset)])
            else { return false }
        }
        return true
    }
}
