// A hash table from object names to slots; it stores only slot numbers, the names stay in a column.

/// The number of a slot in the columns of a ``Shelf``.
package typealias Slot = UInt32

extension Slot {
    /// No slot: the end of a list, or an unknown name.
    package static let none = Slot.max
}

/// A hash table with open addressing and linear probing; 4 bytes per entry, at most three quarters
/// full.
package struct NameTable {
    private var slots: ContiguousArray<Slot>
    private var mask: Int
    private(set) var count = 0

    package init() {
        slots = ContiguousArray(repeating: .none, count: 16)
        mask = 15
    }

    package var memoryBytes: Int { slots.capacity * MemoryLayout<Slot>.stride }

    /// Returns the slot whose name in `names` is `name`; ``Slot/none`` if there is none.
    package func find(_ name: UInt128, in names: borrowing ContiguousArray<UInt128>) -> Slot {
        var place = Self.home(name) & mask
        while true {
            let slot = slots[place]
            if slot == .none || names[Int(slot)] == name { return slot }
            place = (place + 1) & mask
        }
    }

    /// Inserts a slot that is not in the table; its name must already be in `names`.
    package mutating func insert(_ slot: Slot, names: borrowing ContiguousArray<UInt128>) {
        if (count + 1) * 4 > slots.count * 3 { grow(names) }
        put(slot, names[Int(slot)])
        count += 1
    }

    /// Removes a slot; its name must still be in `names`.
    ///
    /// Later entries move up (Knuth, vol. 3, 6.4, algorithm R), so that no tombstones accumulate.
    package mutating func remove(_ slot: Slot, names: borrowing ContiguousArray<UInt128>) {
        var hole = Self.home(names[Int(slot)]) & mask
        while slots[hole] != slot {
            precondition(slots[hole] != .none, "a slot that is not in the table")
            hole = (hole + 1) & mask
        }
        var place = hole
        while true {
            place = (place + 1) & mask
            let other = slots[place]
            guard other != .none else { break }
            let home = Self.home(names[Int(other)]) & mask
            // It may move up unless its home lies after the hole, on the way to its place.
            guard (place &- home) & mask >= (place &- hole) & mask else { continue }
            slots[hole] = other
            hole = place
        }
        slots[hole] = .none
        count -= 1
    }

    private mutating func put(_ slot: Slot, _ name: UInt128) {
        var place = Self.home(name) & mask
        while slots[place] != .none { place = (place + 1) & mask }
        slots[place] = slot
    }

    private mutating func grow(_ names: borrowing ContiguousArray<UInt128>) {
        let old = slots
        slots = ContiguousArray(repeating: .none, count: old.count * 2)
        mask = slots.count - 1
        for slot in old where slot != .none { put(slot, names[Int(slot)]) }
    }

    private static func home(_ name: UInt128) -> Int { Int(truncatingIfNeeded: name.mixed >> 1) }
}

extension UInt128 {
    /// A hash of the value: names are parts of digests, but tests and traces use consecutive
    /// numbers.
    package var mixed: UInt64 {
        var mixed = UInt64(truncatingIfNeeded: self ^ (self >> 64))
        mixed = (mixed ^ (mixed >> 32)) &* 0x9E37_79B9_7F4A_7C15
        mixed = (mixed ^ (mixed >> 29)) &* 0xBF58_476D_1CE4_E5B9
        return mixed ^ (mixed >> 32)
    }
}
