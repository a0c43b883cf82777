/// Base64 with padding (RFC 4648 section 4), as credentials, certificates and data URIs have it.
package enum Base64 {
    private static let alphabet = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    /// Encodes bytes.
    package static func encode(_ bytes: [UInt8]) -> String {
        var output: [UInt8] = []
        var index = 0
        while index < bytes.count {
            let group = bytes[index..<min(index + 3, bytes.count)]
            let padded = Array(group) + [0, 0]
            let number = UInt32(padded[0]) << 16 | UInt32(padded[1]) << 8 | UInt32(padded[2])
            for place in 0..<4 {
                let value = Int(number >> UInt32(18 - 6 * place)) & 63
                output.append(place <= group.count ? alphabet[value] : 0x3D)
            }
            index += 3
        }
        return String(decoding: output, as: UTF8.self)
    }

    /// Decodes a text, with or without its padding; nil for characters outside the alphabet.
    package static func decode(_ text: some Sequence<UInt8>) -> [UInt8]? {
        var bytes: [UInt8] = []
        var bits: UInt32 = 0
        var count: UInt32 = 0
        for digit in text where digit != 0x3D {
            let value: UInt8
            switch digit {
            case 0x41...0x5A: value = digit - 0x41
            case 0x61...0x7A: value = digit - 0x61 + 26
            case 0x30...0x39: value = digit - 0x30 + 52
            case 0x2B: value = 62
            case 0x2F: value = 63
            default: return nil
            }
            bits = (bits << 6 | UInt32(value)) & 0xFF_FFFF
            count += 6
            guard count >= 8 else { continue }
            count -= 8
            bytes.append(UInt8(truncatingIfNeeded: bits >> count))
        }
        return bytes
    }
}
