// The lines of the access log: which fields they have, in which order, and how they are written and
// read. The page AccessLog explains each field to users.
import Numbers

/// A field of each line, in the order of the lines.
///
/// Versions before 0.5.0 wrote fewer: new fields are added at the end, and a reader takes those that
/// are missing as unknown.
package enum AccessField: Int, CaseIterable, Sendable {
    case time, method, status, bytes, duration, outcome, reason, role, title, key, offset, total,
        url
    case client, `protocol`, tls, ending

    /// The field's name on the page AccessLog.
    package var name: String { "\(self)".uppercased() }

    /// The member's name in the console's `request` events, whose times are in milliseconds.
    package var member: String {
        switch self {
        case .time: "at"
        case .duration: "ms"
        default: "\(self)"
        }
    }

    /// The fields that the first version had; no line has fewer.
    fileprivate static let fewest = AccessField.client.rawValue
}

/// The value of a field.
package enum AccessValue: Equatable, Sendable {
    /// Unknown, or not applicable.
    case unknown
    /// Without blanks and line feeds.
    case text(String)
    case number(Int64)
    case flag(Bool)
    /// A time since 1970, in milliseconds; written in seconds.
    case time(Int64)
    /// A duration in microseconds; written in milliseconds.
    case duration(Int64)

    /// Creates the value of a text that may be unknown.
    package init(_ text: String?) { self = text.map(Self.text) ?? .unknown }

    /// Creates the value of a number that may be unknown.
    package init(_ number: Int64?) { self = number.map(Self.number) ?? .unknown }

    /// The value in a line.
    package var text: String {
        switch self {
        case .unknown: "-"
        case .text(let text): text
        case .number(let number): String(number)
        case .flag(let isTrue): String(isTrue)
        case .time(let thousandths), .duration(let thousandths): Self.decimals(thousandths)
        }
    }

    /// Formats a number of thousandths as a decimal fraction.
    private static func decimals(_ thousandths: Int64) -> String {
        "\(thousandths / 1_000).\(String(thousandths % 1_000, width: 3))"
    }
}

extension AccessLine {
    /// Writes a line.
    ///
    /// - Parameters:
    ///   - named: named fields, `name=value` each, separated by blanks; nil for none.
    ///   - value: returns the value of a field.
    /// - Returns: the line, which ends with a line feed.
    package static func text(
        named: String?, _ value: (AccessField) -> AccessValue
    ) -> String {
        var text = ""
        for field in AccessField.allCases {
            text += value(field).text
            text += " "
        }
        if let named { text += named } else { text.removeLast() }
        return text + "\n"
    }
}

/// The fields of a line.
package struct AccessLine: Sendable {
    private let fields: [String]
    /// The values of the named fields, by name.
    package let named: [String: String]

    /// Parses the words of a line; nil unless it has the form of a line of the access log of any
    /// version.
    ///
    /// - Parameter words: the parts of the line between its blanks.
    package init?(_ words: [String]) {
        let most = AccessField.allCases.count
        guard words.count >= AccessField.fewest else { return nil }
        // Of the fields that later versions added, none contains this character.
        let isNamed = { (word: String) in word.utf8.contains(UInt8(ascii: "=")) }
        let end =
            words[AccessField.fewest...].firstIndex(where: isNamed) ?? words.count
        guard end <= most, words[end...].allSatisfy(isNamed) else { return nil }
        fields = Array(words[..<end])
        let pairs = words[end...].map { word in
            let sign = word.firstIndex(of: "=") ?? word.endIndex
            return (String(word[..<sign]), String(word[sign...].dropFirst()))
        }
        named = Dictionary(pairs) { first, _ in first }
    }

    /// The value of a field; nil if it is unknown or the line's version did not have it.
    package subscript(field: AccessField) -> String? {
        guard field.rawValue < fields.count, fields[field.rawValue] != "-" else { return nil }
        return fields[field.rawValue]
    }
}
