// Estimates how often names were used recently, with half a byte per counter.
import Retention

/// A count-min sketch of four rows with counters up to 15, all halved after ten uses per object
/// (Einziger, Friedman, Manes: TinyLFU, 2017).
struct FrequencySketch {
    private static let rows: UInt64 = 4
    private static let usesAnObject = 10

    /// 16 counters per word.
    private var words: ContiguousArray<UInt64>
    private var additions = 0
    private var objects = 64

    init() { words = ContiguousArray(repeating: 0, count: 16) }

    var memoryBytes: Int { words.capacity * 8 }

    /// Makes room for `count` objects; keeps the counts.
    mutating func fit(_ count: Int) {
        objects = max(objects, count)
        // One counter per object and row: 4 objects per word of 16 counters.
        while words.count * 4 < objects {
            words.append(contentsOf: ContiguousArray(words))
        }
    }

    mutating func add(_ name: UInt128) {
        for row in 0..<Self.rows {
            let (word, shift) = place(name.mixed, row)
            if (words[word] >> shift) & 15 < 15 { words[word] += 1 << shift }
        }
        additions += 1
        if additions >= objects * Self.usesAnObject { halve() }
    }

    /// An estimate, 0 to 15, never below the actual count reduced by the halvings.
    func count(_ name: UInt128) -> Int {
        var least: UInt64 = 15
        for row in 0..<Self.rows {
            let (word, shift) = place(name.mixed, row)
            least = min(least, (words[word] >> shift) & 15)
        }
        return Int(least)
    }

    private mutating func halve() {
        for index in words.indices { words[index] = (words[index] >> 1) & 0x7777_7777_7777_7777 }
        additions /= 2
    }

    /// The counter of a hash in a row.
    ///
    /// The number of words doubles, so the low bits select among the words that existed before.
    private func place(_ hash: UInt64, _ row: UInt64) -> (word: Int, shift: UInt64) {
        let mixed = (hash ^ (row &* 0xC2B2_AE3D_27D4_EB4F)) &* 0x9E37_79B9_7F4A_7C15
        let word = Int(truncatingIfNeeded: mixed >> 32) & (words.count - 1)
        return (word, ((mixed >> 28) & 3 + row * 4) * 4)
    }
}
