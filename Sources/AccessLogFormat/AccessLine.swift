// The lines of the access log: which fields they have, in which order, and how they are written and
// read. The page AccessLog explains each field to users.

/// A field of each line, in the order of the lines.
///
/// Versions before 0.5.0 wrote fewer: new fields are added at the end, and a reader takes those that
/// are missing as unknown.
package enum AccessField: Int, CaseIterable, Sendable {
    case time, method, status, bytes, duration, outcome, reason, role, title, key, offset, total,
        url
    case client, `protocol`, tls

    /// The field's name on the page AccessLog.
    package var name: String { "\(self)".uppercased() }

    /// The fields that the first version had; no line has fewer.
    fileprivate static let fewest = AccessField.client.rawValue
}

/// Builds a line from its fields in their order.
package struct AccessLineWriter {
    /// The line so far, without a line feed.
    package private(set) var text = ""
    private var next = 0

    package init() {}

    /// Appends the next field; in debug builds, traps if it is another field's turn.
    ///
    /// - Parameters:
    ///   - field: the field.
    ///   - value: without blanks and line feeds; nil if it is unknown.
    package mutating func append(_ field: AccessField, _ value: String?) {
        assert(field.rawValue == next, "fields of the access log are written in their order")
        if next > 0 { text += " " }
        text += value ?? "-"
        next += 1
    }

    /// Appends named fields, `name=value` each, separated by blanks; they follow all others.
    package mutating func appendNamed(_ fields: String) {
        assert(next == AccessField.allCases.count, "named fields are last")
        text += " \(fields)"
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
