/// Base64 with the URL-safe alphabet and no padding (RFC 4648 section 5).
package enum Base64URL {
    private static let alphabet = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    /// The two characters of each twelve bits, the first in the low byte: half the look-ups.
    private static let pairs: [UInt16] = (0..<4096).map {
        UInt16(alphabet[$0 >> 6]) | UInt16(alphabet[$0 & 63]) << 8
    }

    /// Room for texts, copied faster than it is filled.
    private static let room = [UInt8](repeating: 0, count: 2048)

    /// Appends the encoding of `bytes`.
    package static func append(_ bytes: [UInt8], to output: inout [UInt8]) {
        let pairs = self.pairs
        let table = pairs.span
        let input = bytes.span
        let start = output.count
        let groups = input.count / 3
        let rest = input.count - groups * 3
        // Room first, then stores: appending byte by byte would check the room each time.
        reserve(groups * 4 + (rest == 0 ? 0 : rest + 1), in: &output)
        var text = output.mutableSpan
        var place = start
        var index = 0
        for _ in 0..<groups {
            let group =
                UInt32(input[index]) << 16 | UInt32(input[index &+ 1]) << 8
                | UInt32(input[index &+ 2])
            let first = table[Int(group >> 12)]
            let second = table[Int(group & 4095)]
            text[place] = UInt8(truncatingIfNeeded: first)
            text[place &+ 1] = UInt8(truncatingIfNeeded: first >> 8)
            text[place &+ 2] = UInt8(truncatingIfNeeded: second)
            text[place &+ 3] = UInt8(truncatingIfNeeded: second >> 8)
            index &+= 3
            place &+= 4
        }
        guard rest > 0 else { return }
        let last = UInt32(input[index]) << 16 | (rest == 2 ? UInt32(input[index + 1]) << 8 : 0)
        let first = table[Int(last >> 12)]
        text[place] = UInt8(truncatingIfNeeded: first)
        text[place + 1] = UInt8(truncatingIfNeeded: first >> 8)
        if rest == 2 { text[place + 2] = UInt8(truncatingIfNeeded: table[Int(last & 4095)]) }
    }

    private static func reserve(_ count: Int, in output: inout [UInt8]) {
        var left = count
        while left > 0 {
            let step = min(left, room.count)
            output.append(contentsOf: room[..<step])
            left -= step
        }
    }

    /// The bytes that the text stands for; nil for characters outside the alphabet, a length that
    /// cannot be, or stray bits at the end: each value has exactly one spelling.
    package static func decode(_ text: some Collection<UInt8>) -> [UInt8]? {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count * 3 / 4)
        var group: UInt32 = 0
        var bits = 0
        for character in text {
            guard let value = value(of: character) else { return nil }
            group = group << 6 | UInt32(value)
            bits += 6
            if bits >= 8 {
                bits -= 8
                bytes.append(UInt8(truncatingIfNeeded: group >> UInt32(bits)))
                group &= (1 << UInt32(bits)) - 1
            }
        }
        // Six bits over mean a character that carries no whole byte; set bits mean another spelling.
        guard bits < 6, group == 0 else { return nil }
        return bytes
    }

    private static func value(of character: UInt8) -> UInt8? {
        switch character {
        case 0x41...0x5A: character - 0x41
        case 0x61...0x7A: character - 0x61 + 26
        case 0x30...0x39: character - 0x30 + 52
        case 0x2D: 62
        case 0x5F: 63
        default: nil
        }
    }
}
