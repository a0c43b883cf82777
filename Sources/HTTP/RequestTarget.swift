import URISyntax

/// The raw parts of a request target (RFC 9112 section 3.2).
///
/// A fragment, which clients must not send but some do, is part of neither path nor query.
struct RequestTarget {
    /// The whole target.
    private let target: String
    /// The ranges of the parts in the bytes of the target.
    private let authorityRange: Range<Int>?
    private let pathRange: Range<Int>
    private let queryRange: Range<Int>?

    init(_ target: String) {
        self.target = target
        let bytes = target.utf8.span
        var index = 0
        if let start = RequestTarget.authorityStart(target) {
            index = start
            while index < bytes.count, !Self.endsAuthority(bytes[index]) { index += 1 }
            authorityRange = start..<index
        } else {
            authorityRange = nil
        }
        let pathStart = index
        while index < bytes.count, bytes[index] != 0x3F, bytes[index] != 0x23 { index += 1 }
        pathRange = pathStart..<index
        guard index < bytes.count, bytes[index] == 0x3F else {
            queryRange = nil
            return
        }
        let queryStart = index + 1
        while index < bytes.count, bytes[index] != 0x23 { index += 1 }
        queryRange = queryStart..<index
    }

    /// The authority of an absolute-form, nil for the other forms.
    var authority: String? { authorityRange.map { target.part($0) } }

    var path: String { pathRange.isEmpty ? "/" : target.part(pathRange) }

    var query: String? { queryRange.map { target.part($0) } }

    private static func endsAuthority(_ byte: UInt8) -> Bool {
        byte == 0x2F || byte == 0x3F || byte == 0x23
    }

    /// Returns the byte offset of the authority of an `http` or `https` absolute-form, nil for
    /// other forms.
    private static func authorityStart(_ target: String) -> Int? {
        // Nearly all targets are in origin-form.
        guard target.utf8.first != 0x2F else { return nil }
        for scheme in ["http://", "https://"] {
            let head = String(decoding: target.utf8.prefix(scheme.utf8.count), as: UTF8.self)
            if ASCII.equalIgnoringCase(head, scheme) { return scheme.utf8.count }
        }
        return nil
    }

    /// Returns the fault of a target for this method, nil if it is valid.
    static func fault(of target: String, method: HTTPMethod) -> String? {
        if method == .connect {
            return target.utf8.first == 0x2F ? "A CONNECT target must be host:port." : nil
        }
        if target.utf8.first == 0x2F { return nil }
        if target == "*" {
            return method == .options ? nil : "The target * is for OPTIONS alone."
        }
        guard let authority = RequestTarget(target).authority else {
            return "The request target is neither a path nor an http URL."
        }
        if authority.isEmpty { return "The request target names no host." }
        return isHost(authority.utf8.span) ? nil : "The host in the request target is malformed."
    }

    /// True if the bytes can be a `uri-host [ ":" port ]` (RFC 3986 section 3.2.2) without user
    /// information; an empty host is valid.
    static func isHost(_ bytes: Span<UInt8>) -> Bool {
        // Fast path for names and IPv4 addresses, with or without a port.
        var end = 0
        while end < bytes.count, isNameByte(bytes[end]) { end += 1 }
        if end == bytes.count { return true }
        if end > 0, bytes[end] == ASCII.colon {
            for index in (end + 1)..<bytes.count where !ASCII.isDigit(bytes[index]) { return false }
            return true
        }
        let allowed = PercentCoding.Allowed.host
        var inBrackets = false
        var isClosed = false
        var inPort = false
        for offset in bytes.indices {
            let byte = bytes[offset]
            switch byte {
            case 0x5B where offset == 0:  // [
                inBrackets = true
            case 0x5D where inBrackets:  // ]
                inBrackets = false
                isClosed = true
            case ASCII.colon where inBrackets:
                continue
            case ASCII.colon where !inPort && offset > 0:
                inPort = true
            case _ where inPort:
                guard ASCII.isDigit(byte) else { return false }
            default:
                guard !isClosed,
                    allowed.contains(byte) || byte == ASCII.percent
                else { return false }
            }
        }
        return !inBrackets
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        ASCII.isLetter(byte) || ASCII.isDigit(byte) || byte == 0x2D || byte == 0x2E
    }
}

/// One `name=value` of a query, stored raw.
package struct QueryItem: Sendable, Hashable {
    /// The name as sent.
    package let rawName: String
    /// The text after the first `=` as sent; nil without `=`.
    package let rawValue: String?

    package init(rawName: String, rawValue: String?) {
        self.rawName = rawName
        self.rawValue = rawValue
    }

    /// Parses the items of a query without its `?`, in order; empty items are skipped.
    package static func items(of query: String) -> [QueryItem] {
        let bytes = query.utf8.span
        var items: [QueryItem] = []
        var start = 0
        while start < bytes.count {
            var equals: Int?
            var end = start
            while end < bytes.count, bytes[end] != 0x26 {
                if bytes[end] == ASCII.equals, equals == nil { equals = end }
                end += 1
            }
            if end > start {
                items.append(
                    QueryItem(
                        rawName: query.part(start..<(equals ?? end)),
                        rawValue: equals.map { query.part(($0 + 1)..<end) }))
            }
            start = end + 1
        }
        return items
    }

    /// Returns the name percent-decoded; a malformed escape is unchanged.
    ///
    /// With `plusAsSpace`, `+` means a space, as in HTML forms.
    package func name(plusAsSpace: Bool = false) -> String {
        PercentCoding.decode(rawName, plusAsSpace: plusAsSpace)
    }

    /// Returns the value percent-decoded, empty without one; a malformed escape is unchanged.
    ///
    /// With `plusAsSpace`, `+` means a space, as in HTML forms.
    package func value(plusAsSpace: Bool = false) -> String {
        PercentCoding.decode(rawValue ?? "", plusAsSpace: plusAsSpace)
    }
}

extension String {
    /// Returns the text of a range of bytes, which must begin and end at character boundaries.
    func part(_ range: Range<Int>) -> String {
        let start = utf8.index(utf8.startIndex, offsetBy: range.lowerBound)
        return String(Substring(utf8[start..<utf8.index(start, offsetBy: range.count)]))
    }
}
