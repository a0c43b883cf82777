import Glibc

/// Bytes that are a pure function of a name and an offset: content for tests of any size.
enum Synthetic {
    /// The bytes of the object `name` at `range`.
    static func bytes(_ name: String, _ range: Range<Int>) -> [UInt8] {
        guard !range.isEmpty else { return [] }
        let seed = Digest.of(Array(name.utf8))
        let first = range.lowerBound / 8
        let last = (range.upperBound - 1) / 8
        var blocks = [UInt8](repeating: 0, count: (last - first + 1) * 8)
        blocks.withUnsafeMutableBytes { raw in
            for block in first...last {
                let word = mix(seed &+ UInt64(block))
                raw.storeBytes(
                    of: word.littleEndian, toByteOffset: (block - first) * 8, as: UInt64.self)
            }
        }
        let skipped = range.lowerBound - first * 8
        if skipped == 0 && blocks.count == range.count { return blocks }
        return Array(blocks[skipped..<(skipped + range.count)])
    }

    /// The finaliser of the SplitMix64 generator: neighbouring inputs give unrelated outputs.
    private static func mix(_ input: UInt64) -> UInt64 {
        var word = input &* 0x9E37_79B9_7F4A_7C15
        word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
        return word ^ (word >> 31)
    }
}

/// A 64-bit content hash for entity tags; not cryptographic.
enum Digest {
    /// The hash of all of `bytes`, eight at a time in the manner of FNV-1a.
    static func of(_ bytes: [UInt8]) -> UInt64 {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325 ^ UInt64(bytes.count)
        bytes.withUnsafeBytes { raw in
            var offset = 0
            while offset + 8 <= raw.count {
                let word = raw.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
                hash = (hash ^ UInt64(littleEndian: word)) &* 0x0000_0100_0000_01B3
                hash ^= hash >> 29
                offset += 8
            }
            while offset < raw.count {
                hash = (hash ^ UInt64(raw[offset])) &* 0x0000_0100_0000_01B3
                hash ^= hash >> 29
                offset += 1
            }
        }
        return hash
    }

    /// Sixteen hexadecimal digits.
    static func text(_ hash: UInt64) -> String {
        let digits = String(hash, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}
