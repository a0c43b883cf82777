/// Percent-encoding (RFC 3986 section 2.1) of bytes under a given set of allowed ones.
package enum PercentCoding {
    /// A set of ASCII bytes that need no encoding.
    package struct Allowed: Sendable, Hashable {
        private let low: UInt64
        private let high: UInt64

        /// The set of the ASCII characters in `characters`; others are left out.
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

        /// Whether the byte is in the set.
        package func contains(_ byte: UInt8) -> Bool {
            if byte < 64 { return (low >> UInt64(byte)) & 1 == 1 }
            return byte < 128 && (high >> UInt64(byte & 63)) & 1 == 1
        }

        /// The set with the characters of another one.
        package func union(_ other: Allowed) -> Allowed {
            Allowed(low: low | other.low, high: high | other.high)
        }

        /// Letters, digits and `-._~` (RFC 3986 section 2.3).
        package static let unreserved = Allowed(
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
        /// A name or value inside a query: nothing with a meaning there.
        package static let queryComponent = unreserved
        /// A registered name or address without brackets (RFC 3986 section 3.2.2).
        package static let host = unreserved.union(Allowed("!$&'()*+,;="))
        /// One path segment, `/` excluded (RFC 3986 section 3.3).
        package static let pathSegment = host.union(Allowed(":@"))
        /// A whole path.
        package static let path = pathSegment.union(Allowed("/"))
        /// A whole query (RFC 3986 section 3.4).
        package static let query = path.union(Allowed("?"))
    }

    /// The text with every byte outside `allowed` written as `%XX` in upper case.
    package static func encode(_ text: String, allowed: Allowed) -> String {
        encode(bytes: text.utf8, allowed: allowed)
    }

    /// The bytes with each one outside `allowed` written as `%XX` in upper case.
    package static func encode(bytes: some Collection<UInt8>, allowed: Allowed) -> String {
        var encoded: [UInt8] = []
        encoded.reserveCapacity(bytes.count + bytes.count / 2)
        for byte in bytes {
            if allowed.contains(byte) {
                encoded.append(byte)
            } else {
                encoded.append(ASCII.percent)
                encoded.append(upperHexDigit(byte >> 4))
                encoded.append(upperHexDigit(byte & 15))
            }
        }
        return encoded[...].text
    }

    /// The text as a name or value inside a query.
    package static func queryComponent(_ text: String) -> String {
        encode(text, allowed: .queryComponent)
    }

    /// The bytes that percent-encoded text stands for.
    ///
    /// - Parameters:
    ///   - text: What to decode.
    ///   - strict: Whether a `%` without two hexadecimal digits makes the text malformed; else it
    ///     stands for itself.
    ///   - plusAsSpace: Whether `+` stands for a space, as in HTML forms.
    /// - Returns: The bytes; nil where `strict` and malformed.
    package static func decodeBytes(
        _ text: some StringProtocol, strict: Bool = false, plusAsSpace: Bool = false
    ) -> [UInt8]? {
        decodeBytes(of: String(text).utf8.span, strict: strict, plusAsSpace)
    }

    private static func decodeBytes(
        of source: Span<UInt8>, strict: Bool, _ plusAsSpace: Bool
    ) -> [UInt8]? {
        var decoded: [UInt8] = []
        decoded.reserveCapacity(source.count)
        var index = 0
        while index < source.count {
            let byte = source[index]
            index += 1
            if byte == 0x2B, plusAsSpace {
                decoded.append(ASCII.space)
                continue
            }
            guard byte == ASCII.percent else {
                decoded.append(byte)
                continue
            }
            guard index + 1 < source.count, let high = ASCII.hexValue(source[index]),
                let low = ASCII.hexValue(source[index + 1])
            else {
                if strict { return nil }
                decoded.append(byte)
                continue
            }
            decoded.append(high << 4 | low)
            index += 2
        }
        return decoded
    }

    /// The text that percent-encoded text stands for: a malformed escape stands for itself, and
    /// what is not UTF-8 becomes U+FFFD.
    package static func decode(_ text: some StringProtocol, plusAsSpace: Bool = false) -> String {
        let text = String(text)
        let source = text.utf8.span
        var index = 0
        while index < source.count, source[index] != ASCII.percent, source[index] != 0x2B {
            index += 1
        }
        guard index < source.count else { return text }
        return (decodeBytes(of: source, strict: false, plusAsSpace) ?? [])[...].text
    }

    /// The text that percent-encoded text stands for; nil where an escape is malformed or the
    /// bytes are not UTF-8.
    package static func decodeStrictly(_ text: some StringProtocol) -> String? {
        decodeBytes(text, strict: true).flatMap { String(validating: $0, as: UTF8.self) }
    }

    private static func upperHexDigit(_ value: UInt8) -> UInt8 {
        value < 10 ? 0x30 + value : 0x41 + value - 10
    }
}
