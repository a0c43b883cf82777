/// Base64 with the URL-safe alphabet and no padding (RFC 4648 section 5).
package enum Base64URL {
    private static let alphabet = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    /// Appends the encoding of `bytes`.
    package static func append(_ bytes: [UInt8], to output: inout [UInt8]) {
        let alphabet = self.alphabet
        let table = alphabet.span
        let input = bytes.span
        let start = output.count
        let groups = input.count / 3
        let rest = input.count - groups * 3
        // Room first, then stores: appending byte by byte would check the room each time.
        output.append(
            contentsOf: repeatElement(0x41, count: groups * 4 + (rest == 0 ? 0 : rest + 1)))
        var text = output.mutableSpan
        var place = start
        var index = 0
        for _ in 0..<groups {
            let group =
                UInt32(input[index]) << 16 | UInt32(input[index &+ 1]) << 8
                | UInt32(input[index &+ 2])
            text[place] = table[Int(group >> 18)]
            text[place &+ 1] = table[Int(group >> 12 & 63)]
            text[place &+ 2] = table[Int(group >> 6 & 63)]
            text[place &+ 3] = table[Int(group & 63)]
            index &+= 3
            place &+= 4
        }
        guard rest > 0 else { return }
        let last = UInt32(input[index]) << 16 | (rest == 2 ? UInt32(input[index + 1]) << 8 : 0)
        text[place] = table[Int(last >> 18)]
        text[place + 1] = table[Int(last >> 12 & 63)]
        if rest == 2 { text[place + 2] = table[Int(last >> 6 & 63)] }
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
