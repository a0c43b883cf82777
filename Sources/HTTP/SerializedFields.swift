import Numbers
import URISyntax

/// Field lines that are validated and written once, and sent many times.
///
/// Responses from a store differ between requests in one or two fields; validating and writing all
/// the others each time costs more than the rest of a short response.
package struct SerializedFields: Sendable, Equatable {
    /// The lines, each with its CRLF.
    private(set) var bytes: [UInt8]
    /// True if `Date` is among them.
    package private(set) var isDated: Bool

    /// Creates lines that begin with existing ones, with capacity for more.
    ///
    /// - Parameters:
    ///   - count: the capacity in bytes after `lines`.
    ///   - lines: the existing lines, which come first.
    package init(reserving count: Int, behind lines: SerializedFields) {
        bytes = []
        bytes.reserveCapacity(lines.bytes.count + count)
        bytes.append(contentsOf: lines.bytes)
        isDated = lines.isDated
    }

    /// Creates an empty value with a capacity in bytes.
    package init(reserving count: Int) {
        bytes = []
        bytes.reserveCapacity(count)
        isDated = false
    }

    /// Appends one line directly from its value; not for `Date` and the fields that frame a
    /// message.
    ///
    /// - Throws: If the value is malformed; the lines are then unchanged.
    package mutating func append(
        _ name: FieldName, _ value: ArraySlice<UInt8>
    ) throws(ResponseHeadError) {
        try check(value.span, name)
        bytes.append(contentsOf: name.lineStart)
        bytes.append(contentsOf: value)
        appendLineEnd(to: &bytes)
    }

    /// Appends one line with a text.
    package mutating func append(_ name: FieldName, _ value: String) throws(ResponseHeadError) {
        try check(value.utf8.span, name)
        bytes.append(contentsOf: name.lineStart)
        bytes.append(contentsOf: value.utf8)
        appendLineEnd(to: &bytes)
    }

    /// Appends one line with a number.
    package mutating func append(_ name: FieldName, _ number: Int64) {
        bytes.append(contentsOf: name.lineStart)
        appendDecimal(number, to: &bytes)
        appendLineEnd(to: &bytes)
    }

    /// Appends lines that are already written.
    package mutating func append(_ others: SerializedFields) {
        bytes.append(contentsOf: others.bytes)
        isDated = isDated || others.isDated
    }

    private func check(_ value: Span<UInt8>, _ name: FieldName) throws(ResponseHeadError) {
        guard ASCII.areFieldValue(value) else { throw .invalidValue(name: name.spelling) }
    }

    /// Writes the fields, except those that concern one connection or frame one message: the server
    /// adds these.
    ///
    /// - Throws: If a name or a value is malformed.
    package init(_ fields: Fields) throws(ResponseHeadError) {
        var kept = fields
        for name in Self.framing where kept.contains(name) { kept.remove(name) }
        try kept.checkWritable()
        var lines: [UInt8] = []
        lines.reserveCapacity(kept.lineBytes)
        kept.appendLines(to: &lines)
        bytes = lines
        isDated = kept.contains(.date)
    }

    /// Returns these lines followed by those of more fields.
    func adding(_ fields: Fields) throws(ResponseHeadError) -> SerializedFields {
        let more = try SerializedFields(fields)
        return SerializedFields(bytes: bytes + more.bytes, isDated: isDated || more.isDated)
    }

    private init(bytes: [UInt8], isDated: Bool) {
        self.bytes = bytes
        self.isDated = isDated
    }

    private static let framing: [FieldName] = [
        .connection, .keepAlive, .transferEncoding, .contentLength,
    ]
}

extension ResponseHead {
    /// Validates and writes all fields, so that the head can be sent many times at no cost.
    ///
    /// - Throws: If a field is malformed; the head is then unchanged.
    package mutating func writeFields() throws(ResponseHeadError) {
        guard let lines = written else {
            written = try SerializedFields(fields)
            fields = Fields()
            return
        }
        written = try lines.adding(fields)
        fields = Fields()
    }
}
