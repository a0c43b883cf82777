import Numbers
import URISyntax

/// The value of a `Content-Range` field in bytes (RFC 9110 section 14.4).
package enum ContentRange: Sendable, Hashable {
    /// `bytes first-last/total`; the total is nil for `*`, an unknown length.
    case satisfied(first: Int64, last: Int64, total: Int64?)
    /// `bytes */total`, in a 416.
    case unsatisfied(total: Int64)

    /// Creates the value for a part of a representation.
    package init(_ range: ResolvedRange, total: Int64?) {
        self = .satisfied(first: range.first, last: range.last, total: total)
    }

    /// Parses a value; nil if malformed, of another unit or contradictory.
    package init?(_ value: String) {
        var cursor = FieldCursor(value)
        guard ASCII.equalIgnoringCase(cursor.token().text, "bytes"), cursor.skip(ASCII.space)
        else { return nil }
        let range = cursor.take { $0 != 0x2F }
        guard cursor.skip(0x2F) else { return nil }
        let total = cursor.take { _ in true }
        var length: Int64?
        if total != [0x2A] {
            guard case .value(let number) = DecimalDigits(total) else { return nil }
            length = number
        }
        if range == [0x2A] {
            guard let length else { return nil }
            self = .unsatisfied(total: length)
            return
        }
        guard let dash = range.firstIndex(of: 0x2D),
            case .value(let first) = DecimalDigits(range[..<dash]),
            case .value(let last) = DecimalDigits(range[(dash + 1)...]),
            first <= last, last < length ?? Int64.max
        else { return nil }
        self = .satisfied(first: first, last: last, total: length)
    }

    /// Parses the field of a response; nil if absent, repeated or malformed.
    package static func parse(_ fields: Fields) -> ContentRange? {
        guard fields.count(of: .contentRange) == 1 else { return nil }
        return fields.first(.contentRange).flatMap { ContentRange($0) }
    }
}

extension ContentRange: CustomStringConvertible {
    /// The value as written in a field.
    package var description: String {
        switch self {
        case .satisfied(let first, let last, let total?): "bytes \(first)-\(last)/\(total)"
        case .satisfied(let first, let last, nil): "bytes \(first)-\(last)/*"
        case .unsatisfied(let total): "bytes */\(total)"
        }
    }
}
