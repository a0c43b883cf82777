/// A URI or relative reference split into its five components (RFC 3986, 3 and 4.1).
///
/// Splitting never fails and never changes a byte: blanks, brackets, `|` and bytes above 0x7F,
/// which players accept in playlists, are kept. Components are ranges into `bytes`.
package struct URIReference: Hashable, Sendable {
    /// The reference as given.
    package let bytes: [UInt8]
    /// The scheme without its colon; nil in a relative reference.
    package let scheme: Range<Int>?
    /// The text between `//` and the path; nil without `//`, empty in `file:///x`.
    package let authority: Range<Int>?
    /// The path; may be empty.
    package let path: Range<Int>
    /// The query without its `?`; nil without one.
    package let query: Range<Int>?
    /// The fragment without its `#`; nil without one.
    package let fragment: Range<Int>?

    package init(_ text: String) { self.init(bytes: Array(text.utf8)) }

    package init(bytes: [UInt8]) {
        var cursor = 0
        scheme = Self.scheme(in: bytes[...])
        if let scheme { cursor = scheme.upperBound + 1 }

        if cursor + 1 < bytes.count, bytes[cursor] == 0x2F, bytes[cursor + 1] == 0x2F {
            let start = cursor + 2
            cursor = start
            while cursor < bytes.count, !Self.endsAuthority(bytes[cursor]) { cursor += 1 }
            authority = start..<cursor
        } else {
            authority = nil
        }

        let pathStart = cursor
        while cursor < bytes.count, bytes[cursor] != 0x3F, bytes[cursor] != 0x23 { cursor += 1 }
        path = pathStart..<cursor

        if cursor < bytes.count, bytes[cursor] == 0x3F {
            let start = cursor + 1
            while cursor < bytes.count, bytes[cursor] != 0x23 { cursor += 1 }
            query = start..<cursor
        } else {
            query = nil
        }
        fragment = cursor < bytes.count ? cursor + 1..<bytes.count : nil
        self.bytes = bytes
    }

    /// Finds the scheme at the start of `bytes`: a letter, then letters, digits, `+`, `-`, `.`,
    /// then `:`.
    ///
    /// Returns its range without the colon, or nil for a relative reference.
    package static func scheme(in bytes: ArraySlice<UInt8>) -> Range<Int>? {
        guard let first = bytes.first, ASCII.isLetter(first) else { return nil }
        var index = bytes.startIndex + 1
        while index < bytes.endIndex {
            let byte = bytes[index]
            if byte == 0x3A { return bytes.startIndex..<index }
            guard ASCII.isAlphanumeric(byte) || byte == 0x2B || byte == 0x2D || byte == 0x2E
            else { return nil }
            index += 1
        }
        return nil
    }

    static func endsAuthority(_ byte: UInt8) -> Bool {
        byte == 0x2F || byte == 0x3F || byte == 0x23
    }
}

extension URIReference {
    /// The user information without its `@`; the last `@` of the authority ends it.
    package var userinfo: Range<Int>? {
        guard let authority, let at = bytes[authority].lastIndex(of: 0x40) else { return nil }
        return authority.lowerBound..<at
    }

    /// The host, an IPv6 literal with its brackets; nil without an authority.
    package var host: Range<Int>? {
        guard let hostAndPort else { return nil }
        return hostAndPort.lowerBound..<(portColon ?? hostAndPort.upperBound)
    }

    /// The port's digits without the colon, possibly empty; nil without a colon.
    package var port: Range<Int>? {
        guard let hostAndPort, let portColon else { return nil }
        return portColon + 1..<hostAndPort.upperBound
    }

    /// Returns the text of a component; bytes that are not UTF-8 appear as `%XX`.
    package func text(of component: Range<Int>) -> String {
        PercentCoding.text(bytes[component])
    }

    /// The whole reference as text; bytes that are not UTF-8 appear as `%XX`.
    package var text: String { PercentCoding.text(bytes[...]) }

    private var hostAndPort: Range<Int>? {
        guard let authority else { return nil }
        return (userinfo.map { $0.upperBound + 1 } ?? authority.lowerBound)..<authority.upperBound
    }

    /// The colon before the port, after the closing bracket, if there is one.
    private var portColon: Int? {
        guard let range = hostAndPort else { return nil }
        let bracket = bytes[range].lastIndex(of: 0x5D) ?? range.lowerBound
        return bytes[bracket..<range.upperBound].lastIndex(of: 0x3A)
    }
}
