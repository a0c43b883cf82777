// Seeded pseudo-random numbers: the same seed gives the same run.

/// A generator of pseudo-random numbers (SplitMix64, Steele, Lea and Flood 2014).
struct Seeded {
    private var state: UInt64

    init(_ seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        return Self.mixed(state)
    }

    /// A number of a closed range.
    mutating func number(_ range: ClosedRange<Int>) -> Int {
        let width = UInt64(range.upperBound - range.lowerBound + 1)
        return range.lowerBound + Int(next() % width)
    }

    /// A time of so many whole seconds, in nanoseconds.
    mutating func seconds(_ range: ClosedRange<Int>) -> Int64 {
        Int64(number(range)) * World.second
    }

    /// A time of so many whole milliseconds, in nanoseconds.
    mutating func milliseconds(_ range: ClosedRange<Int>) -> Int64 {
        Int64(number(range)) * World.millisecond
    }

    /// True with a probability in per cent.
    mutating func chance(_ percent: Int) -> Bool { Int(next() % 100) < percent }

    mutating func pick<Element>(_ list: [Element]) -> Element {
        list[number(0...list.count - 1)]
    }

    /// Another generator, whose numbers do not depend on how many this one gives later.
    mutating func branch() -> Seeded { Seeded(next()) }

    /// Spreads the bits of a number.
    static func mixed(_ number: UInt64) -> UInt64 {
        var value = number
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return value ^ (value >> 31)
    }

    /// The same number for the same text in every run (FNV-1a); continues the one of a text before.
    static func hash(_ text: String, from start: UInt64 = 0xCBF2_9CE4_8422_2325) -> UInt64 {
        text.utf8.reduce(start) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
    }
}
