/// Returns a hash of a text that is the same on every machine: FNV-1a with a final mix.
///
/// It spreads well, and anybody can find texts that collide: for choosing among machines, not for tables.
package func stableHash(_ text: String) -> UInt64 { StableHash(text).value }

/// The hash of `stableHash` for a text that is given in parts.
package struct StableHash: Sendable {
    private var state: UInt64 = 0xCBF2_9CE4_8422_2325

    /// Begins with the first part.
    package init(_ text: String) { add(text) }

    /// Adds the next part.
    package mutating func add(_ text: String) {
        for byte in text.utf8 { state = (state ^ UInt64(byte)) &* 0x100_0000_01B3 }
    }

    /// The hash of all parts.
    package var value: UInt64 {
        var hash = state
        hash = (hash ^ (hash >> 33)) &* 0xFF51_AFD7_ED55_8CCD
        hash = (hash ^ (hash >> 33)) &* 0xC4CE_B9FE_1A85_EC53
        return hash ^ (hash >> 33)
    }
}
