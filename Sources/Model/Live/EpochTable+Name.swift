import HLS
import Numbers
import Posix
import Store

extension EpochTable {
    /// The state of one name, and what a reading of a list makes of it.
    struct Name: Sendable {
        var epoch: Epoch
        /// A stored response belongs to this epoch if it was received later.
        var since: Moment
        /// Its place in the list that was read last.
        var last: Sighting
        /// Its places in other lists, each of which counts its segments in its own way.
        private var others: [Sighting] = []
        /// Its epoch before the number from which on a list gave it again; nil if none did, in the
        /// epoch of its list.
        private var before: (epoch: Epoch, end: Int, list: ObjectKey)?

        /// Creates the state of a name that is not known yet.
        init(_ name: LiveReading.Name, in epoch: Epoch, _ change: Change) {
            self.epoch = epoch
            since = change.since
            last = Sighting(name, change)
        }
    }

    /// Where and when a list showed a name last.
    struct Sighting: Sendable {
        let list: ObjectKey
        var time: Moment
        /// The number of the segment; of a name at several places, of the last one.
        var number: Int
        /// True if the name occurs at no other place.
        var isOnlyPlace: Bool
        /// The latest `LiveReading.Name.run` that it was seen with.
        var run: Int?

        /// The number of the segment; nil where the name occurs at several places.
        var sequence: Int? { isOnlyPlace ? number : nil }

        init(_ name: LiveReading.Name, _ change: Change) {
            list = change.list
            time = change.times.received
            number = name.sequence
            isOnlyPlace = !name.isShared
            run = name.run
        }
    }
}

extension EpochTable.Name {
    /// The most other lists whose places are remembered, as recordings and users with credentials
    /// have lists of their own.
    ///
    /// Any of them that shows the name at another number tells that it is given again.
    private static let mostOthers = 3
    /// A name that was seen this long ago may have been reused, and its place in a list tells
    /// nothing any more.
    private static let longestSilence = Interval.seconds(30 as Int64)

    /// Applies a reading of a list.
    ///
    /// - Parameters:
    ///   - name: the name as the list shows it.
    ///   - change: what the reading changes.
    ///   - replacesKey: true for a key before whose line another one was in force.
    /// - Returns: its new epoch if the list has given it again; nil otherwise.
    mutating func take(
        _ name: LiveReading.Name, _ change: EpochTable.Change, replacesKey: Bool
    ) -> Epoch? {
        let isKnown = turn(to: change.list)
        var given: Epoch?
        // Another list, or another place in this one, may already have caused the change. A mere
        // doubt in another list does not count as a new epoch.
        let isChanged =
            change.former.map { former in
                since > former.received
                    && (change.relation != .reset || epoch > former.epoch)
            } ?? false
        if !isChanged {
            switch change.relation {
            case .reset:
                epoch =
                    epoch < change.epoch
                    ? change.epoch
                    : .beginning(at: change.times.requested.wall.seconds, after: epoch)
                since = change.since
                before = nil
            case .doubtful:
                if let number = givenAgain(name, change, isKnown, replacesKey) {
                    given = giveAgain(from: number, change, isKnown)
                }
                since = change.since
            case .first, .same, .goesOn, .empty:
                if epoch < change.epoch {
                    // First seen again some time after the list was reset.
                    epoch = change.epoch
                    since = change.since
                    before = nil
                } else if let number = givenAgain(name, change, isKnown, replacesKey) {
                    given = giveAgain(from: number, change, isKnown)
                    since = change.since
                } else if isDoubtful(name, change, isKnown) {
                    since = change.since
                }
            }
        }
        note(name, change, isKnown)
        return given
    }

    /// Returns its epoch at a number of a list that names it: the one before if it was given again
    /// later by this list.
    func epoch(at number: Int, in list: ObjectKey) -> Epoch {
        guard let before, before.list == list, number < before.end else { return epoch }
        return before.epoch
    }

    /// Returns the number at which a list showed it last; nil if it did not, or at several places.
    func sequence(in list: ObjectKey) -> Int? {
        if last.list == list { return last.sequence }
        return others.first { $0.list == list }?.sequence
    }

    /// Makes its place in a list the last one.
    ///
    /// - Returns: false if the list is not known to have shown it; the last place stays then.
    private mutating func turn(to list: ObjectKey) -> Bool {
        if last.list == list { return true }
        guard let index = others.firstIndex(where: { $0.list == list }) else { return false }
        swap(&last, &others[index])
        return true
    }

