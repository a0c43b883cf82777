// The name of a stored representation: the SHA-256 digest of a text that the caller chose.

/// 32 bytes that name one object, on disk and in memory.
package struct ObjectKey: Hashable, Sendable, CustomStringConvertible {
    // Four words instead of an array: no allocation, and cheap to hash and compare.
    private let words: (UInt64, UInt64, UInt64, UInt64)

    /// Hashes the UTF-8 bytes of a text, normally the cache key's URL with its variant (FIPS
    /// 180-4).
    package init(sha256Of text: String) {
        var text = text
        self = text.withUTF8 { bytes in
            withUnsafeTemporaryAllocation(byteCount: 32, alignment: 8) { digest in
                SHA256Digest.write(of: UnsafeRawBufferPointer(bytes), into: digest)
                return ObjectKey(raw: UnsafeRawBufferPointer(digest))
            }
        }
    }

    /// Creates a key from a digest; nil unless it has 32 bytes.
    package init?(bytes: [UInt8]) {
        guard bytes.count == 32 else { return nil }
        self = bytes.withUnsafeBytes { ObjectKey(raw: $0) }
    }

    /// Parses 64 lower-case hexadecimal digits; a start parses one for each object and each row.
    package init?(hex: String) {
        var hex = hex
        let key = hex.withUTF8 { digits -> ObjectKey? in
            guard digits.count == 64, let first = Self.word(digits, 0),
                let second = Self.word(digits, 16), let third = Self.word(digits, 32),
                let fourth = Self.word(digits, 48)
            else { return nil }
            return ObjectKey(words: (first, second, third, fourth))
        }
        guard let key else { return nil }
        self = key
    }

    private init(words: (UInt64, UInt64, UInt64, UInt64)) {
        self.words = words
    }

    /// Returns the value of the 16 digits at `start`.
    private static func word(_ digits: UnsafeBufferPointer<UInt8>, _ start: Int) -> UInt64? {
        var word: UInt64 = 0
        for index in start..<(start + 16) {
            let digit = digits[index]
            let isDecimal = digit &- 0x30 < 10
            guard isDecimal || digit &- 0x61 < 6 else { return nil }
            word = word << 4 | UInt64(isDecimal ? digit &- 0x30 : digit &- 0x57)
        }
        return word
    }

    /// Creates a key from a digest of 32 raw bytes.
    init(raw bytes: UnsafeRawBufferPointer) {
        precondition(bytes.count == 32, "a key has 32 bytes")
        func word(_ index: Int) -> UInt64 {
            UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: index * 8, as: UInt64.self))
        }
        words = (word(0), word(1), word(2), word(3))
    }

    /// The digest, most significant byte first.
    package var bytes: [UInt8] {
        [UInt8](unsafeUninitializedCapacity: 32) { buffer, count in
            let raw = UnsafeMutableRawBufferPointer(buffer)
            for (index, word) in [words.0, words.1, words.2, words.3].enumerated() {
                raw.storeBytes(of: word.bigEndian, toByteOffset: index * 8, as: UInt64.self)
            }
            count = 32
        }
    }

    /// 64 lower-case hexadecimal digits.
    package var hex: String {
        String(unsafeUninitializedCapacity: 64) { buffer in
            writeHex(into: buffer)
            return 64
        }
    }

    /// Writes the 64 digits; a miss needs several for paths, so nothing is allocated.
    func writeHex(into buffer: UnsafeMutableBufferPointer<UInt8>) {
        let raw = UnsafeMutableRawBufferPointer(buffer)
        for (index, word) in [words.0, words.1, words.2, words.3].enumerated() {
            for half in 0..<2 {
                let part = UInt32(truncatingIfNeeded: word >> UInt64(32 - 32 * half))
                raw.storeBytes(
                    of: Self.digits(of: part).bigEndian, toByteOffset: index * 16 + half * 8,
                    as: UInt64.self)
            }
        }
    }

    /// Returns the eight digits of a number, the first one in the highest byte, without a loop.
    private static func digits(of number: UInt32) -> UInt64 {
        var spread = UInt64(number)
        spread = (spread | spread << 16) & 0x0000_FFFF_0000_FFFF
        spread = (spread | spread << 8) & 0x00FF_00FF_00FF_00FF
        spread = (spread | spread << 4) & 0x0F0F_0F0F_0F0F_0F0F
        // 1 in each byte that is above 9.
        let letters = (spread &+ 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101
        return spread &+ 0x3030_3030_3030_3030 &+ letters &* 0x27
    }

    package var description: String { String(hex.prefix(16)) }

    /// The first half of the digest, by which retention and the table identify the object; treated
    /// as unique.
    var name: UInt128 { UInt128(words.0) << 64 | UInt128(words.1) }

    /// The first byte, which names the object's folder.
    var firstByte: UInt8 { UInt8(truncatingIfNeeded: words.0 >> 56) }

    /// A number below 256 that selects a name lock.
    var lockBits: Int { Int(truncatingIfNeeded: words.1 >> 48 & 0xFF) }

    package static func == (a: ObjectKey, b: ObjectKey) -> Bool {
        a.words == b.words
    }

    package func hash(into hasher: inout Hasher) {
        // The digest is uniform already; one word is enough to separate keys.
        hasher.combine(words.0)
    }
}
