// Byte classes of HTTP (RFC 9110 section 5.6).
// Public, because these functions are inlined into other targets.
public import URISyntax

extension ASCII {
    /// True if the byte may occur in a `token` (RFC 9110 section 5.6.2).
    @inlinable
    package static func isToken(_ byte: UInt8) -> Bool {
        // Two 64-bit sets instead of a table: no global to initialise, no bounds check.
        let low: UInt64 = 0x03FF_6CFA_0000_0000
        let high: UInt64 = 0x57FF_FFFF_C7FF_FFFE
        if byte < 64 { return (low >> UInt64(byte)) & 1 == 1 }
        return byte < 128 && (high >> UInt64(byte & 63)) & 1 == 1
    }

    /// True if the byte may occur in a field value: visible, obs-text, space or tab (RFC 9110
    /// section 5.5).
    @inlinable
    package static func isFieldValue(_ byte: UInt8) -> Bool {
        (byte >= 0x20 && byte != 0x7F) || byte == 0x09
    }

    /// Returns a word with the high bit set in each byte of `EightBytes.load` that is a control
    /// character, including tab.
    ///
    /// The high bits are cleared first, so that no sum carries into the next byte.
    @inlinable
    package static func controls(in word: UInt64) -> UInt64 {
        let ones: UInt64 = 0x0101_0101_0101_0101
        let low = word & (ones &* 0x7F)
        let isBelowBlank = ~(low &+ ones &* (0x80 - 0x20))
        let isDelete = low &+ ones
        return (isBelowBlank | isDelete) & ~word & (ones &* 0x80)
    }

    /// Returns a word with the high bit set in each byte of `EightBytes.load` that equals `byte`,
    /// which must be below 128.
    static func places(of byte: UInt8, in word: UInt64) -> UInt64 {
        let ones: UInt64 = 0x0101_0101_0101_0101
        let low = (word & (ones &* 0x7F)) ^ (ones &* UInt64(byte))
        // The XOR is zero for the byte, and its sum then stays below 128.
        let others = low &+ ones &* 0x7F
        return ~(others | word) & (ones &* 0x80)
    }

    /// True if all bytes may occur in a field value.
    static func areFieldValue(_ bytes: Span<UInt8>) -> Bool {
        var index = 0
        while index < bytes.count {
            if index &+ 8 <= bytes.count,
                controls(in: EightBytes.load(bytes, at: index)) == 0
            {
                index &+= 8
                continue
            }
            guard isFieldValue(bytes[index]) else { return false }
            index &+= 1
        }
        return true
    }
}

extension ArraySlice<UInt8> {
    /// Returns the bytes without optional white space at either end.
    func trimmingOWS() -> ArraySlice<UInt8> {
        var part = self
        while let byte = part.first, ASCII.isBlank(byte) { part.removeFirst() }
        while let byte = part.last, ASCII.isBlank(byte) { part.removeLast() }
        return part
    }

    /// The bytes as text; invalid UTF-8 becomes U+FFFD.
    var text: String {
        String(decoding: self, as: UTF8.self)
    }
}
