/// Numbers that are the same in every run of a seed (the SplitMix64 generator).
package struct SeededDice: RandomNumberGenerator, Sendable {
    private var state: UInt64

    package init(_ seed: UInt64, _ stream: Int) {
        state = seed &* 0x1_0000_0001 &+ UInt64(stream) << 20
    }

    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var word = state
        word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
        return word ^ (word >> 31)
    }

    /// A number in 0..<sides.
    package mutating func roll(_ sides: Int) -> Int { Int(next() % UInt64(max(1, sides))) }

    /// True once in this many times.
    package mutating func oneIn(_ times: Int) -> Bool { roll(times) == 0 }
}
