/// Named bytes and byte classes of US-ASCII, so that parsers never touch `Character`.
///
/// `@usableFromInline` on the type is needed to inline calls from other modules.
@usableFromInline
package enum ASCII {
    @inlinable package static var tab: UInt8 { 0x09 }
    @inlinable package static var lineFeed: UInt8 { 0x0A }
    @inlinable package static var carriageReturn: UInt8 { 0x0D }
    @inlinable package static var space: UInt8 { 0x20 }
    @inlinable package static var quote: UInt8 { 0x22 }
    @inlinable package static var percent: UInt8 { 0x25 }
    @inlinable package static var comma: UInt8 { 0x2C }
    @inlinable package static var colon: UInt8 { 0x3A }
    @inlinable package static var semicolon: UInt8 { 0x3B }
    @inlinable package static var equals: UInt8 { 0x3D }
    @inlinable package static var backslash: UInt8 { 0x5C }

    @inlinable
    package static func isDigit(_ byte: UInt8) -> Bool { byte &- 0x30 < 10 }

    @inlinable
    package static func isLetter(_ byte: UInt8) -> Bool { (byte | 0x20) &- 0x61 < 26 }

    @inlinable
    package static func isAlphanumeric(_ byte: UInt8) -> Bool {
        isDigit(byte) || isLetter(byte)
    }

    /// True for a hexadecimal digit of either case.
    @inlinable
    package static func isHexDigit(_ byte: UInt8) -> Bool {
        isDigit(byte) || (byte | 0x20) &- 0x61 < 6
    }

    /// True for C0 controls and DEL, which never occur in a URL.
    @inlinable
    package static func isControl(_ byte: UInt8) -> Bool { byte < 0x20 || byte == 0x7F }

    /// True for space and horizontal tab, the optional white space of HTTP (RFC 9110 section
    /// 5.6.3).
    @inlinable
    package static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

    /// Returns the byte with `A` to `Z` turned into `a` to `z`; other bytes are unchanged.
    @inlinable
    package static func lowercased(_ byte: UInt8) -> UInt8 {
        byte &- 0x41 < 26 ? byte | 0x20 : byte
    }

    /// Returns the value of a hexadecimal digit of either case, or nil.
    @inlinable
    package static func hexValue(_ byte: UInt8) -> UInt8? {
        if isDigit(byte) { return byte &- 0x30 }
        let letter = byte | 0x20
        return letter &- 0x61 < 6 ? letter &- 0x61 &+ 10 : nil
    }

    /// Returns the upper-case hexadecimal digit of the low four bits.
    @inlinable
    package static func hexDigit(_ value: UInt8) -> UInt8 {
        let nibble = value & 0x0F
        return nibble < 10 ? 0x30 &+ nibble : 0x37 &+ nibble
    }

    /// Returns the text with ASCII letters in lower case; other characters are unchanged.
    @inlinable
    package static func lowercased(_ text: some StringProtocol) -> String {
        // Most names are already in lower case.
        guard text.utf8.contains(where: { lowercased($0) != $0 }) else { return String(text) }
        return String(decoding: text.utf8.map { lowercased($0) }, as: UTF8.self)
    }

    /// True if two byte sequences are equal, ignoring the case of ASCII letters.
    @inlinable
    package static func equalIgnoringCase(_ left: Span<UInt8>, _ right: Span<UInt8>) -> Bool {
        let count = left.count
        guard count == right.count else { return false }
        guard count >= 8 else {
            for index in left.indices where lowercased(left[index]) != lowercased(right[index]) {
                return false
            }
            return true
        }
        var index = 0
        while index < count {
            // The last eight bytes overlap those before them.
            let place = min(index, count &- 8)
            let (one, other) = (EightBytes.load(left, at: place), EightBytes.load(right, at: place))
            guard one == other || EightBytes.lowercased(one) == EightBytes.lowercased(other) else {
                return false
            }
            index &+= 8
        }
        return true
    }

    /// True if two texts are equal, ignoring the case of ASCII letters.
    @inlinable
    package static func equalIgnoringCase(_ left: String, _ right: String) -> Bool {
        equalIgnoringCase(left.utf8.span, right.utf8.span)
    }
}
