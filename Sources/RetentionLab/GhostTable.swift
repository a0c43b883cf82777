// The names of recently evicted objects: fingerprints in a table whose size follows a limit.
import Retention

/// A queue of ghosts in buckets: an entry is 32 bits of the name and its number in the queue, and
/// expires after `limit` further entries (the layout that the S3-FIFO paper proposes).
struct GhostTable {
    private static let ways = 4

    private var fingerprints: ContiguousArray<UInt32>
    private var births: ContiguousArray<UInt32>
    /// Entries so far, modulo 2^32; 0 marks an unused place.
    private var clock: UInt32 = 0
    private var limit = 16

    init() {
        fingerprints = ContiguousArray(repeating: 0, count: 16)
        births = ContiguousArray(repeating: 0, count: 16)
    }

    var memoryBytes: Int { (fingerprints.capacity + births.capacity) * 4 }

    /// Inserts a name and sets the limit of remembered names.
    mutating func insert(_ name: UInt128, limit newLimit: Int) {
        limit = newLimit
        if limit > fingerprints.count { grow() }
        clock &+= 1
        if clock == 0 { clock = 1 }
        put(Self.fingerprint(name), clock)
    }

    /// Removes a name and returns whether it was remembered.
    mutating func take(_ name: UInt128) -> Bool {
        let fingerprint = Self.fingerprint(name)
        let start = bucket(fingerprint)
        for place in start..<start + Self.ways
        where fingerprints[place] == fingerprint && isAlive(births[place]) {
            births[place] = 0
            return true
        }
        return false
    }

    private func isAlive(_ birth: UInt32) -> Bool { birth != 0 && Int(clock &- birth) < limit }

    /// Puts an entry into its bucket, replacing the oldest there.
    private mutating func put(_ fingerprint: UInt32, _ birth: UInt32) {
        let start = bucket(fingerprint)
        var oldest = start
        for place in start..<start + Self.ways {
            if fingerprints[place] == fingerprint || births[place] == 0 {
                oldest = place
                break
            }
            if clock &- births[place] > clock &- births[oldest] { oldest = place }
        }
        fingerprints[oldest] = fingerprint
        births[oldest] = birth
    }

    private mutating func grow() {
        let (oldFingerprints, oldBirths) = (fingerprints, births)
        let count = fingerprints.count * 2
        fingerprints = ContiguousArray(repeating: 0, count: count)
        births = ContiguousArray(repeating: 0, count: count)
        for place in oldBirths.indices where oldBirths[place] != 0 {
            put(oldFingerprints[place], oldBirths[place])
        }
    }

    private func bucket(_ fingerprint: UInt32) -> Int {
        let mixed = UInt64(fingerprint) &* 0x9E37_79B9_7F4A_7C15
        let buckets = fingerprints.count / Self.ways
        return (Int(truncatingIfNeeded: mixed >> 33) & (buckets - 1)) * Self.ways
    }

    private static func fingerprint(_ name: UInt128) -> UInt32 {
        UInt32(truncatingIfNeeded: name.mixed >> 32)
    }
}
