// Retention by title: titles watched again stay complete, titles watched only briefly are evicted first.

/// The parameters of a title's value, chosen on traces (decision 7).
package struct TitleWeights: Sendable {
    /// The weight of a visit shorter than ``shortVisitSeconds``; a longer one weighs 1.
    package var shortVisit: Float = 0.5
    /// The weight of a title that was fetched ahead and not read yet.
    package var unread: Float = 0.3
    /// The weight of a live segment; low, since it is seldom requested after it left the window.
    package var live: Float = 0.05
    /// A visit is short if less time passes from its first to its last read; in seconds.
    package var shortVisitSeconds: UInt32 = 3
    /// A use more than this many seconds after the previous one starts a new visit.
    package var pauseSeconds: UInt32 = 60
    /// The weight of a visit halves in this time; in seconds.
    package var halfLife: Float = 5 * 86_400
    /// A title visited `t` seconds ago is visited again within the next second with probability
    /// `soon / t`, in addition to the rate of its earlier visits.
    package var soon: Float = 0.003
    /// Added to every age, in seconds, so that the value of a title used just now stays finite.
    package var youth: Float = 60
    /// The number of titles drawn for a comparison.
    package var draws = 48

    package init() {}
}

/// A policy that evicts the least valuable title, from its end backwards, until all of it is gone.
///
/// The value of a title is the rate at which visits are expected: a rate from its visits so far,
/// each fading with time, plus a rate that falls with the time since the last visit. With a single
/// visit each, this is LRU by title; a title watched every day survives a day of titles watched
/// once. The least valuable title is searched in a random sample, so that every call is bounded.
///
/// Playlists, initialization sections and keys stay as long as their title has media, and after
/// that in a sixteenth of the capacity; the record of the title's visits stays with them. Live
/// segments are in a separate queue. An object without a title is a title of its own.
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
    /// The title being evicted, and the number of its last use when it was selected.
    var goingTitle = Slot.none
    var goingSince: UInt32 = 0
    /// The number of its objects to evict before titles are compared again.
    var goingLeft = 0
    /// The place among the titles with media where the last search of all objects ended.
    var searchPlace = 0
    var uses: UInt32 = 0
    /// The latest known time; ahead of the clock once that was set back.
    var latest: UInt32 = 0
    /// When the clock was found set back, until the times ahead of it are corrected.
    var setBackTo: UInt32?
    var draw: UInt64 = 0x9E37_79B9_7F4A_7C15

    package init(capacity: Int64, weights: TitleWeights = TitleWeights()) {
        self.capacity = capacity
        self.weights = weights
    }

    package var count: Int { shelf.count }
    package var bytes: Int64 { shelf.bytes }
    package var memoryBytes: Int { shelf.memoryBytes + titles.memoryBytes + owners.capacity * 4 }

    package func bytes(of name: UInt128) -> Int64? { shelf.size(of: name) }

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
        // Assumes a visit that was not short, since its length was not stored.
        titles.records[owner].visitStart = max(1, facts.lastUsed - min(facts.lastUsed, 60))
    }

    package func touch(_ name: UInt128, now: UInt32) -> UInt32? {
        let slot = shelf.find(name)
        guard slot != .none else { return nil }
        let former = shelf.lastUsed[Int(slot)]
        shelf.lastUsed[Int(slot)] = now
        bringForward(slot)
        let owner = owners[Int(slot)]
        noteClock(now)
        // At once, since the visits of this title would not count until then.
        if isAhead(titles.records[Int(owner)].lastUsed, of: now), isSetBackForGood(now) {
            correct(Int(owner), to: now)
        }
        noteUse(of: owner, at: now)
        return former
    }

    package func remove(_ name: UInt128) {
        let slot = shelf.find(name)
        if slot != .none { forget(slot) }
    }

    // MARK: Bookkeeping

    private static func place(of kind: RetentionKind) -> UInt8 {
        switch kind {
        case .media, .other: mediaPlace
        case .structure: structurePlace
        case .live: livePlace
        }
    }

    /// Returns the title's name in the table; an object without a title gets one that no title has.
    private static func titleName(_ name: UInt128, _ title: UInt64) -> UInt128 {
        title == 0 ? name | 1 << 127 : UInt128(title)
    }

    private func add(_ name: UInt128, _ facts: Retained, isRestored: Bool) -> Slot {
        let slot = shelf.add(name, size: facts.bytes, lastUsed: facts.lastUsed)
        latest = max(latest, facts.lastUsed)
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
            // Counted with the structures, since it keeps its title's record in the same way.
            titles.records[Int(owner)].structures += 1
            push(slot, &liveQueue, place, isRestored)
        }
        if titles.records[Int(owner)].lastUsed == 0 {
            titles.records[Int(owner)].lastUsed = facts.lastUsed
        }
        titles.updateMembership(owner)
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
        titles.updateMembership(owner)
        // Another title may reuse the slot and would be evicted instead.
        if owner == goingTitle, titles.records[Int(owner)].place == .none { goingTitle = .none }
    }

    /// Moves a structure object or live segment to the front; media stay in the order of arrival.
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
