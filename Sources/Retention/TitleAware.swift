// Keeps titles, not objects: what is watched again stays whole, what was glanced at goes first.

/// The figures by which titles are weighed, chosen on traces (decision 7).
package struct TitleWeights: Sendable {
    /// Less than the 1 of a visit that lasted: one that was over after ``glanceSeconds``.
    package var glance: Float = 0.5
    /// What was fetched ahead, and nobody has read yet.
    package var unread: Float = 0.3
    /// A live segment; low, since it is seldom asked for after it left the window.
    package var live: Float = 0.05
    /// From the first to the last read of a visit, in seconds.
    package var glanceSeconds: UInt32 = 3
    /// A use that comes later than this after the last one is a new visit; in seconds.
    package var pauseSeconds: UInt32 = 60
    /// The weight of a visit halves in this time; in seconds.
    package var halfLife: Float = 5 * 86_400
    /// What was visited `t` seconds ago is visited again within the next second with the
    /// probability `soon / t`, beside the rate of its earlier visits.
    package var soon: Float = 0.003
    /// Added to every age, in seconds, so that what was used just now is not beyond comparison.
    package var youth: Float = 60
    /// Titles drawn for a comparison.
    package var draws = 48

    package init() {}
}

/// The title that is worth least goes, the end of it first, until it is gone.
///
/// What a title is worth is the rate at which visits are to be expected: the one that its visits so
/// far speak for, each of which fades with time, and one that falls with the time since the last.
/// With a single visit each, that is LRU by titles; what is seen every day stays through a day of what
/// is seen once. The least is looked for among some titles drawn at random, so that every call has a
/// bound.
///
/// Playlists, initialization sections and keys are kept as long as their title has media, and after
/// that in a sixteenth of the capacity; with them the memory of the title's visits. Live segments stand
/// in a queue of their own. An object without a title is a title of its own.
package final class TitleAware: RetentionPolicy {
    static let mediaPlace: UInt8 = 0
    static let structurePlace: UInt8 = 1
    static let livePlace: UInt8 = 2

    package var capacity: Int64
    let weights: TitleWeights
    var shelf = Shelf()
    var titles = TitleShelf()
    /// The title of each object, by slot.
    private(set) var owners = ContiguousArray<Slot>()
    var structureQueue = SlotQueue()
    var liveQueue = SlotQueue()
    /// The title that goes at present, and the number of its last use when it was chosen.
    var goingTitle = Slot.none
    var goingSince: UInt32 = 0
    var uses: UInt32 = 0
    var draw: UInt64 = 0x9E37_79B9_7F4A_7C15

    package init(capacity: Int64, weights: TitleWeights = TitleWeights()) {
        self.capacity = capacity
        self.weights = weights
    }

    package var count: Int { shelf.count }
    package var bytes: Int64 { shelf.bytes }
    package var memoryBytes: Int { shelf.memoryBytes + titles.memoryBytes + owners.capacity * 4 }

    package func insert(_ name: UInt128, _ facts: Retained) {
        let known = shelf.find(name)
        if known != .none {
            let owner = owners[Int(known)]
            if shelf.places[Int(known)] == Self.place(of: facts.kind),
                titles.names[Int(owner)] == Self.titleName(name, facts.title)
            {
                return resize(known, to: facts.bytes)
            }
            forget(known)
        }
        let slot = add(name, facts, isRestored: false)
        if facts.isRead { noteUse(of: owners[Int(slot)], at: facts.lastUsed) }
    }

    package func restore(_ name: UInt128, _ facts: Retained) {
        guard shelf.find(name) == .none else { return }
        let owner = Int(owners[Int(add(name, facts, isRestored: true))])
        guard facts.isRead else { return }
        titles.records[owner].weight = max(
            titles.records[owner].weight, Float(max(facts.uses, 1) - 1))
        guard facts.lastUsed > titles.records[owner].lastUsed else { return }
        titles.records[owner].lastUsed = facts.lastUsed
        // Long enough before for a visit that lasted: how long it was, no one knows any more.
        titles.records[owner].visitStart = max(1, facts.lastUsed - min(facts.lastUsed, 60))
    }

    package func touch(_ name: UInt128, now: UInt32, bytesRead: Int64) -> UInt32? {
        let slot = shelf.find(name)
        guard slot != .none else { return nil }
        let former = shelf.lastUsed[Int(slot)]
        shelf.lastUsed[Int(slot)] = now
        bringForward(slot)
        noteUse(of: owners[Int(slot)], at: now)
        return former
    }

    package func remove(_ name: UInt128) {
        let slot = shelf.find(name)
        if slot != .none { forget(slot) }
    }

    // MARK: Books

    private static func place(of kind: RetentionKind) -> UInt8 {
        switch kind {
        case .media, .other: mediaPlace
        case .structure: structurePlace
        case .live: livePlace
        }
    }

    /// The title's name in the table; objects without a title have one that no title has.
    private static func titleName(_ name: UInt128, _ title: UInt64) -> UInt128 {
        title == 0 ? name | 1 << 127 : UInt128(title)
    }

    private func add(_ name: UInt128, _ facts: Retained, isRestored: Bool) -> Slot {
        let slot = shelf.add(name, size: facts.bytes, lastUsed: facts.lastUsed)
        let owner = titles.slot(of: Self.titleName(name, facts.title))
        if Int(slot) == owners.count {
            if owners.count == owners.capacity {
                owners.reserveCapacity(owners.count + owners.count / 4 + 64)
            }
            owners.append(owner)
        } else {
            owners[Int(slot)] = owner
        }
        let place = Self.place(of: facts.kind)
        switch place {
        case Self.mediaPlace where isRestored:
            shelf.pushFront(slot, &titles.records[Int(owner)].media, place: place)
        case Self.mediaPlace:
            shelf.pushBack(slot, &titles.records[Int(owner)].media, place: place)
        case Self.structurePlace:
            titles.records[Int(owner)].structures += 1
            push(slot, &structureQueue, place, isRestored)
        default:
            // Counted with the structures, since it keeps its title known in the same way.
            titles.records[Int(owner)].structures += 1
            push(slot, &liveQueue, place, isRestored)
        }
        if titles.records[Int(owner)].lastUsed == 0 {
            titles.records[Int(owner)].lastUsed = facts.lastUsed
        }
        titles.settle(owner)
        return slot
    }

    private func push(_ slot: Slot, _ queue: inout SlotQueue, _ place: UInt8, _ isBehind: Bool) {
        if isBehind {
            shelf.pushBack(slot, &queue, place: place)
        } else {
            shelf.pushFront(slot, &queue, place: place)
        }
    }

    func forget(_ slot: Slot) {
        let owner = owners[Int(slot)]
        switch shelf.places[Int(slot)] {
        case Self.mediaPlace: shelf.unlink(slot, &titles.records[Int(owner)].media)
        case Self.structurePlace:
            shelf.unlink(slot, &structureQueue)
            titles.records[Int(owner)].structures -= 1
        default:
            shelf.unlink(slot, &liveQueue)
            titles.records[Int(owner)].structures -= 1
        }
        shelf.drop(slot)
        titles.settle(owner)
        // Another title may get its slot at once, and would go in its stead.
        if owner == goingTitle, titles.records[Int(owner)].place == .none { goingTitle = .none }
    }

    /// Puts a structure object or live segment in front; media keep the order of arrival.
    func bringForward(_ slot: Slot) {
        switch shelf.places[Int(slot)] {
        case Self.mediaPlace: break
        case Self.structurePlace:
            shelf.unlink(slot, &structureQueue)
            shelf.pushFront(slot, &structureQueue, place: Self.structurePlace)
        default:
            shelf.unlink(slot, &liveQueue)
            shelf.pushFront(slot, &liveQueue, place: Self.livePlace)
        }
    }

    private func resize(_ slot: Slot, to size: Int64) {
        switch shelf.places[Int(slot)] {
        case Self.mediaPlace:
            shelf.resize(slot, to: size, &titles.records[Int(owners[Int(slot)])].media)
        case Self.structurePlace: shelf.resize(slot, to: size, &structureQueue)
        default: shelf.resize(slot, to: size, &liveQueue)
        }
    }
}
