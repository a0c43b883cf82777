import Numbers
import URISyntax

/// Field lines that were checked and written once, to be sent again and again as they are.
///
/// Answers from a store differ from one request to the next in a field or two; checking and writing
/// all the others anew costs more than the rest of a short answer.
package struct WrittenFields: Sendable, Equatable {
    /// The lines, each with its CRLF.
    private(set) var bytes: [UInt8]
    /// Whether `Date` is among them.
    package private(set) var isDated: Bool

    /// Lines that were written before, and room for more behind them.
    ///
    /// - Parameters:
    ///   - count: the bytes that there is room for behind `lines`.
    ///   - lines: what goes before all others.
    package init(reserving count: Int, behind lines: WrittenFields) {
        bytes = []
        bytes.reserveCapacity(lines.bytes.count + count)
        bytes.append(contentsOf: lines.bytes)
        isDated = lines.isDated
    }

    /// No lines yet, and room for so many bytes of them.
    package init(reserving count: Int) {
        bytes = []
        bytes.reserveCapacity(count)
        isDated = false
    }

    /// Writes one more line, without making fields first; `Date` and those that frame a message are
    /// not for here.
    ///
    /// - Throws: Where the value is ill-formed; the lines are then as before.
    package mutating func append(
        _ name: FieldName, _ value: ArraySlice<UInt8>
    ) throws(ResponseHeadError) {
        try check(value.span, name)
        bytes.append(contentsOf: name.lineStart)
        bytes.append(contentsOf: value)
        appendLineEnd(to: &bytes)
    }

    /// As above, of text.
    package mutating func append(_ name: FieldName, _ value: String) throws(ResponseHeadError) {
        try check(value.utf8.span, name)
        bytes.append(contentsOf: name.lineStart)
        bytes.append(contentsOf: value.utf8)
        appendLineEnd(to: &bytes)
    }

    /// As above, of a number.
    package mutating func append(_ name: FieldName, _ number: Int64) {
        bytes.append(contentsOf: name.lineStart)
        appendDecimal(number, to: &bytes)
        appendLineEnd(to: &bytes)
    }

    /// Writes lines that were written before.
    package mutating func append(_ others: WrittenFields) {
        bytes.append(contentsOf: others.bytes)
        isDated = isDated || others.isDated
    }

    private func check(_ value: Span<UInt8>, _ name: FieldName) throws(ResponseHeadError) {
        guard ASCII.areFieldValue(value) else { throw .invalidValue(name: name.spelling) }
    }

    /// Writes the fields, except those that speak of one connection or frame one message: these
    /// are the server's.
    ///
    /// - Throws: Where a name or a value is ill-formed.
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

    /// These lines, and after them those of more fields.
    func adding(_ fields: Fields) throws(ResponseHeadError) -> WrittenFields {
        let more = try WrittenFields(fields)
        return WrittenFields(bytes: bytes + more.bytes, isDated: isDated || more.isDated)
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
    /// Checks and writes all fields, so that the head can be sent again and again at no cost.
    ///
    /// - Throws: Where a field is ill-formed; the head is then as before.
    package mutating func writeFields() throws(ResponseHeadError) {
        guard let lines = written else {
            written = try WrittenFields(fields)
            fields = Fields()
            return
        }
        written = try lines.adding(fields)
        fields = Fields()
    }
}
