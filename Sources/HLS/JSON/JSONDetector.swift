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

    private var scanner: JSONScanner
    /// The most members; documents of HLS have a handful, and others are rejected.
    private static let maximumCount = 64

    init(_ body: [UInt8]) { scanner = JSONScanner(document: body) }

    /// Returns the members; nil if the document is not an object or is truncated.
    mutating func members() -> [String: Kind]? {
        guard scanner.take(0x7B) else { return nil }
        var members: [String: Kind] = [:]
        if scanner.take(0x7D) { return members }
        while members.count < Self.maximumCount {
            guard let name = scanner.string(), scanner.take(0x3A), let kind = value() else {
                return nil
            }
            members[String(decoding: JSONText.unescape(scanner.body[name]), as: UTF8.self)] = kind
            if scanner.take(0x7D) { return members }
            guard scanner.take(0x2C) else { return nil }
        }
        return nil
    }

    /// Skips a value, including nested ones, without recursion.
    private mutating func value() -> Kind? {
        if scanner.isNext(0x22) { return scanner.string() == nil ? nil : .string }
        let kind: Kind
        if scanner.isNext(0x7B) {
            kind = .object
        } else if scanner.isNext(0x5B) {
            kind = .array
        } else {
            return scanner.scalar() ? .scalar : nil
        }
        var depth = 0
        repeat {
            guard !scanner.isAtEnd else { return nil }
            switch scanner.body[scanner.cursor] {
            case 0x22:
                guard scanner.string() != nil else { return nil }
                continue
            case 0x7B, 0x5B: depth += 1
            case 0x7D, 0x5D: depth -= 1
            default: break
            }
            scanner.cursor += 1
        } while depth > 0
        return kind
    }
}
