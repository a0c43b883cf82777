// The time since which each name in live playlists has had its current meaning. Pure: readings of
// lists go in, epochs come out.
//
// Restarted origins count from 0 again and give the names of segments a second time; others write
// segments into a ring of names. A stored response is trusted only if it arrived after its name was
// first seen with its current meaning:
//
// | a reading of a list, next to the one before | its names |
// |---|---|
// | continues it (`goesOn`) | keep their meaning |
// | may continue it, or is cut (`doubtful`) | are revalidated before a stored response is used |
// | renumbers or redates segments, or is live after its end (`reset`) | belong to a new epoch |
// | names nothing (`empty`) | stay as they are, like the list |
//
// A list that goes on may give a name again: a ring of files, a section behind a discontinuity. It
// is revalidated then. Of a list that a longer window is read from, the name begins an epoch of its
// own, since the window still lists what it meant before.
package import HLS
import Posix
package import Store
package import URISyntax

/// The names of all live lists of one daemon.
package struct EpochTable: Sendable {
    package private(set) var lists: [ObjectKey: List] = [:]
    private(set) var readings: [ObjectKey: Reading] = [:]
    /// The estimated memory of all last windows in bytes; names of several lists count once for
    /// each.
    private(set) var windowBytes = 0
    private(set) var names: [ObjectKey: Name] = [:]
    private var left = LeftNames()

    /// False while every name is in its first epoch.
    private var hasEpochs = false

    /// The latest wall-clock time at which a reading was received.
    private var latest = WallTime(nanoseconds: 0)

    /// How many names are remembered after they have left their windows.
    ///
    /// Players that lag still request them; a forgotten one is treated like one that was never
    /// seen.
    static let mostLeft = 2_048

    /// The most names that are remembered, of about 200 bytes each; beyond it, those of the lists
    /// read longest ago are dropped.
    private let mostNames: Int
    /// The most bytes of all last windows, by `windowBytes`; beyond it, those of the lists read
    /// longest ago are dropped.
    ///
    /// The list that was read last keeps its window, however long that is.
    private let mostBytes: Int
    private let mostHeads: Int

    /// The most lists that are remembered, of about 500 bytes each without their windows; beyond
    /// it, those read longest ago are dropped.
    ///
    /// A dropped list is a new one when it is read again: its origin may have counted anew since.
    package static let mostLists = 16_384

    package init(
        mostNames: Int = 262_144, mostBytes: Int = 256 << 20, mostLists: Int = EpochTable.mostLists
    ) {
        self.mostNames = mostNames
        self.mostBytes = mostBytes
        mostHeads = mostLists
    }

    // MARK: Lookup

    /// Returns the current epoch of a name.
    package func epoch(of name: ObjectKey) -> Epoch { names[name]?.epoch ?? .first }

    /// Returns the time after which a stored response must have been received to be trusted; nil if
    /// no live list read in this run contains the name.
    package func since(_ name: ObjectKey) -> Moment? { names[name]?.since }

    /// Returns the list whose reading contained the name last.
    package func list(naming name: ObjectKey) -> ObjectKey? { names[name]?.last.list }

    /// Returns the epochs of a list's names in its texts, without those in their first epoch.
    package func epochs(in list: ObjectKey) -> [AbsoluteURL: Epoch] {
        guard hasEpochs, let reading = readings[list] else { return [:] }
        var epochs: [AbsoluteURL: Epoch] = [:]
        for window in [reading.olderNames, reading.names] {
            for (place, key) in zip(window.places, window.keys) {
                guard let epoch = names[key]?.epoch, epoch != .first else { continue }
                epochs[place.url] = epoch
            }
        }
        return epochs
    }

    /// Notes that a longer window was read from a list.
    mutating func noteExtended(_ list: ObjectKey) { lists[list]?.isExtended = true }

    /// Returns the relation of the last reading of a list; nil if it was not read in this run.
    package func relation(of list: ObjectKey) -> Relation? { readings[list]?.relation }

    /// Returns the last window's names with their keys; empty if the key rules have changed since.
    func knownNames(of list: ObjectKey, version: UInt64) -> WindowNames {
        guard let reading = readings[list], reading.keyVersion == version else {
            return WindowNames()
        }
        return reading.names
    }

    /// True if this reading was already applied.
    func knows(_ list: ObjectKey, generation: UInt64) -> Bool {
        readings[list]?.generation == generation
    }

    /// Notes that a text which may be known was received, anew or as unchanged.
    ///
    /// - Returns: true if this reading was already applied.
    mutating func noteReceived(
        _ list: ObjectKey, generation: UInt64, at received: Moment
    ) -> Bool {
        guard let index = readings.index(forKey: list),
            readings.values[index].generation == generation
        else { return false }
        // Most texts are read several times between two receptions.
        if let steady = received.steady, readings.values[index].confirmed != steady {
            readings.values[index].confirmed = steady
        }
        return true
    }

    // MARK: Readings

    /// Restores the state that an earlier run saved of a list.
    package mutating func restore(_ list: List, key: ObjectKey) {
        guard lists.count < mostHeads else { return }
        lists[key] = list
        latest = max(latest, list.received.wall)
    }

    /// Copies a list's state to an unknown key: the same stream under another URL.
    package mutating func adopt(_ former: ObjectKey, as key: ObjectKey) {
        guard lists[key] == nil, let list = lists[former] else { return }
        restore(list, key: key)
    }

    /// Brings the restored state of a list up to a longer window, as `List.catchUp` does.
    mutating func catchUp(
        _ list: ObjectKey, with epoch: Epoch, end: Int, takesNumbers: Bool
    ) {
        lists[list]?.catchUp(with: epoch, end: end, takesNumbers: takesNumbers)
    }

    /// A reading that is being applied in batches of names, so that a long one does not hold up
    /// lookups.
    ///
    /// Each name changes on its own; the list keeps its former state until `end`.
    package struct Taking {
        package let relation: Relation
        fileprivate let reading: LiveReading
        fileprivate let generation: UInt64
        fileprivate let place: (list: ObjectKey, names: WindowNames, version: UInt64)
        fileprivate let change: Change
        fileprivate var list: List
        /// The names that the reading before showed.
        fileprivate let before: WindowNames
        /// The numbers of the segments that the reading skips; nil if it skips none that are known.
        fileprivate let skips: Range<Int>?
        /// The keys of the names that may have left the window.
        fileprivate let former: [ObjectKey]
        /// The names of `before` that the reading skips.
        fileprivate var skipped: [SkippedNames.Name] = []
        fileprivate var taken = 0
        fileprivate var looked = 0
        fileprivate var noted: Set<ObjectKey> = []
    }

    /// Begins to apply a reading.
    ///
    /// - Parameters:
    ///   - reading: the content of the list.
    ///   - generation: distinguishes this text of the list from any other.
    ///   - times: when it was requested and received.
    ///   - place: the list's key, the names of the reading with theirs, and the version of the
    ///     rules that made them.
    /// - Returns: the reading, for `goOn` and `end`.
    package func begin(
        _ reading: LiveReading, generation: UInt64, _ times: Times,
        at place: (list: ObjectKey, names: WindowNames, version: UInt64)
    ) -> Taking {
        var former = lists[place.list]
        let found = self.relation(
            of: reading, at: times.received, in: (place.list, place.names.keys))
        var relation = found.relation
        // Another list may have begun the epoch since this one was whole.
        if relation == .reset, let whole = former?.whole { former?.received = whole.received }
        let isUnread = relation == .same && readings[place.list] == nil
        if isUnread { relation = .doubtful }
        var list = former ?? List()
        // The text with which the list ended in an earlier run: it says nothing of a later time.
        let isRepeated = isUnread && former?.ended != nil && former?.ended == reading.ended
        if relation == .reset {
            list.sections = []
            list.epoch =
                newerEpoch(of: place.names.keys, since: list.received, after: list.epoch)
                ?? .beginning(at: times.requested.wall.seconds, after: list.epoch)
        }
        if let known = list.namesEpoch, readings[place.list] == nil {
            // Nothing is known of its names: each may have been given again since.
            list.namesEpoch = .beginning(at: times.requested.wall.seconds, after: known)
        }
        if relation.isChange { list.note(reading, at: isRepeated ? list.received : times.received) }
        list.whole = found.whole
        list.keysAtEdge.beginText()
        let since =
            isRepeated
            ? min(times.requested, list.received) : Self.since(times.requested, latest: latest)
        let change = Change(
            relation: relation, epoch: list.epoch, former: former.map(Former.init),
            list: place.list, start: reading.summary.mediaSequence, times: times, since: since)
        let before = readings[place.list] ?? Reading()
        let skips = Self.skips(reading, relation)
        return Taking(
            relation: relation, reading: reading, generation: generation, place: place,
            change: change, list: list, before: before.names, skips: skips,
            former: skips == nil && relation != .same ? before.keys : before.names.keys)
    }

    /// Applies the next batch of names.
    ///
    /// - Returns: false when none are left; `end` must follow.
    package mutating func goOn(_ taking: inout Taking, names count: Int) -> Bool {
        guard taking.relation.isChange else { return false }
        let keys = taking.place.names.keys
        if taking.taken < keys.count {
            let end = taking.taken + min(count, keys.count - taking.taken)
            // A value that is changed in the loop would be copied for each name.
            let (change, reading) = (taking.change, taking.reading)
            var (namesEpoch, edge) = (taking.list.namesEpoch, taking.list.keysAtEdge)
            for index in taking.taken..<end {
                let (name, key) = (reading.names[index], keys[index])
                let replaces = name.role == .key && edge.take(key, at: name.sequence)
                if let epoch = take(name, key, change, namesEpoch, replacesKey: replaces) {
                    namesEpoch = max(namesEpoch ?? .first, epoch)
                }
            }
            if end == keys.count { edge.endText(skipsSegments: reading.summary.isSkipDelta) }
            (taking.list.namesEpoch, taking.list.keysAtEdge) = (namesEpoch, edge)
            taking.taken = end
            return true
        }
        let former = taking.former
        let end = taking.looked + min(count, former.count - taking.looked)
        if let skips = taking.skips {
            // The last place of a name counts, with which it leaves the window.
            for place in taking.looked..<end { look(at: former.count - 1 - place, skips, &taking) }
        } else {
            let received = taking.change.times.received
            left.add(former[taking.looked..<end], of: names, unlessAt: received, &taking.noted)
        }
        taking.looked = end
        forgetLeft()
        return end < former.count
    }

    /// Notes whether a name of the window before is skipped by a reading, or has left.
    private mutating func look(at index: Int, _ skips: Range<Int>, _ taking: inout Taking) {
        let (key, numbers) = (taking.former[index], taking.before.lastNumbers)
        guard let name = names[key], name.last.time != taking.change.times.received,
            taking.noted.insert(key).inserted
        else { return }
        let last = index < numbers.count ? numbers[index] : nil
        guard let last, last >= skips.lowerBound, !skips.isEmpty else {
            return left.add(key, lastSeen: name.last.time)
        }
        let number = min(last, skips.upperBound - 1)
        taking.skipped.append(.init(key: key, lastNumber: number, lastSeen: name.last.time))
    }

    /// Finishes a reading.
    ///
    /// - Returns: what was dropped to make room.
    package mutating func end(_ taking: Taking) -> Dropped {
        let list = taking.place.list
        // A newer reading may have been applied meanwhile.
        if let known = lists[list], known.received != taking.change.former?.received,
            known.received > taking.list.received
        {
            return Dropped()
        }
        guard taking.relation != .empty else {
            readings[list]?.noteEmpty(taking.generation)
            return Dropped()
        }
        // An older text lacks the newest names; links of both need the epochs of theirs.
        if taking.relation == .same, let reading = readings[list], let known = lists[list],
            taking.change.times.received < known.received
        {
            windowBytes += taking.place.names.byteCount - reading.olderNames.byteCount
            readings[list]?.olderNames = taking.place.names
            return Dropped(windows: forgetNames(besides: list))
        }
        let skipped = skippedNames(after: taking)
        let reading = Reading(
            generation: taking.generation, relation: taking.relation, names: taking.place.names,
            skipped: skipped, keyVersion: taking.place.version,
            confirmed: taking.change.times.received.steady)
        windowBytes += reading.byteCount
        readings[list] = reading
        guard taking.relation != .same else {
            return Dropped(windows: forgetNames(besides: list))
        }
        lists[list] = taking.list
        latest = max(latest, taking.list.received.wall)
        if taking.list.epoch != .first || taking.list.namesEpoch != nil { hasEpochs = true }
        let oldest = forgetOldest()
        return Dropped(lists: oldest, windows: forgetNames(besides: list))
    }

    private mutating func removeReading(of list: ObjectKey) -> Reading? {
        guard let reading = readings.removeValue(forKey: list) else { return nil }
        windowBytes -= reading.byteCount
        return reading
    }

    /// Returns the number of names that `epochs(in:)` looks up.
    package func count(in list: ObjectKey) -> Int { readings[list]?.count ?? 0 }

    /// Returns the names of a list that its window has after a reading and its text does not show.
    private mutating func skippedNames(after taking: Taking) -> SkippedNames {
        // Taken out of the table, so that they are not copied.
        var skipped = removeReading(of: taking.place.list)?.skipped ?? SkippedNames()
        guard taking.relation != .same else { return skipped }
        // Those of a full list were looked at with the others.
        guard let skips = taking.skips else { return SkippedNames() }
        for name in skipped.add(taking.skipped, windowFrom: skips.lowerBound) {
            left.add(name.key, lastSeen: name.lastSeen)
        }
        forgetLeft()
        return skipped
    }

    /// Drops the names that left their windows first, unless they have returned since.
    private mutating func forgetLeft() {
        while let (key, lastSeen) = left.removeExcess() {
            if names[key]?.last.time == lastSeen { names[key] = nil }
        }
    }

    /// Drops the windows of the lists read longest ago beyond the limits, except that of `list`,
    /// with their names, except those that a later reading of another list contains.
    ///
    /// The epochs of the lists stay. An eighth of what is exceeded is made free, so that few
    /// readings cause a search. Returns the lists whose readings were dropped.
    private mutating func forgetNames(besides list: ObjectKey) -> [ObjectKey] {
        let (hasManyNames, hasManyBytes) = (names.count > mostNames, windowBytes > mostBytes)
        guard hasManyNames || hasManyBytes else { return [] }
        let leftNames = hasManyNames ? mostNames - mostNames / 8 : .max
        let leftBytes = hasManyBytes ? mostBytes - mostBytes / 8 : .max
        let others = readings.keys.filter { $0 != list }.compactMap { key in
            lists[key].map { (key: key, received: $0.received) }
        }
        var dropped: [ObjectKey] = []
        for (key, _) in others.sorted(by: { $0.received < $1.received }) {
            guard names.count > leftNames || windowBytes > leftBytes else { break }
            for name in removeReading(of: key)?.keys ?? [] where names[name]?.last.list == key {
                names[name] = nil
            }
            lists[key]?.forgetDates()
            dropped.append(key)
        }
        return dropped
    }

    /// Returns the epoch after `former` that another list with the same names has entered since a
    /// time.
    private func newerEpoch(
        of keys: some Collection<ObjectKey>, since time: Moment, after former: Epoch
    ) -> Epoch? {
        keys.lazy.compactMap { names[$0] }.filter { $0.since > time && $0.epoch > former }
            .map(\.epoch).max()
    }

    /// Applies a name of a reading, as `Name.take` does; `first` is the least epoch of a name that is
    /// not known.
    private mutating func take(
        _ name: LiveReading.Name, _ key: ObjectKey, _ change: Change, _ first: Epoch?,
        replacesKey: Bool
    ) -> Epoch? {
        guard let index = names.index(forKey: key) else {
            names[key] = Name(name, in: max(change.epoch, first ?? .first), change)
            return nil
        }
        return names.values[index].take(name, change, replacesKey: replacesKey)
    }

    /// Drops the lists read longest ago beyond the limit and a few more, so that few readings cause
    /// a search.
    private mutating func forgetOldest() -> [ObjectKey] {
        guard lists.count > mostHeads else { return [] }
        let excess = lists.count - mostHeads + mostHeads / 64
        let oldest = lists.map { (key: $0.key, received: $0.value.received) }
            .sorted { $0.received < $1.received }.prefix(excess).map(\.key)
        var noted: Set<ObjectKey> = []
        for key in oldest {
            lists[key] = nil
            let keys = removeReading(of: key)?.keys ?? []
            left.add(keys[...], of: names, unlessAt: nil, &noted)
        }
        return oldest
    }
}
