// The titles that objects belong to: how each was used, and its media in the order of arrival.

/// How a title was used.
struct TitleRecord {
    /// Its media, the first that arrived in front; victims are taken at the back.
    var media = SlotQueue()
    /// Structure objects that are kept; a title without any object is forgotten.
    var structures: UInt32 = 0
    /// Its place among the titles that have media.
    var place = Slot.none
    /// Seconds since 1970.
    var lastUsed: UInt32 = 0
    /// Numbers the uses of all titles, for those of one second.
    var useNumber: UInt32 = 0
    /// When the visit began that the last use belongs to; 0 when nobody has read anything yet.
    var visitStart: UInt32 = 0
    /// What the visits before the last one weighed when that began.
    var weight: Float = 0
}

/// Titles in slots, found by their names; those with media are listed, so that some can be drawn.
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

    /// The slot of a title, which is entered if it is new.
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

    /// Lists or unlists a title after its media changed, and forgets it when it has no object left.
    mutating func settle(_ slot: Slot) {
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
