import URISyntax

/// Strings and byte classes of JSON (RFC 8259).
package enum JSONText {
    /// Returns the members of an object whose values are strings, in the order of the text; nil for
    /// any other text, and for an object with nested values.
    package static func stringMembers(
        of text: ArraySlice<UInt8>
    ) -> [(name: [UInt8], value: [UInt8])]? {
        var scanner = JSONScanner(Array(text))
        guard scanner.take(0x7B) else { return nil }
        var members: [(name: [UInt8], value: [UInt8])] = []
        repeat {
            guard let name = scanner.string(), scanner.take(0x3A) else { return nil }
            if let value = scanner.string() {
                members.append((unescape(scanner.body[name]), unescape(scanner.body[value])))
            } else {
                _ = scanner.scalar()
            }
        } while scanner.take(0x2C)
        guard scanner.take(0x7D) else { return nil }
        scanner.skipBlanks()
        return scanner.isAtEnd ? members : nil
    }

    static func isBlank(_ byte: UInt8) -> Bool {
        byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D
    }

    /// True for bytes of numbers, `true`, `false` and `null`; the tokens themselves are left to
    /// players to check.
    static func isScalarByte(_ byte: UInt8) -> Bool {
        ASCII.isAlphanumeric(byte) || byte == 0x2B || byte == 0x2D || byte == 0x2E
    }

    /// Appends `text` with quotes, backslashes and control characters escaped.
    static func append(_ text: [UInt8], to output: inout [UInt8]) {
        for byte in text {
            if byte == 0x22 || byte == 0x5C {
                output.append(0x5C)
                output.append(byte)
            } else if byte < 0x20 {
                output.append(contentsOf: "\\u00".utf8)
                output.append(ASCII.hexDigit(byte >> 4))
                output.append(ASCII.hexDigit(byte))
            } else {
                output.append(byte)
            }
        }
    }

    /// Unescapes the content of a string literal; a malformed escape loses only its backslash.
    static func unescape(_ inside: ArraySlice<UInt8>) -> [UInt8] {
        guard inside.contains(0x5C) else { return Array(inside) }
        var output: [UInt8] = []
        var index = inside.startIndex
        while index < inside.endIndex {
            guard inside[index] == 0x5C, index + 1 < inside.endIndex else {
                output.append(inside[index])
                index += 1
                continue
            }
            let escape = inside[index + 1]
            if escape == 0x75, let (scalar, end) = scalar(at: index, in: inside) {
                output.append(contentsOf: String(scalar).utf8)
                index = end
            } else {
                output.append(simple(escape))
                index += 2
            }
        }
        return output
    }

    private static func simple(_ escape: UInt8) -> UInt8 {
        switch escape {
        case 0x62: 0x08
        case 0x66: 0x0C
        case 0x6E: 0x0A
        case 0x72: 0x0D
        case 0x74: 0x09
        default: escape
        }
    }

    /// Decodes the `\uXXXX` at `index`, or a surrogate pair of them; returns the scalar and its
    /// end.
    private static func scalar(
        at index: Int, in inside: ArraySlice<UInt8>
    ) -> (Unicode.Scalar, Int)? {
        guard let first = unit(at: index, in: inside) else { return nil }
        if let scalar = Unicode.Scalar(first) { return (scalar, index + 6) }
        guard first < 0xDC00, let second = unit(at: index + 6, in: inside),
            (0xDC00..<0xE000).contains(second)
        else { return nil }
        let value = 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00)
        return Unicode.Scalar(value).map { ($0, index + 12) }
    }

    private static func unit(at index: Int, in inside: ArraySlice<UInt8>) -> UInt32? {
        guard index + 6 <= inside.endIndex, inside[index] == 0x5C, inside[index + 1] == 0x75
        else { return nil }
        var value: UInt32 = 0
        for byte in inside[index + 2..<index + 6] {
            guard let digit = ASCII.hexValue(byte) else { return nil }
            value = value << 4 | UInt32(digit)
        }
        return value
    }
}