    /// Notes its place in a reading.
    private mutating func note(
        _ name: LiveReading.Name, _ change: EpochTable.Change, _ isKnown: Bool
    ) {
        let received = change.times.received
        guard isKnown else {
            keepLast(at: received)
            last = EpochTable.Sighting(name, change)
            return
        }
        // A name at two places of one window cannot be distinguished by its number.
        let isRepeated = last.time == received && last.sequence != name.ownSequence
        last.isOnlyPlace = !name.isShared && !isRepeated
        last.number = name.sequence
        // The first of two places in one window does not undo what the second one has shown.
        let isRenumbered = change.relation == .reset || change.relation == .doubtful
        if isRenumbered || name.run ?? .min > last.run ?? .min { last.run = name.run }
        last.time = received
    }

    /// Keeps the last place among those in other lists; one of them makes room only if it is old, so
    /// that many lists which are read in turn do not displace each other.
    private mutating func keepLast(at now: Moment) {
        guard others.count >= Self.mostOthers else { return others.append(last) }
        if let index = others.firstIndex(where: { now - $0.time > Self.longestSilence }) {
            others[index] = last
        }
    }

    /// Returns the number from which on a list gives it again, perhaps for another resource; nil if
    /// the list shows it where it did before.
    private func givenAgain(
        _ name: LiveReading.Name, _ change: EpochTable.Change, _ isKnown: Bool,
        _ replacesKey: Bool
    ) -> Int? {
        guard let former = change.former else { return nil }
        // An initialization section or key after a new discontinuity, or a key after a new line. Lists
        // of parts show both several times before their segment is complete, and renditions share
        // keys: once is enough.
        if name.role == .initialization || name.role == .key, let run = name.run,
            run >= former.end, isKnown ? run > last.run ?? .min : run != last.run
        {
            return run
        }
        // A ring of keys: none of the lines that named it before is listed any more, or another key
        // was in force before its new line. A list that went back a little shows the same line once
        // more, and so does each reading of a list of parts.
        if name.role == .key, name.sequence > last.number,
            hasReturned(name, change, isKnown)
                || replacesKey && isKnown && name.sequence >= former.end
                    && last.time != change.times.received
        {
            return name.sequence
        }
        // A ring of names, or a recurring advertisement.
        guard isKnown, let known = last.sequence, let sequence = name.ownSequence,
            known != sequence, last.time != change.times.received
        else { return nil }
        // A list that slides without EXT-X-MEDIA-SEQUENCE moves each name forward in its text.
        let slides = change.start == former.start && sequence < known
        guard !slides || last.time < former.received else { return nil }
        return sequence
    }

    /// Begins an epoch of its own if its list gives it again from a number on and a longer window is
    /// read from the list.
    ///
    /// It has one already if another list gave it again shortly before.
    ///
    /// - Returns: the epoch; nil if it begins none.
    private mutating func giveAgain(
        from number: Int, _ change: EpochTable.Change, _ isKnown: Bool
    ) -> Epoch? {
        guard isKnown, let former = change.former, former.isExtended else { return nil }
        let cycle = former.targetDuration.nanoseconds.multipliedSaturated(by: 3)
        if let before, before.list != change.list,
            change.since - since < Interval(nanoseconds: cycle)
        {
            return nil
        }
        before = (epoch, number, change.list)
        epoch = .beginning(at: change.times.requested.wall.seconds, after: epoch)
        return epoch
    }

    /// True if it may have a new meaning although it is not given again and its list continues.
    private func isDoubtful(
        _ name: LiveReading.Name, _ change: EpochTable.Change, _ isKnown: Bool
    ) -> Bool {
        guard isKnown, change.former != nil else {
            return change.times.received - last.time > Self.longestSilence
        }
        // It was last seen before the list went back a little: through a lagging cache, or by a new
        // encoder. That holds for names at several places too.
        return hasReturned(name, change, isKnown)
    }

    /// True if it is behind the window before, which did not show it, although an earlier one did.
    private func hasReturned(
        _ name: LiveReading.Name, _ change: EpochTable.Change, _ isKnown: Bool
    ) -> Bool {
        guard isKnown, let former = change.former else { return false }
        return name.sequence >= former.end && last.time < former.received
    }
}
