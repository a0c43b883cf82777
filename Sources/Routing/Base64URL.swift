import URISyntax

/// Base64 with the URL-safe alphabet and no padding (RFC 4648 section 5).
package enum Base64URL {
    private static let alphabet = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    /// The bytes left over after whole groups of three.
    package struct Carry: Sendable {
        /// The bytes, the first one in the highest of 48 bits.
        let bits: UInt64
        /// At most two.
        let count: Int

        package static let none = Carry(bits: 0, count: 0)

        /// Takes the bytes left over from `bytes`.
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

    /// Appends the encoding of `input` after whole groups of bytes that left `carry`.
    package static func append(
        _ input: Span<UInt8>, after carry: Carry, to output: inout [UInt8]
    ) {
        let length = ((carry.count + input.count) * 8 + 5) / 6
        // Appending nothing would write the count that all empty arrays share, racing with other
        // threads.
        guard length > 0 else { return }
        var place = output.count
        let end = place + length
        output.append(addingCapacity: length) { $0.append(repeating: 0, count: length) }
        var text = output.mutableSpan
        var index = 0
        if carry.count > 0 {
            let bits = carry.bits | word(of: input, at: 0) >> UInt64(8 * carry.count)
            write(bits, to: &text, at: place, upTo: end)
            index = 6 - carry.count
            place &+= 8
        }
        while place < end {
            write(word(of: input, at: index), to: &text, at: place, upTo: end)
            index &+= 6
            place &+= 8
        }
    }

    /// Returns six bytes, the first in the highest of 48 bits, with zeros after the end.
    @inline(__always)
    private static func word(of input: Span<UInt8>, at index: Int) -> UInt64 {
        guard index &+ 8 <= input.count else { return lastWord(of: input, at: index) }
        return EightBytes.load(input, at: index).byteSwapped >> 16
    }

    private static func lastWord(of input: Span<UInt8>, at index: Int) -> UInt64 {
        guard index < input.count else { return 0 }
        if input.count >= 8 {
            // Bytes before the index are shifted out.
            let start = input.count &- 8
            let word = EightBytes.load(input, at: start).byteSwapped
            return (word << UInt64(8 * (index &- start))) >> 16
        }
        var bits: UInt64 = 0
        for offset in 0..<6 {
            let place = index &+ offset
            bits = bits << 8 | (place < input.count ? UInt64(input[place]) : 0)
        }
        return bits
    }

    /// Writes the eight characters of six bytes, or as many as there is room for before `end`.
    @inline(__always)
    private static func write(
        _ bits: UInt64, to text: inout MutableSpan<UInt8>, at place: Int, upTo end: Int
    ) {
        var characters = characters(of: bits)
        guard place &+ 8 <= end else {
            for index in place..<end {
                text[index] = UInt8(truncatingIfNeeded: characters)
                characters >>= 8
            }
            return
        }
        EightBytes.store(characters, in: &text, at: place)
    }

    private static let ones: UInt64 = 0x0101_0101_0101_0101

    /// Returns the eight characters of 48 bits, the first one in the lowest byte.
    @inline(__always)
    private static func characters(of bits: UInt64) -> UInt64 {
        // Six bits into each byte, in three steps: halves, quarters, eighths.
        var values = bits & 0xFF_FFFF | (bits & 0xFFFF_FF00_0000) << 8
        values = values & 0x0000_0FFF_0000_0FFF | (values & 0x00FF_F000_00FF_F000) << 4
        values = values & 0x003F_003F_003F_003F | (values & 0x0FC0_0FC0_0FC0_0FC0) << 2
        // `A` to `Z`, `a` to `z`, `0` to `9`, `-` and `_` begin where the sums change.
        let sums =
            values &+ 65 &* ones &+ 6 &* reach(26, values) &+ 49 &* reach(63, values)
        return (sums &- 75 &* reach(52, values) &- 13 &* reach(62, values)).byteSwapped
    }

    /// Returns 1 in each byte that is at least `least`; all bytes are below 64.
    @inline(__always)
    private static func reach(_ least: UInt64, _ values: UInt64) -> UInt64 {
        (values &+ (128 &- least) &* ones) >> 7 & ones
    }

    /// Decodes a text; nil for characters outside the alphabet, an impossible length, or stray bits
    /// at the end: each value has exactly one spelling.
    package static func decode(_ text: some Collection<UInt8>) -> [UInt8]? {
        decode(Array(text).span)
    }

    /// Decodes a text that is contiguous in memory.
    package static func decode(_ text: Span<UInt8>) -> [UInt8]? {
        let over = text.count % 4
        // A single character does not hold a whole byte.
        guard over != 1 else { return nil }
        let values = Self.values.span
        var isText = true
        var bytes: [UInt8] = []
        bytes.append(addingCapacity: text.count / 4 * 3 + 2) { bytes in
            var all: UInt32 = 0
            var index = 0
            while index &+ 4 <= text.count {
                let first = UInt32(values[Int(text[index])])
                let second = UInt32(values[Int(text[index &+ 1])])
                let third = UInt32(values[Int(text[index &+ 2])])
                let fourth = UInt32(values[Int(text[index &+ 3])])
                all |= first | second | third | fourth
                let group = first << 18 | second << 12 | third << 6 | fourth
                bytes.append(UInt8(truncatingIfNeeded: group >> 16))
                bytes.append(UInt8(truncatingIfNeeded: group >> 8))
                bytes.append(UInt8(truncatingIfNeeded: group))
                index &+= 4
            }
            var group: UInt32 = 0
            while index < text.count {
                let value = UInt32(values[Int(text[index])])
                all |= value
                group = group << 6 | value
                index &+= 1
            }
            if over > 1 { bytes.append(UInt8(truncatingIfNeeded: group >> (over == 2 ? 4 : 10))) }
            if over > 2 { bytes.append(UInt8(truncatingIfNeeded: group >> 2)) }
            // Set bits after the last whole byte would be another spelling.
            let stray = over == 2 ? group & 0xF : group & 3
            isText = all <= 0x3F && (over == 0 || stray == 0)
        }
        return isText ? bytes : nil
    }

    /// The value of each character; 255 for those outside the alphabet.
    private static let values: [UInt8] = {
        var values = [UInt8](repeating: .max, count: 256)
        for (value, character) in alphabet.enumerated() { values[Int(character)] = UInt8(value) }
        return values
    }()
}
