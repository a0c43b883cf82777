// Since when each name in live playlists stands for what it stands for now. Pure: readings of lists
// go in, epochs come out.
//
// Origins that are started anew count from 0 again and give the names of segments a second time;
// others write segments into a ring of names. What is stored under a name is believed only if it
// came after the name was first seen to mean what it means now:
//
// | a reading of a list, next to the one before | its names |
// |---|---|
// | goes on | stand for what they stood for |
// | may have gone on (`doubtful`) | are asked about before what is stored is used |
// | counts anew, or dates its segments anew (`reset`) | stand for something new: a new epoch |
package import HLS
package import Posix
package import Store
package import URISyntax

/// The names of all live lists of one daemon.
package struct EpochTable: Sendable {
    /// What a reading was, next to the one before; the raw value is what `why` shows.
    package enum Relation: String, Sendable {
        case first
        /// The same bytes, or a reading that came before the last.
        case same
        case goesOn = "goes-on"
        case doubtful
        case reset
    }

    /// When a reading was asked for and when it came.
    package struct Times: Sendable {
        let requested: Moment
        package let received: Moment

        init(requested: WallTime, received: WallTime, steady: SteadyTimes? = nil) {
            self.requested = Moment(wall: requested, steady: steady?.requested)
            self.received = Moment(wall: received, steady: steady?.received)
        }
    }

    /// What is known of one list; what is kept across restarts.
    package struct List: Sendable, Equatable {
        package var epoch = Epoch.first
        /// Media sequence numbers of the last window; `end` is exclusive.
        package var start = 0
        package var end = 0
        package var targetDuration = Interval.seconds(6)
        /// When segments of the last window begin, in milliseconds since 1970, by number; of one
        /// only after a restart.
        var dates: [Int: Int] = [:]
        var discontinuitySequence = 0
        /// When the last reading came.
        package var received = Moment(wall: WallTime(nanoseconds: 0))
        /// The initialization sections of the last window, with the names that their paths show.
        var sections: [LiveSection] = []
    }

    /// What is known of one name.
    private struct Name: Sendable {
        var epoch: Epoch
        /// What is stored is of this epoch if it came later.
        var since: Moment
        var lastSeen: Moment
        var list: ObjectKey
        /// Nil where it stands in many places.
        var sequence: Int?
    }

    private struct Reading: Sendable {
        var generation: UInt64 = 0
        var relation = Relation.first
        /// The last window's names, so that only new ones are hashed.
        var names = WindowNames()
        var keyVersion: UInt64 = 0
    }

    package private(set) var lists: [ObjectKey: List] = [:]
    private var readings: [ObjectKey: Reading] = [:]
    private var names: [ObjectKey: Name] = [:]
    /// Names that have left their windows, the first to leave first.
    private var left: [(key: ObjectKey, lastSeen: Moment)] = []
    private var firstLeft = 0

    /// False while every name is in its first epoch.
    private var hasEpochs = false

    /// The latest time of the wall clock at which a reading came.
    private var latest = WallTime(nanoseconds: 0)

    /// How many names are known after they have left their windows.
    ///
    /// Players that are behind still ask for them; a forgotten one is asked about like one that was
    /// never seen.
    static let mostLeft = 2_048

    /// The most names that are known; one more, and all are forgotten.
    static let mostNames = 131_072

    /// The most lists that are known; the one that was read longest ago goes first.
    package static let mostLists = 1_024

    // MARK: Asking

    /// The epoch that a name is in now.
    package func epoch(of name: ObjectKey) -> Epoch { names[name]?.epoch ?? .first }

    /// What is stored under a name is believed if it came after this; nil where no live list that
    /// was read in this run names it.
    package func since(_ name: ObjectKey) -> Moment? { names[name]?.since }

    /// The list that named a name last.
    package func list(naming name: ObjectKey) -> ObjectKey? { names[name]?.list }

    /// The epochs of the names in a list's last window, without those that are in their first.
    package func epochs(in list: ObjectKey) -> [AbsoluteURL: Epoch] {
        guard hasEpochs, let reading = readings[list] else { return [:] }
        var epochs: [AbsoluteURL: Epoch] = [:]
        for (place, key) in zip(reading.names.places, reading.names.keys) {
            guard let epoch = names[key]?.epoch, epoch != .first else { continue }
            epochs[place.url] = epoch
        }
        return epochs
    }

    /// What the last reading of a list was; nil for one not read in this run.
    package func relation(of list: ObjectKey) -> Relation? { readings[list]?.relation }

    /// The last window's names with their keys, where rules have not changed since.
    func knownNames(of list: ObjectKey, version: UInt64) -> WindowNames {
        guard let reading = readings[list], reading.keyVersion == version else {
            return WindowNames()
        }
        return reading.names
    }

    /// Whether this reading was taken in already.
    func knows(_ list: ObjectKey, generation: UInt64) -> Bool {
        readings[list]?.generation == generation
    }

    // MARK: Taking in

    /// Takes up what an earlier run knew of a list.
    package mutating func restore(_ list: List, key: ObjectKey) {
        guard lists.count < Self.mostLists else { return }
        lists[key] = list
        latest = max(latest, list.received.wall)
    }

    /// Takes what is known of a list for another, of which nothing is known: the same stream under
    /// another URL.
    package mutating func adopt(_ former: ObjectKey, as key: ObjectKey) {
        guard lists[key] == nil, let list = lists[former] else { return }
        restore(list, key: key)
    }

    /// Takes in a reading.
    ///
    /// - Parameters:
    ///   - reading: what the list says.
    ///   - generation: tells this text from any other of the list.
    ///   - times: when it was asked for and when it came.
    ///   - place: the list's key, the names of the reading with theirs, and the version of the rules
    ///     that made them.
    /// - Returns: what it was next to the last, and the list that was forgotten for it.
    package mutating func take(
        _ reading: LiveReading, generation: UInt64, _ times: Times,
        at place: (list: ObjectKey, names: WindowNames, version: UInt64)
    ) -> (relation: Relation, forgotten: ObjectKey?) {
        var taking = begin(reading, generation: generation, times, at: place)
        while goOn(&taking, names: .max) {}
        return (taking.relation, end(taking))
    }

    /// A reading that is being taken in, some names at a time, so that a long one does not keep others
    /// from asking.
    ///
    /// Each name is told apart by itself; the list is as it was before until `end`.
    package struct Taking {
        package let relation: Relation
        fileprivate let reading: LiveReading
        fileprivate let generation: UInt64
        fileprivate let place: (list: ObjectKey, names: WindowNames, version: UInt64)
        fileprivate let change: Change
        fileprivate let list: List
        /// Names of the window before.
        fileprivate let before: WindowNames
        fileprivate var taken = 0
        fileprivate var looked = 0
        fileprivate var noted: Set<ObjectKey> = []
    }

    /// Begins with a reading, as `take` gets it.
    package func begin(
        _ reading: LiveReading, generation: UInt64, _ times: Times,
        at place: (list: ObjectKey, names: WindowNames, version: UInt64)
    ) -> Taking {
        let former = lists[place.list]
        var relation = Self.relation(of: reading, at: times.received, to: former)
        if relation == .same, readings[place.list] == nil { relation = .doubtful }
        var list = former ?? List()
        if relation == .reset {
            list.sections = []
            list.epoch =
                epochTold(by: place.names.keys, since: list.received, after: list.epoch)
                ?? .beginning(at: times.requested.wall.seconds, after: list.epoch)
        }
        if relation != .same { list.note(reading, at: times.received) }
        let change = Change(
            relation: relation, epoch: list.epoch, former: former, list: place.list, times: times,
            since: Self.since(times.requested, latest: latest))
        return Taking(
            relation: relation, reading: reading, generation: generation, place: place,
            change: change, list: list, before: readings[place.list]?.names ?? WindowNames())
    }

    /// Takes in some of the names that are left.
    ///
    /// - Returns: false when there are no more, and `end` has its turn.
    package mutating func goOn(_ taking: inout Taking, names count: Int) -> Bool {
        guard taking.relation != .same else { return false }
        let keys = taking.place.names.keys
        if taking.taken < keys.count {
            let end = taking.taken + min(count, keys.count - taking.taken)
            for index in taking.taken..<end {
                take(taking.reading.names[index], keys[index], taking.change)
            }
            taking.taken = end
            return true
        }
        let former = taking.before.keys
        let end = taking.looked + min(count, former.count - taking.looked)
        let received = taking.change.times.received
        noteLeft(former[taking.looked..<end], at: received, noted: &taking.noted)
        taking.looked = end
        forgetLeft()
        return end < former.count
    }

    /// Ends with a reading.
    ///
    /// - Returns: the list that was forgotten for it.
    package mutating func end(_ taking: Taking) -> ObjectKey? {
        let list = taking.place.list
        // A newer reading may have come meanwhile.
        if let known = lists[list], known.received != taking.change.former?.received,
            known.received > taking.list.received
        {
            return nil
        }
        readings[list] = Reading(
            generation: taking.generation, relation: taking.relation, names: taking.place.names,
            keyVersion: taking.place.version)
        guard taking.relation != .same else { return nil }
        lists[list] = taking.list
        latest = max(latest, taking.list.received.wall)
        if taking.list.epoch != .first { hasEpochs = true }
        return forgetOldest()
    }

    /// The number of names in a list's last window.
    package func count(in list: ObjectKey) -> Int { readings[list]?.names.keys.count ?? 0 }

    /// Notes which names of a window are not in the one that came at a time; all of them without one.
    private mutating func noteLeft(
        _ keys: ArraySlice<ObjectKey>, at received: Moment?, noted: inout Set<ObjectKey>
    ) {
        for key in keys {
            guard let name = names[key], name.lastSeen != received, noted.insert(key).inserted
            else { continue }
            left.append((key, name.lastSeen))
        }
    }

    /// Forgets the names that left first, unless they have come again since.
    private mutating func forgetLeft() {
        while left.count - firstLeft > Self.mostLeft {
            let (key, lastSeen) = left[firstLeft]
            if names[key]?.lastSeen == lastSeen { names[key] = nil }
            firstLeft += 1
        }
        if firstLeft > Self.mostLeft {
            left.removeFirst(firstLeft)
            firstLeft = 0
        }
        guard names.count > Self.mostNames else { return }
        names = [:]
        left = []
        firstLeft = 0
    }

    /// The epoch after `former` that another list with the same names has told of since a time.
    private func epochTold(
        by keys: some Collection<ObjectKey>, since time: Moment, after former: Epoch
    ) -> Epoch? {
        keys.lazy.compactMap { names[$0] }.filter { $0.since > time && $0.epoch > former }
            .map(\.epoch).max()
    }

    fileprivate struct Change {
        let relation: Relation
        let epoch: Epoch
        let former: List?
        let list: ObjectKey
        let times: Times
        /// Since when its names stand for something new, where they do.
        let since: Moment
    }

    private mutating func take(_ name: LiveReading.Name, _ key: ObjectKey, _ change: Change) {
        let sequence =
            name.isShared || name.role == .initialization || name.role == .key
            ? nil : name.sequence
        guard let index = names.index(forKey: key) else {
            names[key] = Name(
                epoch: change.epoch, since: change.since,
                lastSeen: change.times.received, list: change.list, sequence: sequence)
            return
        }
        var known = names.values[index]
        // Another list, or another place in this one, may have told of the change already. A doubt
        // of another list is no new epoch.
        let isTold =
            change.former.map { former in
                known.since > former.received
                    && (change.relation != .reset || known.epoch > former.epoch)
            } ?? false
        if !isTold {
            switch change.relation {
            case .reset:
                known.epoch =
                    known.epoch < change.epoch
                    ? change.epoch
                    : .beginning(at: change.times.requested.wall.seconds, after: known.epoch)
                known.since = change.since
            case .doubtful:
                known.since = change.since
            case .first, .same, .goesOn:
                if known.epoch < change.epoch {
                    // First seen again some time after its list began to count anew.
                    known.epoch = change.epoch
                    known.since = change.since
                } else if isDoubtful(name, known, sequence, change) {
                    known.since = change.since
                }
            }
        }
        // A name that stands in two places of one window is not told apart by its number.
        let isRepeated =
            known.list == change.list && known.lastSeen == change.times.received
            && known.sequence != sequence
        known.sequence = isRepeated ? nil : sequence
        known.list = change.list
        known.lastSeen = change.times.received
        names.values[index] = known
    }

    /// Whether a name in a list that goes on may stand for something new nevertheless.
    private func isDoubtful(
        _ name: LiveReading.Name, _ known: Name, _ sequence: Int?, _ change: Change
    ) -> Bool {
        // Nobody watched it for so long that it may have been given again.
        let silence = change.times.received - known.lastSeen
        if known.list != change.list || change.former == nil { return silence > .seconds(30) }
        // A ring of names, or an advertisement that comes again.
        if let former = known.sequence, let sequence, former != sequence {
            return known.lastSeen != change.times.received
        }
        // Named before the list went back a little: by a cache that was behind, or by a new encoder.
        if let sequence, let former = change.former, sequence >= former.end,
            known.lastSeen < former.received
        {
            return true
        }
        // An initialization section or key behind a new discontinuity.
        guard name.role == .initialization || name.role == .key, let run = name.run,
            let former = change.former
        else { return false }
        return run >= former.end
    }

    private mutating func forgetOldest() -> ObjectKey? {
        guard lists.count > Self.mostLists,
            let oldest = lists.min(by: { $0.value.received < $1.value.received })?.key
        else { return nil }
        lists[oldest] = nil
        let names = readings.removeValue(forKey: oldest)?.names ?? WindowNames()
        var noted: Set<ObjectKey> = []
        noteLeft(names.keys[...], at: nil, noted: &noted)
        return oldest
    }
}
