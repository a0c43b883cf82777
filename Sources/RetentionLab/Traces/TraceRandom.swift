// Reproducible randomness: a seeded generator and the distributions of the traces.
import Retention
import Glibc

/// SplitMix64 (Steele, Lea, Flood, 2014): the same numbers from the same seed on every machine.
struct TraceRandom: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed &* 0xD134_2543_DE82_EF95 &+ 0x2545_F491_4F6C_DD1D }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// Uniform in 0..<1.
    mutating func unit() -> Double { Double(next() >> 11) * 0x1p-53 }

    mutating func uniform(_ range: ClosedRange<Double>) -> Double {
        range.lowerBound + unit() * (range.upperBound - range.lowerBound)
    }

    mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }

    mutating func happens(_ probability: Double) -> Bool { unit() < probability }

    mutating func exponential(mean: Double) -> Double { -mean * log(1 - unit()) }

    /// Whole numbers from 1 on, with the given mean of 1 or more.
    mutating func geometric(mean: Double) -> Int {
        var count = 1
        while happens(1 - 1 / mean) { count += 1 }
        return count
    }

    /// Log-normal with the given median, clamped to `limits`.
    mutating func logNormal(
        median: Double, sigma: Double, limits: ClosedRange<Double>
    ) -> Double {
        // Box and Muller; the second value is not used.
        let normal = sqrt(-2 * log(1 - unit())) * cos(2 * Double.pi * unit())
        return min(max(median * exp(sigma * normal), limits.lowerBound), limits.upperBound)
    }

    /// Whole numbers in a range, every magnitude equally likely: a power law with exponent -1.
    mutating func logUniform(_ range: ClosedRange<Int>) -> Int {
        let (low, high) = (log(Double(range.lowerBound)), log(Double(range.upperBound) + 1))
        return min(Int(exp(uniform(low...high))), range.upperBound)
    }
}

/// Ranks 0..<count, rank r with a weight of 1 / (r + 1)^exponent.
struct ZipfRanks {
    private var sums: [Double] = []

    init(count: Int, exponent: Double) {
        var sum = 0.0
        for rank in 1...count {
            sum += pow(Double(rank), -exponent)
            sums.append(sum)
        }
    }

    func draw(_ random: inout TraceRandom) -> Int {
        let wanted = random.unit() * (sums.last ?? 1)
        var (low, high) = (0, sums.count - 1)
        while low < high {
            let middle = (low + high) / 2
            if sums[middle] > wanted { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
