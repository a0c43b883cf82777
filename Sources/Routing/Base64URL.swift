import URISyntax

/// Base64 with the URL-safe alphabet and no padding (RFC 4648 section 5).
package enum Base64URL {
    /// Room for texts, copied faster than it is filled.
    private static let room = [UInt8](repeating: 0, count: 2048)

    /// Bytes that were left over from whole groups of three.
    package struct Carry: Sendable {
        /// The bytes, the first one in the highest of 48 bits.
        let bits: UInt64
        /// At most two.
        let count: Int

        package static let none = Carry(bits: 0, count: 0)

        /// What is left over of `bytes`.
        package init(of bytes: [UInt8]) {
            let rest = bytes.suffix(bytes.count % 3)
            let bits = rest.reduce(0) { $0 << 8 | UInt64($1) }
            self.init(bits: bits << UInt64(48 - 8 * rest.count), count: rest.count)
        }

        private init(bits: UInt64, count: Int) {
            self.bits = bits
            self.count = count
        }
    }

    /// Appends the encoding of `bytes`.
    package static func append(_ bytes: [UInt8], to output: inout [UInt8]) {
        append(bytes.span, after: .none, to: &output)
    }

    /// Appends the encoding of `input` behind whole groups of bytes that left `carry`.
    package static func append(
        _ input: Span<UInt8>, after carry: Carry, to output: inout [UInt8]
    ) {
        let start = output.count
        let length = ((carry.count + input.count) * 8 + 5) / 6
        // Room first, then stores of eight characters; those beyond the end are cut off again.
        let groups = (length + 7) / 8
        reserve(groups * 8, in: &output)
        var text = output.mutableSpan
        var index = 0
        for group in 0..<groups {
            let bits: UInt64
            if group == 0, carry.count > 0 {
                bits = carry.bits | word(of: input, at: 0) >> UInt64(8 * carry.count)
                index = 6 - carry.count
            } else {
                bits = word(of: input, at: index)
                index &+= 6
            }
            write(characters(of: bits), to: &text, at: start &+ group &* 8)
        }
        output.removeLast(groups * 8 - length)
    }

    /// Six bytes, the first in the highest of 48 bits, zeros behind the end.
    @inline(__always)
    private static func word(of input: Span<UInt8>, at index: Int) -> UInt64 {
        guard index &+ 8 <= input.count else { return lastWord(of: input, at: index) }
        return EightBytes.load(input, at: index).byteSwapped >> 16
    }

    private static func lastWord(of input: Span<UInt8>, at index: Int) -> UInt64 {
        var bits: UInt64 = 0
        for offset in 0..<6 {
            let place = index &+ offset
            bits = bits << 8 | (place < input.count ? UInt64(input[place]) : 0)
        }
        return bits
    }

    /// The eight characters of six bytes, the first in the low byte.
    @inline(__always)
    private static func characters(of bits: UInt64) -> UInt64 {
        // Six bits to a byte, by halves: 24, 12, 6.
        var values = bits >> 24 | (bits & 0xFF_FFFF) << 32
        values = values >> 12 & 0x0000_0FFF_0000_0FFF | (values & 0x0000_0FFF_0000_0FFF) << 16
        values = values >> 6 & 0x003F_003F_003F_003F | (values & 0x003F_003F_003F_003F) << 8
        return values &+ offsets(of: values)
    }

    /// What is added to each of eight values below 64 to give its character.
    ///
    /// A value plus what is missing to 128 sets the high bit of its byte where it reaches a limit.
    @inline(__always)
    private static func offsets(of values: UInt64) -> UInt64 {
        let ones: UInt64 = 0x0101_0101_0101_0101
        let lower = (values &+ ones &* (128 - 26)) >> 7 & ones
        let digit = (values &+ ones &* (128 - 52)) >> 7 & ones
        let dash = (values &+ ones &* (128 - 62)) >> 7 & ones
        let underscore = (values &+ ones &* (128 - 63)) >> 7 & ones
        // A at 65, a at 97 - 26, 0 at 48 - 52, - at 45 - 62, _ at 95 - 63, each from the one before.
        return ones &* 65 &+ lower &* 6 &- digit &* 75 &- dash &* 13 &+ underscore &* 49
    }

    @inline(__always)
    private static func write(
        _ characters: UInt64, to text: inout MutableSpan<UInt8>, at place: Int
    ) {
        // The last one first, so that the compiler need not check the others.
        precondition(place >= 0)
        for offset in (0..<8).reversed() {
            text[place + offset] = UInt8(truncatingIfNeeded: characters >> UInt64(8 * offset))
        }
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
