/// The 64-bit hash FNV-1a (Fowler, Noll, Vo), for names and for tables that also compare the keys.
@usableFromInline
package struct FNV1a {
    /// The hash of all bytes taken so far.
    @usableFromInline package var value: UInt64

    /// Starts a hash, or continues from another value.
    @inlinable
    package init(from value: UInt64 = 0xCBF2_9CE4_8422_2325) { self.value = value }

    @inlinable
    package mutating func take(_ byte: UInt8) { value = (value ^ UInt64(byte)) &* 0x100_0000_01B3 }

    @inlinable
    package mutating func take(_ bytes: Span<UInt8>) {
        for index in bytes.indices { take(bytes[index]) }
    }
}
