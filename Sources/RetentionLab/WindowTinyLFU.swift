// W-TinyLFU: a small window, then a main area to which a frequency sketch controls admission
// (Einziger and others, 2017).
import Retention

/// A window of 1 % of the capacity, followed by a segmented LRU.
///
/// Four fifths of the LRU are for objects used again. An object leaving the window is admitted only
/// if it was used more often than all its victims together (the same authors' rule for sizes,
/// 2022).
final class WindowTinyLFU: RetentionPolicy {
    private static let window: UInt8 = 0
    private static let probation: UInt8 = 1
    private static let protected: UInt8 = 2
    /// The maximum number of victims compared with one candidate, so that the work stays bounded.
    private static let victimsWeighed = 32

    var capacity: Int64
    private var shelf = Shelf()
    private var windowQueue = SlotQueue()
    private var probationQueue = SlotQueue()
    private var protectedQueue = SlotQueue()
    private var sketch = FrequencySketch()

    init(capacity: Int64) { self.capacity = capacity }

    var count: Int { shelf.count }
    var bytes: Int64 { shelf.bytes }
    var memoryBytes: Int { shelf.memoryBytes + sketch.memoryBytes }

    private var windowBytes: Int64 { capacity / 100 }
    private var mainBytes: Int64 { capacity - windowBytes }

    func bytes(of name: UInt128) -> Int64? { shelf.size(of: name) }

    func insert(_ name: UInt128, _ facts: Retained) {
        let known = shelf.find(name)
        guard known == .none else { return resize(known, to: facts.bytes) }
        let slot = shelf.add(name, size: facts.bytes, lastUsed: facts.lastUsed)
        sketch.fit(shelf.count)
        sketch.add(name)
        shelf.pushFront(slot, &windowQueue, place: Self.window)
    }

    func restore(_ name: UInt128, _ facts: Retained) {
        guard shelf.find(name) == .none else { return }
        let slot = shelf.add(name, size: facts.bytes, lastUsed: facts.lastUsed)
        sketch.fit(shelf.count)
        for _ in 0..<min(facts.uses, 15) { sketch.add(name) }
        shelf.pushBack(slot, &probationQueue, place: Self.probation)
    }

    func touch(_ name: UInt128, now: UInt32) -> UInt32? {
        let slot = shelf.find(name)
        guard slot != .none else { return nil }
        let former = shelf.lastUsed[Int(slot)]
        shelf.lastUsed[Int(slot)] = now
        sketch.add(name)
        let place = shelf.places[Int(slot)]
        unlink(slot)
        guard place != Self.window else {
            shelf.pushFront(slot, &windowQueue, place: Self.window)
            return former
        }
        shelf.pushFront(slot, &protectedQueue, place: Self.protected)
        while protectedQueue.bytes > mainBytes / 5 * 4, protectedQueue.count > 1 {
            let demoted = protectedQueue.back
            shelf.unlink(demoted, &protectedQueue)
            shelf.pushFront(demoted, &probationQueue, place: Self.probation)
        }
        return former
    }

    func remove(_ name: UInt128) {
        let slot = shelf.find(name)
        guard slot != .none else { return }
        unlink(slot)
        shelf.drop(slot)
    }

    func nextVictim(now: UInt32, isBarred: (UInt128) -> Bool) -> UInt128? {
        // Each iteration moves a candidate out of the window, or a barred object to its front.
        var barredLooks = 0
        while shelf.count > 0, barredLooks <= 2 * shelf.count {
            let isMainHeld = barredLooks > 0 && barredLooks >= shelf.count - windowQueue.count
            let slot = choose(isMainHeld: isMainHeld)
            guard slot != .none else { continue }
            let name = shelf.names[Int(slot)]
            unlink(slot)
            if !isBarred(name) {
                shelf.drop(slot)
                return name
            }
            barredLooks += 1
            shelf.pushFront(slot, &protectedQueue, place: Self.protected)
        }
        return nil
    }

    /// The next victim, barred or not; none if a candidate was admitted without a victim.
    private func choose(isMainHeld: Bool) -> Slot {
        if isMainHeld, windowQueue.count > 0 { return windowQueue.back }
        guard windowQueue.bytes > windowBytes else { return mainVictim }
        let candidate = windowQueue.back
        let size = shelf.sizes[Int(candidate)]
        let hasRoom = probationQueue.bytes + protectedQueue.bytes + size <= mainBytes
        guard hasRoom || isWorthMore(candidate, size) else { return candidate }
        let victim = hasRoom ? Slot.none : mainVictim
        shelf.unlink(candidate, &windowQueue)
        shelf.pushFront(candidate, &probationQueue, place: Self.probation)
        return victim
    }

    private var mainVictim: Slot {
        if probationQueue.count > 0 { return probationQueue.back }
        return protectedQueue.count > 0 ? protectedQueue.back : windowQueue.back
    }

    /// Whether a candidate was used more often than all its victims together.
    private func isWorthMore(_ candidate: Slot, _ size: Int64) -> Bool {
        let worth = sketch.count(shelf.names[Int(candidate)])
        var (freed, lost): (Int64, Int) = (0, 0)
        var victim = probationQueue.back
        for _ in 0..<Self.victimsWeighed where victim != .none && freed < size {
            freed += shelf.sizes[Int(victim)]
            lost += sketch.count(shelf.names[Int(victim)])
            if lost >= worth { return false }
            victim = shelf.previous[Int(victim)]
        }
        return probationQueue.count > 0 || protectedQueue.count > 0
    }

    private func unlink(_ slot: Slot) {
        switch shelf.places[Int(slot)] {
        case Self.window: shelf.unlink(slot, &windowQueue)
        case Self.probation: shelf.unlink(slot, &probationQueue)
        default: shelf.unlink(slot, &protectedQueue)
        }
    }

    private func resize(_ slot: Slot, to size: Int64) {
        switch shelf.places[Int(slot)] {
        case Self.window: shelf.resize(slot, to: size, &windowQueue)
        case Self.probation: shelf.resize(slot, to: size, &probationQueue)
        default: shelf.resize(slot, to: size, &protectedQueue)
        }
    }
}
