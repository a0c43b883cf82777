// SIEVE: one queue in the order of arrival, and a hand (Zhang and others, NSDI 2024).
import Retention

/// SIEVE: a use marks an object without moving it.
///
/// The hand moves from the oldest object to the newest, clears marks, and evicts the first object
/// without one; the others keep their places.
final class Sieve: RetentionPolicy {
    var capacity: Int64
    private var shelf = Shelf()
    private var queue = SlotQueue()
    /// Where the next search starts; none to start at the oldest.
    private var hand = Slot.none

    init(capacity: Int64) { self.capacity = capacity }

    var count: Int { shelf.count }
    var bytes: Int64 { shelf.bytes }
    var memoryBytes: Int { shelf.memoryBytes }

    func bytes(of name: UInt128) -> Int64? { shelf.size(of: name) }

    func insert(_ name: UInt128, _ facts: Retained) {
        let known = shelf.find(name)
        guard known == .none else { return shelf.resize(known, to: facts.bytes, &queue) }
        let slot = shelf.add(name, size: facts.bytes, lastUsed: facts.lastUsed)
        shelf.pushFront(slot, &queue)
    }

    func restore(_ name: UInt128, _ facts: Retained) {
        guard shelf.find(name) == .none else { return }
        let slot = shelf.add(name, size: facts.bytes, lastUsed: facts.lastUsed)
        shelf.marks[Int(slot)] = facts.uses > 1 ? 1 : 0
        shelf.pushBack(slot, &queue)
    }

    func touch(_ name: UInt128, now: UInt32) -> UInt32? {
        let slot = shelf.find(name)
        guard slot != .none else { return nil }
        let former = shelf.lastUsed[Int(slot)]
        shelf.lastUsed[Int(slot)] = now
        shelf.marks[Int(slot)] = 1
        return former
    }

    func remove(_ name: UInt128) {
        let slot = shelf.find(name)
        guard slot != .none else { return }
        drop(slot)
    }

    func nextVictim(now: UInt32, isBarred: (UInt128) -> Bool) -> UInt128? {
        // The first round clears all marks, the second finds an object that is not barred.
        for _ in 0..<2 * queue.count {
            let slot = hand == .none ? queue.back : hand
            let name = shelf.names[Int(slot)]
            if shelf.marks[Int(slot)] == 0, !isBarred(name) {
                hand = slot
                drop(slot)
                return name
            }
            shelf.marks[Int(slot)] = 0
            hand = shelf.previous[Int(slot)]
        }
        return nil
    }

    private func drop(_ slot: Slot) {
        if hand == slot { hand = shelf.previous[Int(slot)] }
        shelf.unlink(slot, &queue)
        shelf.drop(slot)
    }
}
