/// Reads and writes eight bytes of a text in one step, for loops that scan or copy many.
@usableFromInline
package enum EightBytes {
    /// Returns bytes `index` to `index + 7`, the first one in the lowest bits.
    ///
    /// Traps if they are out of bounds.
    @inlinable
    @inline(__always)
    package static func load(_ span: Span<UInt8>, at index: Int) -> UInt64 {
        let bytes = span.extracting(index..<index &+ 8)
        // Repeats the check, so that the single bytes are not checked and become one load.
        precondition(bytes.count == 8)
        let low =
            UInt32(bytes[0]) | UInt32(bytes[1]) << 8 | UInt32(bytes[2]) << 16
            | UInt32(bytes[3]) << 24
        let high =
            UInt32(bytes[4]) | UInt32(bytes[5]) << 8 | UInt32(bytes[6]) << 16
            | UInt32(bytes[7]) << 24
        return UInt64(low) | UInt64(high) << 32
    }

    /// Writes a word in the layout that `load` reads.
    ///
    /// Traps if there is no room.
    @inlinable
    @inline(__always)
    package static func store(_ word: UInt64, in span: inout MutableSpan<UInt8>, at index: Int) {
        // Checks once, so that the single bytes are not checked and become one store.
        precondition(index >= 0 && index < span.count &- 7)
        span[index &+ 7] = UInt8(truncatingIfNeeded: word >> 56)
        span[index &+ 6] = UInt8(truncatingIfNeeded: word >> 48)
        span[index &+ 5] = UInt8(truncatingIfNeeded: word >> 40)
        span[index &+ 4] = UInt8(truncatingIfNeeded: word >> 32)
        span[index &+ 3] = UInt8(truncatingIfNeeded: word >> 24)
        span[index &+ 2] = UInt8(truncatingIfNeeded: word >> 16)
        span[index &+ 1] = UInt8(truncatingIfNeeded: word >> 8)
        span[index] = UInt8(truncatingIfNeeded: word)
    }

    /// Returns the bytes with `A` to `Z` turned into `a` to `z`.
    @inlinable
    package static func lowercased(_ word: UInt64) -> UInt64 {
        let seven = word & 0x7F7F_7F7F_7F7F_7F7F
        // The highest bit of each byte: at least `A`, and more than `Z`.
        let fromA = seven &+ 0x3F3F_3F3F_3F3F_3F3F
        let afterZ = seven &+ 0x2525_2525_2525_2525
        let upper = fromA & ~afterZ & ~word & 0x8080_8080_8080_8080
        return word | upper >> 2
    }

    /// True if the bytes of a range are equal to those of another text from `start` on; traps if
    /// that is too short.
    @inline(__always)
    static func agree(
        _ span: Span<UInt8>, _ stretch: Range<Int>, _ other: Span<UInt8>, from start: Int
    ) -> Bool {
        var index = stretch.lowerBound
        var place = start
        while index &+ 8 <= stretch.upperBound {
            guard load(span, at: index) == load(other, at: place) else { return false }
            index &+= 8
            place &+= 8
        }
        while index < stretch.upperBound {
            guard span[index] == other[place] else { return false }
            index &+= 1
            place &+= 1
        }
        return true
    }

    /// Returns a digest of a range's bytes and length, for tables that compare the bytes as well.
    static func digest(_ span: Span<UInt8>, _ stretch: Range<Int>) -> UInt32 {
        var value = UInt64(truncatingIfNeeded: stretch.count)
        var index = stretch.lowerBound
        while index &+ 8 <= stretch.upperBound {
            value = (value ^ load(span, at: index)) &* 0x9E37_79B9_7F4A_7C15
            value ^= value >> 32
            index &+= 8
        }
        var last: UInt64 = 0
        while index < stretch.upperBound {
            last = last << 8 | UInt64(span[index])
            index &+= 1
        }
        value = (value ^ last) &* 0x9E37_79B9_7F4A_7C15
        return UInt32(truncatingIfNeeded: value >> 32)
    }
}
