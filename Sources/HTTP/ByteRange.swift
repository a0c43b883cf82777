import Numbers
import URISyntax

/// One range of a `Range` field, before the length of the representation is known (RFC 9110 section
/// 14.1.2).
package enum ByteRangeSpec: Sendable, Hashable {
    /// From the first to the last byte offset, both included.
    case bounded(Int64, Int64)
    /// From this byte offset to the end.
    case from(Int64)
    /// The last bytes, this many.
    case suffix(Int64)

    /// The result of parsing a request's `Range`.
    package enum Request: Sendable, Equatable {
        /// There is no `Range`.
        case none
        /// The field is ignored, so that the response is a 200.
        case ignored(reason: String)
        /// At least one range.
        case ranges([ByteRangeSpec])
    }

    /// The most ranges that are accepted in one request.
    package static let maximumCount = 64
    /// The most pairs of overlapping ranges; more can only be an attack (RFC 9110 section 14.2).
    package static let maximumOverlaps = 2

    /// Parses the `Range` of a request's fields.
    package static func parse(_ fields: Fields) -> Request {
        guard let value = fields.first(.range) else { return .none }
        guard fields.count(of: .range) == 1 else {
            return .ignored(reason: "Range is given more than once.")
        }
        return parse(value)
    }

    /// Parses the value of a `Range` field.
    ///
    /// Offsets above 2^53 - 1 are clamped to that.
    package static func parse(_ value: String) -> Request {
        // Checked before parsing: an attacker's list can be as long as a head.
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

    /// Returns the number of ranges that begin before an earlier one has ended; suffixes overlap
    /// each other.
    private static func overlaps(_ specs: [ByteRangeSpec]) -> Int {
        var bounds: [(first: Int64, last: Int64)] = []
        var suffixes = 0
        for spec in specs {
            switch spec {
            case .bounded(let first, let last): bounds.append((first, last))
            case .from(let first): bounds.append((first, Int64(ExternalNumber.largest)))
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

    /// Returns the range within a representation of `total` bytes.
    ///
    /// - Parameter total: The length in bytes, 0 or more.
    /// - Returns: At least one byte; nil if the range cannot be satisfied.
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
    /// The range as written in a `Range` field after `bytes=`.
    package var description: String {
        switch self {
        case .bounded(let first, let last): "\(first)-\(last)"
        case .from(let first): "\(first)-"
        case .suffix(let length): "-\(length)"
        }
    }
}

/// A byte range within a representation; never empty.
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
    /// The range as half-open range.
    package var range: Range<Int64> { first..<(last + 1) }
}
