import Numbers

/// An `http` or `https` URL that the daemon may fetch, kept byte for byte as given.
///
/// Parsing validates and splits; it changes nothing except that a fragment is dropped. Two URLs are
/// equal if their bytes are; `normalisedForKey` is equal for different spellings. The description
/// is redacted, so that a URL in a log reveals no secret.
package struct AbsoluteURL: Sendable {
    /// The longest URL that is accepted, in bytes.
    package static let maximumLength = 65_536

    /// The URL as given, without its fragment.
    package let bytes: [UInt8]
    package let scheme: Scheme
    /// The effective port: the one given, or the scheme's default.
    package let port: UInt16
    /// Offsets into `bytes`; see `Layout`.
    let layout: Layout

    /// The bounds of the components.
    ///
    /// Small, because playlists hold thousands of URLs.
    struct Layout: Sendable {
        /// First byte after `//`.
        var authorityStart: Int32
        /// First byte of the host; after the `@` if there is user information.
        var hostStart: Int32
        /// End of the host: the port's colon, or the end of the authority.
        var hostEnd: Int32
        /// End of the authority; the path may be empty.
        var pathStart: Int32
        /// The `?`, or the end of the URL.
        var queryMark: Int32
    }

    /// Parses `text` as an absolute URL.
    package init(_ text: String) throws(URIError) { try self.init(bytes: Array(text.utf8)) }

    /// Parses `bytes` as an absolute URL.
    ///
    /// Throws the first fault found; never blocks.
    package init(bytes: [UInt8]) throws(URIError) {
        guard bytes.count <= Self.maximumLength else {
            throw .tooLong(length: bytes.count, limit: Self.maximumLength)
        }
        let (scheme, authorityStart) = try Self.parseScheme(bytes)
        self.scheme = scheme

        var pathStart = authorityStart
        var hostStart = authorityStart
        while pathStart < bytes.count, !URIReference.endsAuthority(bytes[pathStart]) {
            if bytes[pathStart] == 0x40 { hostStart = pathStart + 1 }
            // Browsers end the authority at a backslash and other clients do not, so the host is
            // ambiguous. The text before it may be a password and is not shown.
            if bytes[pathStart] == 0x5C { throw .invalidHost("\\") }
            pathStart += 1
        }
        let hostEnd = try Self.parseHost(bytes, from: hostStart, to: pathStart)
        port = try Self.parsePort(bytes, from: hostEnd, to: pathStart) ?? scheme.defaultPort

        let (queryMark, end) = try Self.scanPath(bytes, from: authorityStart, path: pathStart)
        layout = Layout(
            authorityStart: Int32(authorityStart), hostStart: Int32(hostStart),
            hostEnd: Int32(hostEnd), pathStart: Int32(pathStart), queryMark: Int32(queryMark))
        self.bytes = end == bytes.count ? bytes : Array(bytes[..<end])
    }

    /// Creates a URL from components that have already been validated.
    init(bytes: [UInt8], scheme: Scheme, port: UInt16, layout: Layout) {
        self.bytes = bytes
        self.scheme = scheme
        self.port = port
        self.layout = layout
    }

    /// Creates a URL from bytes that are known to share `other`'s authority.
    init(bytes: [UInt8], sharingAuthorityWith other: AbsoluteURL, queryMark: Int) {
        var layout = other.layout
        layout.queryMark = Int32(queryMark)
        self.init(bytes: bytes, scheme: other.scheme, port: other.port, layout: layout)
    }

    private static func parseScheme(_ bytes: [UInt8]) throws(URIError) -> (Scheme, Int) {
        guard let range = URIReference.scheme(in: bytes[...]) else { throw .notAbsolute }
        let name = bytes[range]
        let scheme: Scheme
        guard name.count <= 5, isHTTP(name) else {
            throw .schemeNotAllowed(String(decoding: name.map(ASCII.lowercased), as: UTF8.self))
        }
        scheme = name.count == 5 ? .https : .http
        let start = range.upperBound + 3
        guard start <= bytes.count, bytes[start - 2] == 0x2F, bytes[start - 1] == 0x2F else {
            throw .noHost
        }
        return (scheme, start)
    }

    /// True if `name`, of at most five bytes, is `http` or `https` in any case.
    private static func isHTTP(_ name: ArraySlice<UInt8>) -> Bool {
        let packed = name.reduce(0 as UInt64) { $0 << 8 | UInt64(ASCII.lowercased($1)) }
        return packed == 0x68_74_74_70 || packed == 0x68_74_74_70_73
    }

    /// Validates the host and returns its end.
    private static func parseHost(
        _ bytes: [UInt8], from start: Int, to end: Int
    ) throws(URIError) -> Int {
        guard start < end, bytes[start] != 0x3A else { throw .noHost }
        if bytes[start] == 0x5B {
            guard let bracket = bytes[start..<end].firstIndex(of: 0x5D),
                HostSyntax.isIPv6(bytes[start + 1..<bracket]),
                bracket + 1 == end || bytes[bracket + 1] == 0x3A
            else { throw .invalidHost(PercentCoding.text(bytes[start..<end])) }
            return bracket + 1
        }
        var index = start
        var isASCIIName = true
        while index < end, bytes[index] != 0x3A {
            if !HostSyntax.isNameByte(bytes[index]) { isASCIIName = false }
            index += 1
        }
        if !isASCIIName, HostSyntax.asciiName(bytes[start..<index]) == nil {
            throw .invalidHost(PercentCoding.text(bytes[start..<index]))
        }
        return index
    }

    /// Parses the port after the colon at `start`; nil without a colon or digits.
    private static func parsePort(
        _ bytes: [UInt8], from start: Int, to end: Int
    ) throws(URIError) -> UInt16? {
        guard start + 1 < end else { return nil }
        let digits = bytes[start + 1..<end]
        guard let port = DecimalDigits<UInt16>(digits, upTo: .max).number, port > 0 else {
            throw .portOutOfRange(PercentCoding.text(digits))
        }
        return port
    }

    /// Rejects control bytes; returns the offsets of the query mark and of the end before the
    /// fragment.
    private static func scanPath(
        _ bytes: [UInt8], from start: Int, path: Int
    ) throws(URIError) -> (queryMark: Int, end: Int) {
        let span = bytes.span
        var queryMark: Int?
        var index = start
        while index < span.count {
            if index &+ 8 <= span.count {
                let marks = Self.marks(in: EightBytes.load(span, at: index))
                if marks == 0 {
                    index &+= 8
                    continue
                }
                index &+= marks.trailingZeroBitCount / 8
            }
            let byte = span[index]
            if ASCII.isControl(byte) { throw .controlByte(offset: index) }
            if index >= path {
                if byte == 0x23 { break }
                if byte == 0x3F, queryMark == nil { queryMark = index }
            }
            index += 1
        }
        return (queryMark ?? index, index)
    }

    /// Returns a word with the high bit set in each byte that is a control byte, `#` or `?`.
    ///
    /// The high bits are cleared first, so that no sum carries into the next byte.
    private static func marks(in word: UInt64) -> UInt64 {
        let ones: UInt64 = 0x0101_0101_0101_0101
        let low = word & (ones &* 0x7F)
        // The XOR is zero for the byte that is sought, and its sum then stays below 128.
        let notHash = (low ^ (ones &* 0x23)) &+ ones &* 0x7F
        let notQuery = (low ^ (ones &* 0x3F)) &+ ones &* 0x7F
        let notBelowBlank = low &+ ones &* (0x80 - 0x20)
        let isDelete = low &+ ones
        let marks = ~(notHash & notQuery & notBelowBlank) | isDelete
        return marks & ~word & (ones &* 0x80)
    }
}

extension AbsoluteURL: Hashable {
    package static func == (left: AbsoluteURL, right: AbsoluteURL) -> Bool {
        left.bytes == right.bytes
    }

    package func hash(into hasher: inout Hasher) {
        // Eight bytes at a time: the hash of an array feeds it byte by byte.
        let span = bytes.span
        var index = 0
        while index &+ 8 <= span.count {
            hasher.combine(EightBytes.load(span, at: index))
            index &+= 8
        }
        var rest: UInt64 = 0
        while index < span.count {
            rest = rest << 8 | UInt64(span[index])
            index &+= 1
        }
        hasher.combine(rest)
        hasher.combine(span.count)
    }
}

extension AbsoluteURL: CustomStringConvertible {
    /// The redacted form; use `text` for the URL itself.
    package var description: String { redacted }
}
