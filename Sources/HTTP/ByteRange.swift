import Numbers
import URISyntax

/// One range of a `Range` field, before the length of the representation is known (RFC 9110
/// section 14.1.2).
package enum ByteRangeSpec: Sendable, Hashable {
    /// From the first to the last byte offset, both included.
    case bounded(Int64, Int64)
    /// From this byte offset to the end.
    case from(Int64)
    /// This many bytes at the end.
    case suffix(Int64)

    /// What a request's `Range` comes to.
    package enum Request: Sendable, Equatable {
        /// There is none.
        case none
        /// There is one that does not count, so that the answer is a 200.
        case ignored(reason: String)
        /// At least one range.
        case ranges([ByteRangeSpec])
    }

    /// The most ranges of one request that are looked at.
    package static let maximumCount = 64
    /// The most pairs of overlapping ranges; more can only be an attack (RFC 9110 section 14.2).
    package static let maximumOverlaps = 2

    /// Reads the `Range` of a request's fields.
    package static func parse(_ fields: Fields) -> Request {
        guard let value = fields.first(.range) else { return .none }
        guard fields.count(of: .range) == 1 else {
            return .ignored(reason: "Range is given more than once.")
        }
        return parse(value)
    }

    /// Reads the value of a `Range` field.
    ///
    /// An offset beyond 2^53 - 1 counts as that.
    package static func parse(_ value: String) -> Request {
        // Looked at before anything is read: an attack's list is as long as a head may be.
        guard value.utf8.count(where: { $0 == ASCII.comma }) < 4 * maximumCount else {
            return .ignored(reason: "There are too many ranges.")
        }
        var cursor = FieldCursor(value)
        let unit = cursor.token()
        guard cursor.skip(ASCII.equals) else {
            return .ignored(reason: "The range has no unit.")
        }
        guard ASCII.equalIgnoringCase(unit.text, "bytes") else {
            return .ignored(reason: "The range unit is not bytes.")
        }
        var specs: [ByteRangeSpec] = []
        for member in FieldCursor.members(of: cursor.take(while: { _ in true })) {
            guard let spec = spec(member) else {
                return .ignored(reason: "The range is malformed.")
            }
            guard specs.count < maximumCount else {
                return .ignored(reason: "There are too many ranges.")
            }
            specs.append(spec)
        }
        if specs.isEmpty { return .ignored(reason: "The range is empty.") }
        if overlaps(specs) > maximumOverlaps {
            return .ignored(reason: "Too many ranges overlap.")
        }
        return .ranges(specs)
    }

    private static func spec(_ member: ArraySlice<UInt8>) -> ByteRangeSpec? {
        guard let dash = member.firstIndex(of: 0x2D) else { return nil }
        let (before, after) = (member[..<dash], member[(dash + 1)...])
        if before.isEmpty { return DecimalDigits(after).saturated.map { .suffix($0) } }
        guard let first = DecimalDigits(before).saturated else { return nil }
        if after.isEmpty { return .from(first) }
        guard let last = DecimalDigits(after).saturated, first <= last else { return nil }
        return .bounded(first, last)
    }

    /// How many ranges begin before an earlier one has ended; suffixes overlap each other.
    private static func overlaps(_ specs: [ByteRangeSpec]) -> Int {
        var bounds: [(first: Int64, last: Int64)] = []
        var suffixes = 0
        for spec in specs {
            switch spec {
            case .bounded(let first, let last): bounds.append((first, last))
            case .from(let first): bounds.append((first, Int64(OutsideNumber.largest)))
            case .suffix: suffixes += 1
            }
        }
        bounds.sort { $0.first < $1.first }
        var overlaps = max(suffixes - 1, 0)
        var end: Int64 = -1
        for bound in bounds {
            if bound.first <= end { overlaps += 1 }
            end = max(end, bound.last)
        }
        return overlaps
    }

    /// The range within a representation of `total` bytes.
    ///
    /// - Parameter total: The length in bytes, 0 or more.
    /// - Returns: At least one byte; nil where the range cannot be satisfied.
    package func resolve(total: Int64) -> ResolvedRange? {
        switch self {
        case .bounded(let first, let last):
            first < total ? ResolvedRange(first: first, last: min(last, total - 1)) : nil
        case .from(let first):
            first < total ? ResolvedRange(first: first, last: total - 1) : nil
        case .suffix(let length):
            length > 0 && total > 0
                ? ResolvedRange(first: max(total - length, 0), last: total - 1) : nil
        }
    }
}

extension ByteRangeSpec: CustomStringConvertible {
    /// The range as it stands in a `Range` field after `bytes=`.
    package var description: String {
        switch self {
        case .bounded(let first, let last): "\(first)-\(last)"
        case .from(let first): "\(first)-"
        case .suffix(let length): "-\(length)"
        }
    }
}

/// A byte range that lies in a representation; it is never empty.
package struct ResolvedRange: Sendable, Hashable {
    /// The offset of the first byte.
    package let first: Int64
    /// The offset of the last byte, included.
    package let last: Int64

    /// A range of `first` to `last`, with 0 <= `first` <= `last` < 2^53.
    package init(first: Int64, last: Int64) {
        self.first = first
        self.last = last
    }

    /// The number of bytes.
    package var length: Int64 { last - first + 1 }
    /// The same range with its end excluded.
    package var range: Range<Int64> { first..<(last + 1) }
}
