/// A request as the sample CDN reads it from the wire.
struct WireRequest {
    let method: String
    /// As sent.
    let target: String
    /// The decoded path, without query.
    let path: String
    let query: QueryArguments
    /// 0 or 1.
    let minorVersion: Int
    let fields: [(name: String, value: String)]

    /// The first field of that name.
    subscript(field: String) -> String? { fields.first { sameName($0.name, field) }?.value }

    /// Whether the client keeps the connection open after the response.
    var keepsAlive: Bool {
        let connection = self["Connection"]?.lowercased() ?? ""
        return minorVersion == 1 ? !connection.contains("close") : connection.contains("keep-alive")
    }

    /// The number of content bytes that follow the head; nil if it cannot be determined.
    var contentLength: Int? {
        if self["Transfer-Encoding"] != nil { return nil }
        guard let text = self["Content-Length"] else { return 0 }
        return Int(text)
    }

    /// Parses a head without its empty line; nil if it is not an HTTP/1 request.
    init?(head: ArraySlice<UInt8>) {
        var lines = head.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)[...]
        guard let first = lines.popFirst() else { return nil }
        let parts = Self.text(first).split(separator: " ")
        guard parts.count == 3, parts[2].hasPrefix("HTTP/1."),
            let minor = Int(parts[2].dropFirst(7))
        else { return nil }
        method = String(parts[0])
        target = String(parts[1])
        minorVersion = min(minor, 1)
        var fields: [(name: String, value: String)] = []
        for line in lines {
            let text = Self.text(line)
            guard !text.isEmpty else { continue }
            guard let colon = text.firstIndex(of: ":") else { return nil }
            fields.append((String(text[..<colon]), trimmed(text[text.index(after: colon)...])))
        }
        self.fields = fields
        let halves = Self.originForm(parts[1])
            .split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        guard let path = percentDecoded(halves[0]), path.hasPrefix("/") else { return nil }
        self.path = path
        query = QueryArguments(halves.count > 1 ? halves[1] : "")
    }

    /// Drops scheme and authority, which a client sends to a proxy (RFC 9112, 3.2.2).
    private static func originForm(_ target: Substring) -> Substring {
        guard target.hasPrefix("http://") else { return target }
        let rest = target.dropFirst(7)
        return rest.firstIndex(of: "/").map { rest[$0...] } ?? "/"
    }

    private static func text(_ line: ArraySlice<UInt8>) -> String {
        String(decoding: line.last == UInt8(ascii: "\r") ? line.dropLast() : line, as: UTF8.self)
    }
}
