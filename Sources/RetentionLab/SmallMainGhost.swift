// S3-FIFO: three queues without reordering (Yang and others, SOSP 2023).
import Retention

/// S3-FIFO: new objects pass through a small queue.
///
/// An object used there moves to the main queue; an unused one leaves a ghost, and enters the main
/// queue directly if it comes back.
///
/// As published: a tenth of the capacity for the small queue, uses counted up to 3, and as many
/// ghosts as objects in the main queue. Sizes are bytes. One use in the small queue moves an object
/// to the main queue, the variant that the authors draw; with two, hit ratios were lower on all
/// three of our traces.
final class SmallMainGhost: RetentionPolicy {
    private static let small: UInt8 = 0
    private static let main: UInt8 = 1
    private static let usesLimit: UInt8 = 3

    var capacity: Int64
    private var shelf = Shelf()
    private var smallQueue = SlotQueue()
    private var mainQueue = SlotQueue()
    private var ghosts = GhostTable()

    init(capacity: Int64) { self.capacity = capacity }

    var count: Int { shelf.count }
    var bytes: Int64 { shelf.bytes }
    var memoryBytes: Int { shelf.memoryBytes + ghosts.memoryBytes }

    func bytes(of name: UInt128) -> Int64? { shelf.size(of: name) }

    func insert(_ name: UInt128, _ facts: Retained) {
        let known = shelf.find(name)
        guard known == .none else { return resize(known, to: facts.bytes) }
        let slot = shelf.add(name, size: facts.bytes, lastUsed: facts.lastUsed)
        if ghosts.take(name) {
            shelf.pushFront(slot, &mainQueue, place: Self.main)
        } else {
            shelf.pushFront(slot, &smallQueue, place: Self.small)
        }
    }

    func restore(_ name: UInt128, _ facts: Retained) {
        guard shelf.find(name) == .none else { return }
        let slot = shelf.add(name, size: facts.bytes, lastUsed: facts.lastUsed)
        if facts.uses > 1 {
            shelf.pushBack(slot, &mainQueue, place: Self.main)
        } else {
            shelf.pushBack(slot, &smallQueue, place: Self.small)
        }
    }

    func touch(_ name: UInt128, now: UInt32) -> UInt32? {
        let slot = shelf.find(name)
        guard slot != .none else { return nil }
        let former = shelf.lastUsed[Int(slot)]
        shelf.lastUsed[Int(slot)] = now
        shelf.marks[Int(slot)] = min(shelf.marks[Int(slot)] + 1, Self.usesLimit)
        return former
    }

    func remove(_ name: UInt128) {
        let slot = shelf.find(name)
        guard slot != .none else { return }
        unlink(slot)
        shelf.drop(slot)
    }

    func nextVictim(now: UInt32, isBarred: (UInt128) -> Bool) -> UInt128? {
        // Each step, except at barred objects, lowers a count or moves an object to the main queue.
        var barredLooks = 0
        // Once all of the main queue is known to be barred, the victim comes from the small queue.
        var heldInMain = 0
        while shelf.count > 0, barredLooks <= 2 * shelf.count {
            let isSmallFull = smallQueue.bytes > capacity / 10
            let fromSmall =
                smallQueue.count > 0 && (isSmallFull || heldInMain >= mainQueue.count)
            let slot = fromSmall ? smallQueue.back : mainQueue.back
            let index = Int(slot)
            let name = shelf.names[index]
            let isUsed = shelf.marks[index] > 0
            if !isUsed, !isBarred(name) {
                unlink(slot)
                shelf.drop(slot)
                if fromSmall { ghosts.insert(name, limit: max(mainQueue.count, 16)) }
                return name
            }
            if !isUsed {
                barredLooks += 1
                heldInMain += 1
            }
            unlink(slot)
            if isUsed { shelf.marks[index] = fromSmall ? 0 : shelf.marks[index] - 1 }
            shelf.pushFront(slot, &mainQueue, place: Self.main)
        }
        return nil
    }

    private func unlink(_ slot: Slot) {
        if shelf.places[Int(slot)] == Self.main {
            shelf.unlink(slot, &mainQueue)
        } else {
            shelf.unlink(slot, &smallQueue)
        }
    }

    private func resize(_ slot: Slot, to size: Int64) {
        if shelf.places[Int(slot)] == Self.main {
            shelf.resize(slot, to: size, &mainQueue)
        } else {
            shelf.resize(slot, to: size, &smallQueue)
        }
    }
}
