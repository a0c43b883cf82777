import Retention

/// LRU, the baseline: evicts the least recently used object first.
final class LeastRecentlyUsed: RetentionPolicy {
    var capacity: Int64
    private var shelf = Shelf()
    private var queue = SlotQueue()

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
        shelf.pushBack(slot, &queue)
    }

    func touch(_ name: UInt128, now: UInt32) -> UInt32? {
        let slot = shelf.find(name)
        guard slot != .none else { return nil }
        let former = shelf.lastUsed[Int(slot)]
        shelf.lastUsed[Int(slot)] = now
        bringForward(slot)
        return former
    }

    func remove(_ name: UInt128) {
        let slot = shelf.find(name)
        guard slot != .none else { return }
        shelf.unlink(slot, &queue)
        shelf.drop(slot)
    }

    func nextVictim(now: UInt32, isBarred: (UInt128) -> Bool) -> UInt128? {
        for _ in 0..<queue.count {
            let slot = queue.back
            let name = shelf.names[Int(slot)]
            if isBarred(name) {
                bringForward(slot)
                continue
            }
            shelf.unlink(slot, &queue)
            shelf.drop(slot)
            return name
        }
        return nil
    }

    private func bringForward(_ slot: Slot) {
        shelf.unlink(slot, &queue)
        shelf.pushFront(slot, &queue)
    }
}
