/// Percent-encoding (RFC 3986 section 2.1) of bytes and of text.
@usableFromInline
package enum PercentCoding {
    /// Appends `byte` as `%XX`.
    package static func append(_ byte: UInt8, to output: inout [UInt8]) {
        output.append(0x25)
        output.append(ASCII.hexDigit(byte >> 4))
        output.append(ASCII.hexDigit(byte))
    }

    /// Appends bytes with those encoded that cannot occur in a request line: blanks, controls and
    /// bytes above 0x7E.
    ///
    /// All others, including existing escapes, are copied unchanged.
    package static func appendRequestForm(
        of bytes: some Sequence<UInt8>, to output: inout [UInt8]
    ) {
        for byte in bytes {
            if byte <= 0x20 || byte >= 0x7F {
                append(byte, to: &output)
            } else {
                output.append(byte)
            }
        }
    }

    /// Returns the place of the first percent-encoded `|`; nil if there is none.
    package static func firstBar(in bytes: ArraySlice<UInt8>) -> Int? {
        bytes.indices.dropLast(2).first {
            bytes[$0] == 0x25 && bytes[$0 + 1] == 0x37 && bytes[$0 + 2] | 0x20 == 0x63
        }
    }

    // MARK: Sets of bytes

    /// A set of ASCII bytes that need no encoding.
    @usableFromInline
    package struct Allowed: Sendable, Hashable {
        @usableFromInline let low: UInt64
        @usableFromInline let high: UInt64

        /// Creates the set of the ASCII characters in `characters`; others are ignored.
        package init(_ characters: String) {
            var low: UInt64 = 0
            var high: UInt64 = 0
            for byte in characters.utf8 where byte < 128 {
                if byte < 64 { low |= 1 << UInt64(byte) } else { high |= 1 << UInt64(byte & 63) }
            }
            self.low = low
            self.high = high
        }

        private init(low: UInt64, high: UInt64) {
            self.low = low
            self.high = high
        }

        /// True if the byte is in the set.
        @inlinable
        package func contains(_ byte: UInt8) -> Bool {
            if byte < 64 { return (low >> UInt64(byte)) & 1 == 1 }
            return byte < 128 && (high >> UInt64(byte & 63)) & 1 == 1
        }

        /// Returns the union with another set.
        package func union(_ other: Allowed) -> Allowed {
            Allowed(low: low | other.low, high: high | other.high)
        }

        /// Letters, digits and `-._~` (RFC 3986 section 2.3).
        package static let unreserved = Allowed(
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
        /// A name or value in a query: no reserved characters.
        package static let queryComponent = unreserved
        /// A registered name or address without brackets (RFC 3986 section 3.2.2).
        package static let host = unreserved.union(Allowed("!$&'()*+,;="))
        /// One path segment, `/` excluded (RFC 3986 section 3.3).
        package static let pathSegment = host.union(Allowed(":@"))
        /// A whole path.
        package static let path = pathSegment.union(Allowed("/"))
    }

    /// Returns the text with every byte outside `allowed` as `%XX` in upper case.
    package static func encode(_ text: String, allowed: Allowed) -> String {
        encode(bytes: text.utf8, allowed: allowed)
    }

    /// Returns the bytes with each one outside `allowed` as `%XX` in upper case.
    package static func encode(bytes: some Collection<UInt8>, allowed: Allowed) -> String {
        var encoded: [UInt8] = []
        encoded.reserveCapacity(bytes.count + bytes.count / 2)
        for byte in bytes {
            if allowed.contains(byte) {
                encoded.append(byte)
            } else {
                append(byte, to: &encoded)
            }
        }
        return String(decoding: encoded, as: UTF8.self)
    }

    /// Encodes a text as a name or value in a query.
    package static func queryComponent(_ text: String) -> String {
        encode(text, allowed: .queryComponent)
    }

    // MARK: Decoding

    /// Decodes percent-encoded bytes; a `%` that starts no escape is unchanged.
    package static func decode(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
        decode(bytes.span, plusAsSpace: false)
    }

    private static func decode(_ source: Span<UInt8>, plusAsSpace: Bool) -> [UInt8] {
        var decoded: [UInt8] = []
        decoded.reserveCapacity(source.count)
        var index = 0
        while index < source.count {
            let byte = source[index]
            index += 1
            if byte == ASCII.percent, index + 1 < source.count,
                let high = ASCII.hexValue(source[index]),
                let low = ASCII.hexValue(source[index + 1])
            {
                decoded.append(high << 4 | low)
                index += 2
            } else {
                decoded.append(byte == 0x2B && plusAsSpace ? ASCII.space : byte)
            }
        }
        return decoded
    }

    /// Decodes percent-encoded text: a malformed escape is unchanged, and invalid UTF-8 becomes
    /// U+FFFD.
    ///
    /// - Parameters:
    ///   - text: the text to decode.
    ///   - plusAsSpace: true if `+` means a space, as in HTML forms.
    /// - Returns: the decoded text.
    @inlinable
    package static func decode(_ text: some StringProtocol, plusAsSpace: Bool = false) -> String {
        decodeText(String(text), plusAsSpace: plusAsSpace)
    }

    @usableFromInline
    package static func decodeText(_ text: String, plusAsSpace: Bool) -> String {
        let source = text.utf8.span
        var index = 0
        while index < source.count, source[index] != ASCII.percent, source[index] != 0x2B {
            index += 1
        }
        guard index < source.count else { return text }
        return String(decoding: decode(source, plusAsSpace: plusAsSpace), as: UTF8.self)
    }

    // MARK: Texts

    /// Converts bytes to text: valid UTF-8 is unchanged, every other byte becomes `%XX`, so that
    /// nothing is lost.
    package static func text(_ bytes: ArraySlice<UInt8>) -> String {
        if let valid = try? UTF8Span(validating: bytes.span) { return String(copying: valid) }
        var output: [UInt8] = []
        output.reserveCapacity(bytes.count + 16)
        var index = bytes.startIndex
        while index < bytes.endIndex {
            let length = utf8SequenceLength(bytes[index...])
            if length == 0 {
                append(bytes[index], to: &output)
                index += 1
            } else {
                output.append(contentsOf: bytes[index..<index + length])
                index += length
            }
        }
        return String(decoding: output, as: UTF8.self)
    }

    /// Returns the length of the well-formed UTF-8 sequence at the start of `bytes`, or 0.
    private static func utf8SequenceLength(_ bytes: ArraySlice<UInt8>) -> Int {
        guard let first = bytes.first else { return 0 }
        if first < 0x80 { return 1 }
        let length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2
        guard bytes.count >= length else { return 0 }
        return String(validating: bytes.prefix(length), as: UTF8.self) == nil ? 0 : length
    }
}
