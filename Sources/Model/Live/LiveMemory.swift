// The state of live lists that all loops share: the epochs of their names, resources that grow by
// parts, and resources that are announced but not available yet.
package import DurableState
package import HLS
package import Posix
package import Routing
package import Store
import Synchronization
package import URISyntax

/// The live lists of one daemon.
///
/// Any thread may use it; the heads of lists survive restarts.
package final class LiveMemory: Sendable {
    private struct State {
        var epochs = EpochTable()
        var lists: [ObjectKey: ListFacts] = [:]
        var saved: [ObjectKey: (list: EpochTable.List, at: Moment)] = [:]
        var places = LivePlaces()
    }

    /// The state of a list's last window apart from epochs.
    private struct ListFacts {
        var containers: [ObjectKey: LiveReading.Container] = [:]
        var hints: Set<ObjectKey> = []
        var targetDuration: Interval
        /// True if segments leave the list; false for lists that have ended and for events.
        var slides = false
    }

    private let state: Mutex<State>
    /// Held while rows are queued, so that the last row of a list is not that of an older reading.
    let saving = Mutex<Void>(())
    /// The most names that are processed under one lock.
    private static let mostAtOnce = 2_048
    /// Lets requests skip the lock while no list is live.
    private let isUsed = Atomic<Bool>(false)
    private let database: StateDatabase
    private let counters: Counters
    /// The multivariant playlists of live lists.
    package let parents = LiveParents()
    /// The shortest time between two writes of a list's head.
    ///
    /// After a restart, a sequence that goes back by less than a stream advances in this time is
    /// noticed all the same, by revalidation.
    private static let saveInterval = Interval.seconds(30)
    /// Lists last read longer ago than this are dropped at start.
    private static let keepInterval = Interval.seconds(14 * 86_400)
    /// Lists that have ended are dropped at start only after this time: their stored segments may
    /// be played long afterwards, and the next broadcast under the URL may be a year later.
    private static let keepIntervalOfEnded = Interval.seconds(400 * 86_400)

    /// Restores the lists of earlier runs into an empty table; blocks on the disk.
    package init(
        database: StateDatabase, counters: Counters, now: WallTime,
        epochs: EpochTable = EpochTable()
    ) {
        self.database = database
        self.counters = counters
        var state = State()
        state.epochs = epochs
        for record in database.records(LiveListRecord.self) {
            let list = EpochTable.List(record)
            guard let key = ObjectKey(bytes: record.key),
                now - list.received.wall
                    < (list.ended == nil ? Self.keepInterval : Self.keepIntervalOfEnded)
            else {
                database.remove(LiveListRecord.self, key: [.bytes(record.key)])
                continue
            }
            state.epochs.restore(list, key: key)
            state.places.note(key, named: key)
        }
        self.state = Mutex(state)
    }

    // MARK: Lookup

    /// Returns the current epoch of a name, given by its key without an epoch.
    package func epoch(of name: ObjectKey) -> Epoch {
        guard isUsed.load(ordering: .acquiring) else { return .first }
        return state.withLock { $0.epochs.epoch(of: name) }
    }

    /// Returns the epoch of a name at a number of a list that names it.
    package func epoch(of name: ObjectKey, at number: Int, in list: ObjectKey) -> Epoch {
        guard isUsed.load(ordering: .acquiring) else { return .first }
        return state.withLock { $0.epochs.epoch(of: name, at: number, in: list) }
    }

    /// Notes that a time shift window was read from a list: from now on, a name that the list gives
    /// again is told apart from its former meaning.
    package func noteExtended(_ list: ObjectKey) {
        state.withLock { $0.epochs.noteExtended(list) }
    }

    /// Returns the time since which a name has had its meaning; nil if no live list contains it.
    package func since(_ name: ObjectKey) -> Moment? {
        guard isUsed.load(ordering: .acquiring) else { return nil }
        return state.withLock { $0.epochs.since(name) }
    }

    /// Returns the time since which a name in the last window of a list has had its meaning; nil
    /// for a name that has left it.
    func sinceInWindow(_ name: ObjectKey) -> Moment? {
        guard isUsed.load(ordering: .acquiring) else { return nil }
        return state.withLock { $0.epochs.sinceInWindow(name) }
    }

    /// True if a name is shown by a list that is still read or has ended.
    func isShown(_ name: ObjectKey, at now: Monotonic) -> Bool {
        guard isUsed.load(ordering: .acquiring) else { return false }
        return state.withLock { $0.epochs.isShown(name, at: now) }
    }

    /// Returns the earliest time at which a list can have begun to show a name as an earlier run
    /// read it last; nil if it may have another meaning by now.
    func storedStart(of name: ObjectKey) -> WallTime? {
        guard isUsed.load(ordering: .acquiring) else { return nil }
        return state.withLock { $0.epochs.storedStart(of: name) }
    }

    /// True if a live list that segments leave contains a name, or did so a short time ago.
    package func isInWindow(_ name: ObjectKey) -> Bool {
        guard isUsed.load(ordering: .acquiring) else { return false }
        return state.withLock { state in
            guard let list = state.epochs.list(naming: name) else { return false }
            return state.lists[list]?.slides == true
        }
    }

    /// Returns the state of a list; nil for a list that is not live or has not been read for long.
    package func list(_ key: ObjectKey) -> EpochTable.List? {
        state.withLock { $0.epochs.lists[key] }
    }

    /// True if a playlist is or was live itself, or names a list that is or was.
    package func wasLive(_ key: ObjectKey) -> Bool {
        list(key) != nil || parents.contains(key)
    }

    /// True if no list is or was live.
    package var isEmpty: Bool { state.withLock { $0.epochs.lists.isEmpty } }

    /// True if any of the lists is or was live.
    package func contains(anyOf lists: [ObjectKey]) -> Bool {
        state.withLock { state in lists.contains { state.epochs.lists[$0] != nil } }
    }

    /// Returns the live terms of a name that is announced or grows by parts; nil for all others.
    package func terms(of name: ObjectKey) -> LiveTerms? {
        guard isUsed.load(ordering: .acquiring) else { return nil }
        return state.withLock { state in
            guard let list = state.epochs.list(naming: name), let facts = state.lists[list] else {
                return nil
            }
            let isHint = facts.hints.contains(name)
            let growth = facts.containers[name]
            guard isHint || growth != nil else { return nil }
            let hold = LivePosition.longestHold(facts.targetDuration)
            return LiveTerms(growth: growth, longestHold: isHint ? hold : nil)
        }
    }

    /// Returns how long an origin may hold a request for a list: three of its target durations.
    package func longestHold(of list: ObjectKey) -> Interval {
        let target =
            state.withLock { state in
                state.lists[list]?.targetDuration ?? state.epochs.lists[list]?.targetDuration
            } ?? .seconds(6)
        return LivePosition.longestHold(target)
    }

    /// Returns the epochs of the names in a list's last window, without those in their first epoch.
    package func epochs(in list: ObjectKey) -> [AbsoluteURL: Epoch] {
        guard isUsed.load(ordering: .acquiring) else { return [:] }
        let (epochs, table) = state.withLock { state -> ([AbsoluteURL: Epoch]?, EpochTable?) in
            state.epochs.count(in: list) > Self.mostAtOnce
                ? (nil, state.epochs) : (state.epochs.epochs(in: list), nil)
        }
        // A long list is searched in a copy, outside the lock, so that other threads do not wait.
        return epochs ?? table?.epochs(in: list) ?? [:]
    }

    /// Returns the relation of a list's last reading to the one before.
    package func relation(of list: ObjectKey) -> EpochTable.Relation? {
        state.withLock { $0.epochs.relation(of: list) }
    }

    // MARK: Links

    /// Returns the names for the paths of links into a list.
    ///
    /// - Parameters:
    ///   - list: the list that is served.
    ///   - asked: the requested list, which the links name.
    ///   - owner: the session that the list is kept for; nil for one that sessions share.
    ///   - isShifted: whether the numbers are those of a time shift window; these keep rising
    ///     whatever the origin does, and each segment keeps the initialization section that it was
    ///     read with.
    ///   - isCut: whether the list is served without some of its segments.
    ///   - movedFrom: the number from which on the segments of such a form have other numbers than
    ///     in the list; nil if all keep theirs.
    /// - Returns: nil for a list that neither is nor was live.
    package func names(
        in list: ObjectKey, named asked: ObjectKey, for owner: SessionID?, isShifted: Bool,
        isCut: Bool, movedFrom: Int?
    ) -> LiveNames? {
        state.withLock { state in
            guard let known = state.epochs.lists[list] else { return nil }
            if asked != list { state.places.note(list, named: asked, for: owner) }
            guard !isShifted else {
                return LiveNames(
                    list: (asked.listName, .first), sections: [:], movedFrom: movedFrom)
            }
            let sections = known.sections.map { ($0.number, $0.name) }
            return LiveNames(
                list: (asked.listName, known.epoch),
                sections: Dictionary(sections, uniquingKeysWith: { $1 }),
                sectionsByURL: isCut ? state.places.sectionNames(in: list) : nil,
                movedFrom: movedFrom)
        }
    }

    /// True if the last window of a list had an initialization section.
    package func hasMap(_ list: ObjectKey) -> Bool {
        state.withLock { $0.epochs.lists[list]?.sections.isEmpty == false }
    }

    /// Returns the byte ranges of the segments in a list's last window, ascending; of segments that
    /// a delta update skips, those of the last ones.
    package func ranges(in list: ObjectKey) -> [RangeEnd] {
        state.withLock { $0.places.ranges(in: list) }
    }

    /// Continues a list under another key, as the same stream.
    package func adopt(_ former: ObjectKey, as key: ObjectKey) {
        state.withLock { $0.epochs.adopt(former, as: key) }
    }

    /// Brings what an earlier run saved of a list up to the longer window that it saved: a crash
    /// may have lost the latest state of the list, and the epoch that a restart of its origin began.
    ///
    /// - Parameters:
    ///   - list: the list; nothing changes once this run has read it.
    ///   - shift: the saved window.
    ///   - takesNumbers: false for a list of which an older text is read next, that of the store.
    package func catchUp(_ list: ObjectKey, with shift: TimeShift, takesNumbers: Bool) {
        guard let epoch = shift.listEpoch, let newest = shift.segments.last else { return }
        state.withLock {
            $0.epochs.catchUp(
                list, with: epoch, end: newest.originNumber + 1, takesNumbers: takesNumbers)
        }
    }

    /// Returns the list that a session's link paths name; nil if it is not known.
    package func list(named name: UInt64, for session: SessionID) -> ObjectKey? {
        state.withLock { $0.places.list(named: name, for: session) }
    }

    /// Returns what the last reading of a list contained at a place; the link path names the epoch.
    package func find(
        _ place: LivePlace, role: ResourceRole, in list: (key: ObjectKey, epoch: Epoch)
    ) -> LivePlaces.Finding {
        state.withLock { state in
            state.places.find(place, role: role, in: list) { state.epochs.epoch(of: $0) }
        }
    }

    // MARK: Reading

    /// Where a reading is stored, and when it was fetched.
    package struct Place: Sendable {
        package let list: ObjectKey
        package let generation: UInt64
        package let times: EpochTable.Times
        /// The version of the key rules.
        let keyVersion: UInt64
    }

    /// True if this text of the list was already read; notes when it was received last.
    func knows(_ place: Place) -> Bool {
        state.withLock {
            $0.epochs.noteReceived(
                place.list, generation: place.generation, at: place.times.received)
        }
    }

    /// Applies a reading of a list.
    ///
    /// `key` makes the key of a name without its epoch.
    package func take(
        _ reading: LiveReading, at place: Place, key: (AbsoluteURL, ResourceRole) -> ObjectKey
    ) {
        let known = state.withLock {
            $0.epochs.knownNames(of: place.list, version: place.keyVersion)
        }
        let names = WindowNames(reading, known: known, key: key)
        var facts = ListFacts(
            targetDuration: reading.summary.targetDuration.map { Interval($0) } ?? .seconds(6),
            slides: reading.summary.isLive && reading.summary.playlistType != .event)
        for (name, key) in zip(reading.names, names.keys) {
            if name.isHint { facts.hints.insert(key) }
            guard name.isShared, !reading.containers.isEmpty else { continue }
            facts.containers[key] = reading.containers[name.place.url]
        }
        isUsed.store(true, ordering: .releasing)
        let isLong = reading.names.count > Self.mostAtOnce
        let outcome =
            isLong
            ? takeLong(reading, names, facts, at: place)
            : state.withLock { state in
                var taking = Self.begin(&state, reading, names, at: place)
                while state.epochs.goOn(&taking, names: .max) {}
                return Self.end(&state, taking, reading, names, facts, at: place)
            }
        if outcome.relation == .reset { counters.add(.epochsBegun) }
        let changed = outcome.isDue ? outcome.removed + [place.list] : outcome.removed
        if !changed.isEmpty { save(changed) }
    }

    /// Queues the rows of lists as they are now: another thread may have changed them since.
    ///
    /// Not under the lock of the state, as the row of a long list takes a while to make.
    private func save(_ lists: [ObjectKey]) {
        saving.withLock { _ in
            for key in lists {
                if let list = list(key) {
                    database.put(list.record(of: key))
                } else {
                    database.remove(LiveListRecord.self, key: [.bytes(key.bytes)])
                }
            }
        }
    }

    /// The result of applying a reading.
    private struct Outcome {
        let relation: EpochTable.Relation
        let removed: [ObjectKey]
        /// True if the list is due to be saved.
        let isDue: Bool
        /// What was replaced or dropped; released outside the lock, since freeing it is costly.
        let former: [(window: LivePlaces.Window?, facts: ListFacts?)]
    }

    /// Applies a reading in batches, releasing the lock between them for lookups.
    private func takeLong(
        _ reading: LiveReading, _ names: WindowNames, _ facts: ListFacts, at place: Place
    ) -> Outcome {
        var taking = state.withLock { Self.begin(&$0, reading, names, at: place) }
        while state.withLock({ $0.epochs.goOn(&taking, names: Self.mostAtOnce) }) {}
        return state.withLock { Self.end(&$0, taking, reading, names, facts, at: place) }
    }

    private static func begin(
        _ state: inout State, _ reading: LiveReading, _ names: WindowNames, at place: Place
    ) -> EpochTable.Taking {
        state.epochs.begin(
            reading, generation: place.generation, place.times,
            at: (place.list, names, place.keyVersion))
    }

    private static func end(
        _ state: inout State, _ taking: EpochTable.Taking, _ reading: LiveReading,
        _ names: WindowNames, _ facts: ListFacts, at place: Place
    ) -> Outcome {
        let dropped = state.epochs.end(taking)
        var former: [(window: LivePlaces.Window?, facts: ListFacts?)] = []
        // A newer reading may have been applied while this long one was.
        let isTaken = state.epochs.knows(place.list, generation: place.generation)
        if isTaken, taking.relation.isChange {
            let formerFacts = state.lists.updateValue(facts, forKey: place.list)
            let epochs = state.epochs
            let known = epochs.lists[place.list] ?? EpochTable.List()
            let window = state.places.take(reading, keys: names.keys, of: (place.list, known)) {
                epochs.epoch(of: $0)
            }
            former.append((window, formerFacts))
        }
        for list in dropped.lists {
            former.append((state.places.forget(list), state.lists.removeValue(forKey: list)))
            state.saved[list] = nil
        }
        for list in dropped.windows {
            let window = state.places.forgetWindow(of: list)
            former.append((window, state.lists.removeValue(forKey: list)))
        }
        return Outcome(
            relation: taking.relation, removed: dropped.lists, isDue: isDue(&state, place),
            former: former)
    }

    /// True if a list is due to be saved; notes that it is being saved.
    private static func isDue(_ state: inout State, _ place: Place) -> Bool {
        guard let list = state.epochs.lists[place.list] else { return false }
        if let last = state.saved[place.list], last.list.epoch == list.epoch,
            last.list.sections.map(\.name) == list.sections.map(\.name),
            last.list.ended == list.ended, last.list.namesEpoch == list.namesEpoch,
            place.times.received - last.at < saveInterval
        {
            return false
        }
        // The dates are left out: they are not compared, and long windows have many.
        var saved = list
        saved.dates = [:]
        state.saved[place.list] = (saved, place.times.received)
        return true
    }
}
