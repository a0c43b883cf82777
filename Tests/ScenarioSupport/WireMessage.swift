// The scenarios' own small HTTP/1.1: heads, fields and framing of bodies, independent of the
// daemon's.

/// The head of a request or response.
package struct WireHead: Sendable, CustomStringConvertible {
    package typealias Field = (name: String, value: String)

    /// The first line, without its line end.
    package let startLine: String
    package let fields: [Field]
    /// As received, with the empty line.
    package let bytes: [UInt8]

    /// Parses a head that ends in an empty line; throws if a line is not a field.
    package init(_ bytes: [UInt8]) throws {
        self.bytes = bytes
        var lines = bytes.split(separator: 0x0A, omittingEmptySubsequences: false).map {
            String(decoding: $0.last == 0x0D ? $0.dropLast() : $0, as: UTF8.self)
        }[...]
        startLine = lines.popFirst() ?? ""
        var fields: [Field] = []
        for line in lines where !line.isEmpty {
            guard let colon = line.firstIndex(of: ":"), colon != line.startIndex else {
                throw ScenarioFailure("no header field: \(line)")
            }
            let value = line[line.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
            fields.append((String(line[..<colon]), String(value)))
        }
        self.fields = fields
    }

    /// The words of the first line, three at most.
    private var words: [Substring] {
        startLine.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
    }

    /// Of a request: its method.
    package var method: String { String(words.first ?? "") }
    /// Of a request: its target as sent.
    package var target: String { words.count > 1 ? String(words[1]) : "" }
    /// Of a request: its target without the query.
    package var path: String { String(target.prefix { $0 != "?" }) }
    /// Of a response: its status, 0 when the line has none.
    package var status: Int { words.count > 1 ? Int(words[1]) ?? 0 : 0 }

    /// The value of the first field of that name.
    package subscript(name: String) -> String? { all(name).first }

    /// The values of all fields of that name, in order.
    package func all(_ name: String) -> [String] {
        fields.filter { $0.name.lowercased() == name.lowercased() }.map(\.value)
    }

    /// Whether the connection continues after this message.
    var keepsAlive: Bool {
        let connection = (self["Connection"] ?? "").lowercased()
        if connection.contains("close") { return false }
        return !startLine.contains("HTTP/1.0") || connection.contains("keep-alive")
    }

    package var description: String { String(decoding: bytes, as: UTF8.self) }
}

/// How the end of a body is determined.
enum Framing: Equatable {
    case none
    case length(Int)
    case chunked
    case untilClose

    /// The framing of a response to a request with `method` (RFC 9112, section 6.3).
    static func ofResponse(_ head: WireHead, to method: String) throws -> Self {
        if method == "HEAD" || head.status == 204 || head.status == 304 || head.status / 100 == 1 {
            return .none
        }
        return try ofFields(head) ?? .untilClose
    }

    /// The framing of a request.
    static func ofRequest(_ head: WireHead) throws -> Self { try ofFields(head) ?? .none }

    private static func ofFields(_ head: WireHead) throws -> Self? {
        let lengths = Set(head.all("Content-Length"))
        if let coding = head["Transfer-Encoding"] {
            guard coding.lowercased() == "chunked", lengths.isEmpty else {
                throw ScenarioFailure("ambiguous framing:\n\(head)")
            }
            return .chunked
        }
        guard let text = lengths.first else { return nil }
        guard lengths.count == 1, let length = Int(text), length >= 0 else {
            throw ScenarioFailure("bad Content-Length:\n\(head)")
        }
        return .length(length)
    }
}

/// Writes a message head from its parts.
func encodeHead(_ startLine: String, _ fields: [WireHead.Field]) -> [UInt8] {
    var text = startLine + "\r\n"
    for field in fields { text += "\(field.name): \(field.value)\r\n" }
    return Array((text + "\r\n").utf8)
}
