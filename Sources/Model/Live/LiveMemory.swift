// What all loops know of live lists: the epochs of their names, resources that grow by parts, and
// what is announced but not there yet.
package import DurableState
package import HLS
package import Posix
package import Routing
package import Store
import Synchronization
package import URISyntax

/// The live lists of one daemon.
///
/// Any thread may use it; the heads of lists are kept across restarts.
package final class LiveMemory: Sendable {
    private struct State {
        var epochs = EpochTable()
        var lists: [ObjectKey: ListFacts] = [:]
        var saved: [ObjectKey: (list: EpochTable.List, at: Moment)] = [:]
        var places = LivePlaces()
    }

    /// What the last window of a list tells beside epochs.
    private struct ListFacts {
        var containers: [ObjectKey: LiveReading.Container] = [:]
        var hints: Set<ObjectKey> = []
        var targetDuration: Interval
    }

    private let state: Mutex<State>
    /// The most names that are looked at before others may ask.
    private static let mostAtOnce = 2_048
    /// Lets requests pass without a look into the table while no list is live.
    private let isUsed = Atomic<Bool>(false)
    private let database: StateDatabase
    private let counters: Counters
    /// The head of a list is written at most so often: a sequence that goes back by less than what
    /// a stream goes on in this time is noticed after a restart all the same, by asking.
    private static let saveInterval = Interval.seconds(30)
    /// Lists that were read longer ago are forgotten at start.
    private static let keepInterval = Interval.seconds(14 * 86_400)

    /// Takes over what earlier runs knew; blocks on the disk.
    package init(database: StateDatabase, counters: Counters, now: WallTime) {
        self.database = database
        self.counters = counters
        var state = State()
        for record in database.records(LiveListRecord.self) {
            let list = EpochTable.List(record)
            guard let key = ObjectKey(bytes: record.key),
                now - list.received.wall < Self.keepInterval
            else {
                database.remove(LiveListRecord.self, key: [.bytes(record.key)])
                continue
            }
            state.epochs.restore(list, key: key)
            state.places.note(key, named: key)
        }
        self.state = Mutex(state)
    }

    // MARK: Asking

    /// The epoch in which a name is asked for now, by its key without an epoch.
    package func epoch(of name: ObjectKey) -> Epoch {
        guard isUsed.load(ordering: .acquiring) else { return .first }
        return state.withLock { $0.epochs.epoch(of: name) }
    }

    /// Since when a name stands for what it does; nil where no live list names it.
    package func since(_ name: ObjectKey) -> Moment? {
        guard isUsed.load(ordering: .acquiring) else { return nil }
        return state.withLock { $0.epochs.since(name) }
    }

    /// What is known of a list; nil for one that is none, or was not read for long.
    package func list(_ key: ObjectKey) -> EpochTable.List? {
        state.withLock { $0.epochs.lists[key] }
    }

    /// What a live list says of a name that it announces, or that grows by parts; nil for all others.
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

    /// How long an origin may hold a request for a list; three of its target durations.
    package func longestHold(of list: ObjectKey) -> Interval {
        let target = state.withLock { $0.lists[list]?.targetDuration } ?? .seconds(6)
        return LivePosition.longestHold(target)
    }

    /// The epochs of the names in a list's last window, without those that are in their first.
    package func epochs(in list: ObjectKey) -> [AbsoluteURL: Epoch] {
        guard isUsed.load(ordering: .acquiring) else { return [:] }
        let (epochs, table) = state.withLock { state -> ([AbsoluteURL: Epoch]?, EpochTable?) in
            state.epochs.count(in: list) > Self.mostAtOnce
                ? (nil, state.epochs) : (state.epochs.epochs(in: list), nil)
        }
        // Of a long list from a copy: nobody else may have to wait for that.
        return epochs ?? table?.epochs(in: list) ?? [:]
    }

    /// What the last reading of a list was, next to the one before.
    package func relation(of list: ObjectKey) -> EpochTable.Relation? {
        state.withLock { $0.epochs.relation(of: list) }
    }

    // MARK: Links

    /// What the links into a list are called.
    ///
    /// - Parameters:
    ///   - list: the list that is served.
    ///   - asked: the list that the player asked for, which names it.
    ///   - isShifted: whether numbers are those of a longer window: these go on rising whatever the
    ///     origin does, and what their segments are played with stays as it was read.
    /// - Returns: nil for a list that is none of a live stream, nor was.
    package func names(in list: ObjectKey, named asked: ObjectKey, isShifted: Bool) -> LiveNames? {
        state.withLock { state in
            guard let known = state.epochs.lists[list] else { return nil }
            if asked != list { state.places.note(list, named: asked) }
            guard !isShifted else {
                return LiveNames(list: (asked.listName, .first), sections: [:])
            }
            let sections = known.sections.map { ($0.number, $0.name) }
            return LiveNames(
                list: (asked.listName, known.epoch),
                sections: Dictionary(sections, uniquingKeysWith: { $1 }))
        }
    }

    /// Whether the last window of a list had an initialization section.
    package func hasMap(_ list: ObjectKey) -> Bool {
        state.withLock { $0.epochs.lists[list]?.sections.isEmpty == false }
    }

    /// Lets a list go on under another key, as the same stream.
    package func adopt(_ former: ObjectKey, as key: ObjectKey) {
        state.withLock { $0.epochs.adopt(former, as: key) }
    }

    /// What the last reading of a list named at a place.
    package func find(_ place: LivePlace, role: ResourceRole, in list: LiveListID)
        -> LivePlaces.Finding
    {
        state.withLock { state in
            guard let key = state.places.list(named: list.name) else { return .noList }
            return state.places.find(place, role: role, in: (key, list.epoch)) {
                state.epochs.epoch(of: $0)
            }
        }
    }

    // MARK: Reading

    /// The place of a reading in the store.
    package struct Place: Sendable {
        package let list: ObjectKey
        package let generation: UInt64
        package let times: EpochTable.Times
        /// Of the rules that keys are made by.
        let keyVersion: UInt64

        init(
            list: ObjectKey, generation: UInt64, times: EpochTable.Times, keyVersion: UInt64
        ) {
            self.list = list
            self.generation = generation
            self.times = times
            self.keyVersion = keyVersion
        }
    }

    /// Whether the list in this state was read already.
    func knows(_ place: Place) -> Bool {
        state.withLock { $0.epochs.knows(place.list, generation: place.generation) }
    }

    /// Takes in a reading of a list.
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
            targetDuration: reading.summary.targetDuration.map { Interval($0) } ?? .seconds(6))
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
        if let removed = outcome.removed {
            database.remove(LiveListRecord.self, key: [.bytes(removed.bytes)])
        }
        if let saved = outcome.saved { database.put(saved.record(of: place.list)) }
    }

    /// What taking in a reading has brought.
    private struct Outcome {
        let relation: EpochTable.Relation
        let removed: ObjectKey?
        let saved: EpochTable.List?
        /// Let go of outside the lock.
        var former: (window: LivePlaces.Window?, facts: ListFacts?)
    }

    /// Takes in a reading with pauses in which others may ask.
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
        let forgotten = state.epochs.end(taking)
        var former: (window: LivePlaces.Window?, facts: ListFacts?)
        if taking.relation != .same {
            former.facts = state.lists.updateValue(facts, forKey: place.list)
            let epochs = state.epochs
            let known = epochs.lists[place.list] ?? EpochTable.List()
            former.window = state.places.take(reading, keys: names.keys, of: (place.list, known)) {
                epochs.epoch(of: $0)
            }
        }
        if let forgotten {
            state.places.forget(forgotten)
            state.lists[forgotten] = nil
            state.saved[forgotten] = nil
        }
        return Outcome(
            relation: taking.relation, removed: forgotten, saved: due(&state, place),
            former: former)
    }

    /// The head of a list, where it is time to keep it.
    private static func due(_ state: inout State, _ place: Place) -> EpochTable.List? {
        guard let list = state.epochs.lists[place.list] else { return nil }
        if let last = state.saved[place.list], last.list.epoch == list.epoch,
            last.list.sections.map(\.name) == list.sections.map(\.name),
            place.times.received - last.at < saveInterval
        {
            return nil
        }
        state.saved[place.list] = (list, place.times.received)
        return list
    }
}
