// The titles that objects belong to: the use of each, and its media in the order of arrival.

/// The use of a title.
struct TitleRecord {
    /// Its media, in the order of arrival from the front; victims are taken from the back.
    var media = SlotQueue()
    /// The number of its structure objects and live segments; a title without objects is removed.
    var structures: UInt32 = 0
    /// Its index among the titles that have media.
    var place = Slot.none
    /// The time of the last use, in seconds since 1970.
    var lastUsed: UInt32 = 0
    /// The sequence number of the last use among all titles, to order uses within one second.
    var useNumber: UInt32 = 0
    /// The start of the visit that the last use belongs to; 0 if the title was never read.
    var visitStart: UInt32 = 0
    /// The weight of all visits before the last one, at the time that one began.
    var weight: Float = 0
}

/// Titles in slots, found by name; those with media are listed, so that some can be drawn.
struct TitleShelf {
    private(set) var names = ContiguousArray<UInt128>()
    var records = ContiguousArray<TitleRecord>()
    /// The slots of the titles that have media, in no order.
    private(set) var withMedia = ContiguousArray<Slot>()
    private var table = NameTable()
    private var free = ContiguousArray<Slot>()

    var memoryBytes: Int {
        names.capacity * 16 + records.capacity * MemoryLayout<TitleRecord>.stride
            + (withMedia.capacity + free.capacity) * 4 + table.memoryBytes
    }

    /// Returns the slot of a title, and adds the title if it is new.
    mutating func slot(of name: UInt128) -> Slot {
        let known = table.find(name, in: names)
        guard known == .none else { return known }
        let slot: Slot
        if let used = free.popLast() {
            slot = used
            names[Int(slot)] = name
            records[Int(slot)] = TitleRecord()
        } else {
            slot = Slot(names.count)
            if names.count == names.capacity {
                names.reserveCapacity(names.count + names.count / 4 + 16)
                records.reserveCapacity(names.capacity)
            }
            names.append(name)
            records.append(TitleRecord())
        }
        table.insert(slot, names: names)
        return slot
    }

    /// Updates the list of titles with media, and removes a title that has no objects left.
    mutating func updateMembership(_ slot: Slot) {
        let index = Int(slot)
        let (hasMedia, place) = (records[index].media.count > 0, records[index].place)
        if hasMedia, place == .none {
            records[index].place = Slot(withMedia.count)
            withMedia.append(slot)
        } else if !hasMedia, place != .none {
            let last = withMedia.removeLast()
            if last != slot {
                withMedia[Int(place)] = last
                records[Int(last)].place = place
            }
            records[index].place = .none
        }
        guard !hasMedia, records[index].structures == 0 else { return }
        table.remove(slot, names: names)
        free.append(slot)
    }
}
