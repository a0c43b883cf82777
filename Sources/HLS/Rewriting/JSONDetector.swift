import URISyntax

/// Recognizes the JSON documents of HLS where no playlist declares them.
extension JSONRewriter {
    /// Members at the top level of such documents.
    private static let marks = [
        "\"ASSETS\"", "\"PATHWAY-PRIORITY\"", "\"RELOAD-URI\"", "\"DATERANGES\"",
    ]
    .map { Array($0.utf8) }

    /// True if the first bytes of a body may be those of such a document.
    ///
    /// The bytes must begin an object and contain one of the marks.
    package static func mayBeDocumentOfHLS(_ start: [UInt8]) -> Bool {
        guard let first = start.first(where: { !JSONText.isBlank($0) }), first == 0x7B else {
            return false
        }
        return marks.contains { mark in start.indices.contains { start[$0...].starts(with: mark) } }
    }

    /// True if a whole body is an asset list (8216bis, appendix D), a schedule of date ranges or a
    /// steering manifest (8216bis, 7.2).
    package static func isDocumentOfHLS(_ body: [UInt8]) -> Bool {
        guard body.count <= maximumLength else { return false }
        var outline = JSONOutline(body)
        guard let members = outline.members() else { return false }
        if members["ASSETS"] == .array || members["DATERANGES"] == .array { return true }
        return members["VERSION"] == .scalar
            && (members["PATHWAY-PRIORITY"] == .array || members["PATHWAY-CLONES"] == .array
                || (members["TTL"] == .scalar && members["RELOAD-URI"] == .string))
    }
}

/// The members at the top level of a JSON document, each with the kind of its value.
private struct JSONOutline {
    enum Kind { case object, array, string, scalar }

    private let body: [UInt8]
    private var cursor: Int
    /// The most members; documents of HLS have a handful, and others are rejected.
    private static let maximumCount = 64

    init(_ body: [UInt8]) {
        self.body = body
        cursor = body.starts(with: PlaylistDetector.byteOrderMark) ? 3 : 0
    }

    /// Returns the members; nil if the document is not an object or is truncated.
    mutating func members() -> [String: Kind]? {
        skipBlanks()
        guard take(0x7B) else { return nil }
        var members: [String: Kind] = [:]
        if take(0x7D) { return members }
        while members.count < Self.maximumCount {
            skipBlanks()
            guard let name = string() else { return nil }
            guard take(0x3A) else { return nil }
            skipBlanks()
            guard let kind = value() else { return nil }
            members[String(decoding: JSONText.unescape(body[name]), as: UTF8.self)] = kind
            if take(0x7D) { return members }
            guard take(0x2C) else { return nil }
        }
        return nil
    }

    /// Skips a value, including nested ones, without recursion.
    private mutating func value() -> Kind? {
        guard cursor < body.count else { return nil }
        switch body[cursor] {
        case 0x22: return string() == nil ? nil : .string
        case 0x7B, 0x5B:
            let kind = body[cursor] == 0x7B ? Kind.object : .array
            var depth = 0
            repeat {
                guard cursor < body.count else { return nil }
                switch body[cursor] {
                case 0x22:
                    guard string() != nil else { return nil }
                    continue
                case 0x7B, 0x5B: depth += 1
                case 0x7D, 0x5D: depth -= 1
                default: break
                }
                cursor += 1
            } while depth > 0
            return kind
        default:
            let start = cursor
            while cursor < body.count, JSONText.isScalarByte(body[cursor]) { cursor += 1 }
            return cursor > start ? .scalar : nil
        }
    }

    private mutating func string() -> Range<Int>? {
        guard cursor < body.count, body[cursor] == 0x22 else { return nil }
        let start = cursor + 1
        cursor = start
        while cursor < body.count, body[cursor] != 0x22 {
            cursor += body[cursor] == 0x5C ? 2 : 1
        }
        guard cursor < body.count else { return nil }
        cursor += 1
        return start..<cursor - 1
    }

    private mutating func skipBlanks() {
        while cursor < body.count, JSONText.isBlank(body[cursor]) { cursor += 1 }
    }

    private mutating func take(_ byte: UInt8) -> Bool {
        skipBlanks()
        guard cursor < body.count, body[cursor] == byte else { return false }
        cursor += 1
        return true
    }
}
