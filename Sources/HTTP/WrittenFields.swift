/// Field lines that were checked and written once, to be sent again and again as they are.
///
/// Answers from a store differ from one request to the next in a field or two; checking and writing
/// all the others anew costs more than the rest of a short answer.
package struct WrittenFields: Sendable, Equatable {
    /// The lines, each with its CRLF.
    private(set) var bytes: [UInt8]
    /// Whether `Date` is among them.
    package let isDated: Bool

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
        let checked = value.span
        for index in checked.indices where !ASCII.isFieldValue(checked[index]) {
            throw .invalidValue(name: name.spelling)
        }
        bytes.append(contentsOf: name.spelling.utf8)
        bytes.append(ASCII.colon)
        bytes.append(ASCII.space)
        bytes.append(contentsOf: value)
        appendLineEnd(to: &bytes)
    }

    /// As above, of text.
    package mutating func append(_ name: FieldName, _ value: String) throws(ResponseHeadError) {
        try append(name, Array(value.utf8)[...])
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

    /// These lines, and after them others; nil where there are none of them.
    package func adding(_ others: WrittenFields?) -> WrittenFields? {
        others.map {
            WrittenFields(bytes: bytes + $0.bytes, isDated: isDated || $0.isDated)
        }
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
