// A reference for policies: the names and sizes that must be known, in a dictionary.
import Retention
import RetentionLab

/// A store without files that checks every victim.
struct NaiveStore {
    let policy: any RetentionPolicy
    let capacity: Int64
    private(set) var sizes: [UInt128: Int64] = [:]
    /// The evicted objects in order.
    private(set) var victims: [UInt128] = []
    /// Victims that were unknown or barred.
    private(set) var faults = 0

    init(_ name: RetentionPolicyName, capacity: Int64) {
        policy = name.makePolicy(capacity: capacity)
        self.capacity = capacity
    }

    var bytes: Int64 { sizes.values.reduce(0, +) }

    mutating func keep(_ name: UInt128, _ facts: Retained) {
        sizes[name] = facts.bytes
        policy.insert(name, facts)
        while bytes > capacity, evict(now: facts.lastUsed) {}
    }

    mutating func remove(_ name: UInt128) {
        sizes[name] = nil
        policy.remove(name)
    }

    @discardableResult
    mutating func evict(now: UInt32, barred: Set<UInt128> = []) -> Bool {
        guard let victim = policy.nextVictim(now: now, isBarred: { barred.contains($0) }) else {
            return false
        }
        if sizes.removeValue(forKey: victim) == nil || barred.contains(victim) { faults += 1 }
        victims.append(victim)
        return true
    }
}

/// Small seeded numbers (a linear congruential generator with Knuth's constants).
struct Dice {
    private var state: UInt64

    init(_ seed: UInt64) { state = seed }

    mutating func roll(_ bound: Int) -> Int {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return Int((state >> 33) % UInt64(bound))
    }
}
