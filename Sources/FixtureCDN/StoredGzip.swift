/// A gzip stream of stored blocks: valid for every decoder, without compression (RFC 1951, 3.2.4).
enum StoredGzip {
    /// `bytes` as one gzip member (RFC 1952).
    static func encode(_ bytes: [UInt8]) -> [UInt8] {
        var out: [UInt8] = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 0xFF]
        var offset = 0
        repeat {
            let count = min(bytes.count - offset, 65_535)
            out.append(offset + count == bytes.count ? 1 : 0)
            append(UInt16(count), to: &out)
            append(~UInt16(count), to: &out)
            out += bytes[offset..<(offset + count)]
            offset += count
        } while offset < bytes.count
        append(checksum(bytes), to: &out)
        append(UInt32(truncatingIfNeeded: bytes.count), to: &out)
        return out
    }

    private static func append<Word: FixedWidthInteger>(_ word: Word, to out: inout [UInt8]) {
        for shift in stride(from: 0, to: Word.bitWidth, by: 8) {
            out.append(UInt8(truncatingIfNeeded: word >> Word(shift)))
        }
    }

    /// CRC-32 as RFC 1952, section 8 defines it.
    private static func checksum(_ bytes: [UInt8]) -> UInt32 {
        var crc: UInt32 = 0xFFFF_FFFF
        for byte in bytes {
            crc = table[Int((crc ^ UInt32(byte)) & 0xFF)] ^ (crc >> 8)
        }
        return ~crc
    }

    private static let table: [UInt32] = (0..<256).map { index in
        (0..<8).reduce(UInt32(index)) { word, _ in
            word & 1 == 1 ? 0xEDB8_8320 ^ (word >> 1) : word >> 1
        }
    }
}
