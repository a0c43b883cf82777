// Numbers that are the same for every run with a seed.

/// The SplitMix64 generator (Steele, Lea, Flood 2014).
struct SeededNumbers {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// A number from 0 up to, but not including, `bound`.
    mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(max(1, bound))) }

    /// True in this many of a hundred cases.
    mutating func chance(_ percent: Int) -> Bool { below(100) < percent }

    /// An element of a non-empty list.
    mutating func pick<Element>(_ list: [Element]) -> Element { list[below(list.count)] }

    mutating func bytes(_ count: Int) -> [UInt8] {
        (0..<count).map { _ in UInt8(truncatingIfNeeded: next()) }
    }

    /// Changes one bit of non-empty bytes.
    mutating func flipBit(_ bytes: inout [UInt8]) {
        guard !bytes.isEmpty else { return }
        bytes[below(bytes.count)] ^= 1 << UInt8(below(8))
    }
}
