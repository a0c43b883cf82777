// The columns that hold the facts of all objects, and their queues; the basis of every policy.

/// Objects in columns, one slot each, with links to their neighbours in one queue.
///
/// Sums of sizes wrap around: they come right again when the object of a size that a damaged index
/// gave is gone.
///
/// No object is allocated separately: a slot takes 16 bytes of name, 8 of size, 8 of links, 4 of
/// time and 2 of mark and place. Free slots are chained through `next`.
package struct Shelf {
    package init() {}

    package private(set) var names = ContiguousArray<UInt128>()
    package private(set) var sizes = ContiguousArray<Int64>()
    package private(set) var next = ContiguousArray<Slot>()
    package private(set) var previous = ContiguousArray<Slot>()
    /// When the object was used last, in seconds since 1970.
    package var lastUsed = ContiguousArray<UInt32>()
    /// A counter of the policy; most count uses.
    package var marks = ContiguousArray<UInt8>()
    /// The policy's queue that the object is in.
    package private(set) var places = ContiguousArray<UInt8>()
    package private(set) var bytes: Int64 = 0
    private var table = NameTable()
    private var free = Slot.none

    package var count: Int { table.count }

    package var memoryBytes: Int {
        names.capacity * 16 + sizes.capacity * 8 + (next.capacity + previous.capacity) * 4
            + lastUsed.capacity * 4 + marks.capacity + places.capacity + table.memoryBytes
    }

    /// Returns the slot of a name; ``Slot/none`` for an unknown one.
    package func find(_ name: UInt128) -> Slot { table.find(name, in: names) }

    /// Returns the size of an object; nil for an unknown name.
    package func size(of name: UInt128) -> Int64? {
        let slot = find(name)
        return slot == .none ? nil : sizes[Int(slot)]
    }

    /// Allocates a slot for a new name; it is in no queue yet.
    package mutating func add(_ name: UInt128, size: Int64, lastUsed time: UInt32) -> Slot {
        let slot = takeSlot()
        let index = Int(slot)
        names[index] = name
        sizes[index] = size
        lastUsed[index] = time
        marks[index] = 0
        bytes &+= size
        table.insert(slot, names: names)
        return slot
    }

    /// Frees the slot of an object that is in no queue any more.
    package mutating func drop(_ slot: Slot) {
        table.remove(slot, names: names)
        bytes &-= sizes[Int(slot)]
        next[Int(slot)] = free
        free = slot
    }

    /// Puts a slot at the front of a queue.
    package mutating func pushFront(_ slot: Slot, _ queue: inout SlotQueue, place: UInt8 = 0) {
        next[Int(slot)] = queue.front
        previous[Int(slot)] = .none
        if queue.front == .none { queue.back = slot } else { previous[Int(queue.front)] = slot }
        queue.front = slot
        enter(slot, &queue, place)
    }

    /// Puts a slot at the back of a queue, where victims are taken from.
    package mutating func pushBack(_ slot: Slot, _ queue: inout SlotQueue, place: UInt8 = 0) {
        next[Int(slot)] = .none
        previous[Int(slot)] = queue.back
        if queue.back == .none { queue.front = slot } else { next[Int(queue.back)] = slot }
        queue.back = slot
        enter(slot, &queue, place)
    }

    /// Removes a slot from its queue.
    package mutating func unlink(_ slot: Slot, _ queue: inout SlotQueue) {
        let (before, after) = (previous[Int(slot)], next[Int(slot)])
        if before == .none { queue.front = after } else { next[Int(before)] = after }
        if after == .none { queue.back = before } else { previous[Int(after)] = before }
        queue.count -= 1
        queue.bytes &-= sizes[Int(slot)]
    }

    /// Changes an object's size, also in the sum of its queue.
    package mutating func resize(_ slot: Slot, to size: Int64, _ queue: inout SlotQueue) {
        let change = size &- sizes[Int(slot)]
        sizes[Int(slot)] = size
        bytes &+= change
        queue.bytes &+= change
    }

    private mutating func enter(_ slot: Slot, _ queue: inout SlotQueue, _ place: UInt8) {
        places[Int(slot)] = place
        queue.count += 1
        queue.bytes &+= sizes[Int(slot)]
    }

    private mutating func takeSlot() -> Slot {
        if free != .none {
            let slot = free
            free = next[Int(slot)]
            return slot
        }
        let index = names.count
        precondition(index < Int(Slot.none), "more objects than slots have numbers")
        if index == names.capacity { reserve(index + index / 4 + 64) }
        names.append(0)
        sizes.append(0)
        next.append(.none)
        previous.append(.none)
        lastUsed.append(0)
        marks.append(0)
        places.append(0)
        return Slot(index)
    }

    /// Reserves capacity in all columns; callers grow by a quarter, since doubling would waste half
    /// of the memory.
    private mutating func reserve(_ capacity: Int) {
        names.reserveCapacity(capacity)
        sizes.reserveCapacity(capacity)
        next.reserveCapacity(capacity)
        previous.reserveCapacity(capacity)
        lastUsed.reserveCapacity(capacity)
        marks.reserveCapacity(capacity)
        places.reserveCapacity(capacity)
    }
}

/// The ends and sums of one queue of slots.
package struct SlotQueue {
    package init() {}

    package var front = Slot.none
    package var back = Slot.none
    package var count = 0
    package var bytes: Int64 = 0
}
