import Numbers
import URISyntax

/// The status line and fields of a response (RFC 9112 section 4).
package struct ResponseHead: Sendable, Equatable {
    package var status: HTTPStatus
    package var version: HTTPVersion
    package var fields: Fields
    /// Lines that precede those of `fields`; look-ups in `fields` do not find them.
    package var written: SerializedFields?

    package init(
        status: HTTPStatus, version: HTTPVersion = .http11, fields: Fields = Fields(),
        written: SerializedFields? = nil
    ) {
        self.status = status
        self.version = version
        self.fields = fields
        self.written = written
    }
}

/// The reason why a response head cannot be written: a field could break out of its line.
package enum ResponseHeadError: Error, Sendable, Hashable {
    /// The status does not have three digits.
    case invalidStatus(UInt16)
    /// The name of a field is not a token.
    case invalidName(String)
    /// The value of the field of this name contains a control character.
    case invalidValue(name: String)
}

/// Appends the head and the empty line after it to `bytes`.
///
/// - Throws: If the status, a name or a value is malformed; `bytes` is then unchanged, so that
///   nothing in an origin's response or a URL can forge a line.
package func serialise(
    _ head: ResponseHead, into bytes: inout [UInt8]
) throws(ResponseHeadError) {
    try serialiseLines(head, into: &bytes)
    appendLineEnd(to: &bytes)
}

/// Appends the head as `serialise` does, but without the empty line, so that the caller can add
/// lines.
package func serialiseLines(
    _ head: ResponseHead, into bytes: inout [UInt8]
) throws(ResponseHeadError) {
    guard (100...999).contains(head.status.rawValue) else {
        throw .invalidStatus(head.status.rawValue)
    }
    try head.fields.checkWritable()
    if head.status == .ok, head.version != .http10 {
        bytes.append(contentsOf: usualStart)
    } else {
        bytes.append(contentsOf: head.version == .http10 ? "HTTP/1.0 ".utf8 : "HTTP/1.1 ".utf8)
        appendDecimal(Int64(head.status.rawValue), to: &bytes)
        bytes.append(ASCII.space)
        bytes.append(contentsOf: head.status.reasonPhrase.utf8)
        appendLineEnd(to: &bytes)
    }
    if let written = head.written { bytes.append(contentsOf: written.bytes) }
    head.fields.appendLines(to: &bytes)
}

private let usualStart = Array("HTTP/1.1 200 OK\r\n".utf8)

extension Fields {
    /// Checks that no field can break out of its line.
    func checkWritable() throws(ResponseHeadError) {
        if isEmpty { return }
        let bytes = storage.span
        for entry in entries {
            var isName = !entry.name.isEmpty
            for index in entry.name where !ASCII.isToken(bytes[index]) { isName = false }
            guard isName else { throw .invalidName(storage[entry.name].text) }
            guard ASCII.areFieldValue(bytes.extracting(entry.value)) else {
                throw .invalidValue(name: storage[entry.name].text)
            }
        }
    }

    /// The number of bytes of the field lines when written.
    var lineBytes: Int {
        entries.reduce(0) { $0 + $1.name.count + $1.value.count + 4 }
    }

    /// Appends the field lines, each with its CRLF.
    func appendLines(to bytes: inout [UInt8]) {
        for entry in entries {
            bytes.append(contentsOf: storage[entry.name])
            bytes.append(ASCII.colon)
            bytes.append(ASCII.space)
            bytes.append(contentsOf: storage[entry.value])
            appendLineEnd(to: &bytes)
        }
    }
}

/// Appends CRLF.
func appendLineEnd(to bytes: inout [UInt8]) {
    bytes.append(ASCII.carriageReturn)
    bytes.append(ASCII.lineFeed)
}
