// CRC-32C (RFC 3720, appendix B.4), with the processor's instruction if it has one.
import CLinux

/// Returns the CRC-32C of bytes, continuing from that of the bytes before them; about 25 GB a
/// second.
package func crc32c(_ bytes: UnsafeRawBufferPointer, after first: UInt32 = 0) -> UInt32 {
    clinux_crc32c(first, bytes.baseAddress, bytes.count)
}

/// Returns the CRC-32C of an array.
package func crc32c(_ bytes: [UInt8]) -> UInt32 {
    bytes.withUnsafeBytes { crc32c($0) }
}

/// Returns the same as `crc32c`, without the processor's instruction.
package func softwareCRC32C(_ bytes: UnsafeRawBufferPointer) -> UInt32 {
    clinux_crc32c_software(0, bytes.baseAddress, bytes.count)
}

/// Returns the CRC-32C of two adjacent ranges, from their CRCs and the second's length in bytes.
package func joinedCRC32C(_ first: UInt32, _ second: UInt32, secondCount: Int) -> UInt32 {
    clinux_crc32c_joined(first, second, UInt64(secondCount))
}
