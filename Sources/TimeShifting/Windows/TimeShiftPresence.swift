import CachePolicy
import HLS
import Model
package import Posix
import Store
import Synchronization
import URISyntax

/// Which segments of a window are really stored: only fetched ones count.
extension TimeShiftTable {
    /// Returns the key of a resource of a role by the rules in force; `mark` is the epoch of its
    /// URL.
    fileprivate func key(
        _ url: AbsoluteURL, _ session: Session, role: ResourceRole, mark: UInt32
    ) -> CacheKey {
        var key = names.keys.cacheKey(of: url, session: session, role: role)
        key.epoch = Epoch(number: mark)
        return key
    }

    /// Returns the key that a resource of a role is stored under: one that its URL had before its
    /// rules changed, where nothing is stored under its key, or only a part.
    ///
    /// Opens its file.
    func storedKey(
        _ url: AbsoluteURL, _ session: Session, role: ResourceRole, mark: UInt32
    ) -> ObjectKey {
        let key = key(url, session, role: role, mark: mark)
        let name = ObjectKey(key)
        let stored = store.peek(name)
        if let stored, stored.isComplete { return name }
        let former = names.keys.former(key, of: url, session, role: role, in: store) {
            stored == nil || $0.isComplete
        }
        return former.map { ObjectKey($0.key) } ?? name
    }

    /// Whether the keys and initialization section of each structure are kept, as far as one walk
    /// of a window has looked; thousands of segments may share theirs.
    typealias KnownStructures = [TimeShiftSegment.Structure: Bool]

    /// True if everything that playing a segment requires is stored or being fetched; opens files.
    func isKept(
        _ segment: TimeShiftSegment, _ session: Session, _ known: inout KnownStructures
    ) -> Bool {
        kept(segment, session, &known) != nil
    }

    /// Returns the object of a segment, if everything that playing it requires is stored or being
    /// fetched; opens files.
    fileprivate func kept(
        _ segment: TimeShiftSegment, _ session: Session, _ known: inout KnownStructures
    ) -> StoredObject? {
        guard let url = segment.url else { return nil }
        let structure = segment.structure
        let hasStructure = known[structure] ?? isStructureKept(of: segment, session)
        known[structure] = hasStructure
        guard hasStructure else { return nil }
        return kept(url, session, role: .segment, mark: segment.marks.segment, segment.byteRange)
    }

    /// Returns the marks of a segment: the present ones for what is neither stored nor being fetched
    /// under those that it has, which stay for the rest; opens files.
    func marks(
        _ present: TimeShiftSegment.Marks, ofMissingIn segment: TimeShiftSegment,
        _ session: Session
    ) -> TimeShiftSegment.Marks {
        func mark(
            _ url: AbsoluteURL?, _ role: ResourceRole, _ known: UInt32, _ new: UInt32,
            _ range: SubRange? = nil
        ) -> UInt32 {
            guard known != new, let url else { return new }
            return kept(url, session, role: role, mark: known, range) == nil ? new : known
        }
        let keys = segment.keyURLs.enumerated().map { index, url -> UInt32 in
            let new = present.keys.indices.contains(index) ? present.keys[index] : 0
            return mark(url, .key, segment.mark(ofKey: url), new)
        }
        return TimeShiftSegment.Marks(
            segment: mark(
                segment.url, .segment, segment.marks.segment, present.segment, segment.byteRange),
            map: mark(
                segment.mapURL, .initialization, segment.marks.map, present.map, segment.mapRange),
            keys: keys)
    }

    private func isStructureKept(of segment: TimeShiftSegment, _ session: Session) -> Bool {
        let hasKeys = segment.keyChoices.allSatisfy { choice in
            choice.contains { key in
                kept(key, session, role: .key, mark: segment.mark(ofKey: key)) != nil
            }
        }
        guard hasKeys, let map = segment.mapURL else { return hasKeys }
        let object = kept(
            map, session, role: .initialization, mark: segment.marks.map, segment.mapRange)
        return object != nil
    }

    /// Returns the object of a resource if its wanted bytes are stored or being fetched, also under
    /// a key that its URL had before its rules changed.
    private func kept(
        _ url: AbsoluteURL, _ session: Session, role: ResourceRole, mark: UInt32,
        _ range: SubRange? = nil
    ) -> StoredObject? {
        let key = key(url, session, role: role, mark: mark)
        if let object = store.peek(ObjectKey(key)), Self.holds(object, range) { return object }
        let former = names.keys.former(key, of: url, session, role: role, in: store) {
            Self.holds($0, range)
        }
        return former?.object
    }

    private static func holds(_ object: StoredObject, _ range: SubRange?) -> Bool {
        guard let range = range?.bytes else {
            return object.isComplete || object.isFilling(from: 0)
        }
        // The file of a live stream may have been complete at a shorter length.
        return object.spans.holds(range, ofTotal: object.total)
            || object.isFilling(from: range.lowerBound)
    }
}

/// The former keys that segments of a window were found complete under, by their keys.
///
/// Finding them opens files, all of a day after a change of keys: the next checks ask the index for
/// them, as long as the rules stay the same.
struct FormerSegments: Sendable {
    private(set) var keys: [ObjectKey: ObjectKey] = [:]
    private var version: UInt64 = 0

    init() {}

    init(_ keys: [ObjectKey: ObjectKey], version: UInt64) {
        self.keys = keys
        self.version = version
    }

    /// Returns the keys that hold by a version of the key rules.
    func keys(of version: UInt64) -> [ObjectKey: ObjectKey] {
        version == self.version ? keys : [:]
    }
}

extension ShiftedList {
    /// The number of further segments for which a segment that left the origin's window is looked
    /// up again, since its fetch may be in flight.
    static let grace = 8

    /// Looks up segments that have left the origin's window since the last call; opens a few files.
    ///
    /// - Returns: true if the playlist for players has changed.
    @discardableResult
    package func lookForKept(_ table: TimeShiftTable) -> Bool {
        let (shift, open) = state.withLock { state -> (TimeShift, Set<Int>) in
            let end = min(state.shift.windowStart, (state.shift.segments.last?.number ?? -1) + 1)
            if state.lookedTo < end {
                // Numbers before the first segment have left the window, or never existed.
                let first = state.shift.segments.first?.number ?? end
                if first < end { state.open.formUnion(max(state.lookedTo, first)..<end) }
                state.lookedTo = end
            }
            return (state.shift, state.open)
        }
        guard !open.isEmpty else { return false }
        var kept: Set<Int> = []
        var lost: Set<Int> = []
        var known = TimeShiftTable.KnownStructures()
        for number in open {
            guard let segment = shift.segment(number: number) else {
                kept.insert(number)
                continue
            }
            if segment.isGap || segment.isPlaceholder {
                lost.insert(number)
            } else if table.isKept(segment, session, &known) {
                kept.insert(number)
            } else if number < shift.windowStart - Self.grace {
                lost.insert(number)
            }
        }
        guard !kept.isEmpty || !lost.isEmpty else { return false }
        state.withLock { state in
            state.open.subtract(kept)
            state.open.subtract(lost)
            state.missing.formUnion(lost)
            state.change()
        }
        return true
    }

    /// Tells whether a list that players request begins to be followed under its URL.
    ///
    /// The keeper stops following an ended list after one reload. A request has it followed again
    /// only when a check is due, or at once after a purge.
    package func beginsFollowing(now: Monotonic) -> Bool {
        state.withLock { state in
            guard state.followed != state.url,
                !state.shift.isEnded || state.isDoubtful
                    || VerifyingTurns.isDue(after: state.verifiedAt, now: now)
            else { return false }
            state.followed = state.url
            return true
        }
    }

    /// Tells whether a list that players request is to be checked against the index now: not at
    /// each of its reloads, which may all ask.
    ///
    /// Without `countsDoubt`, a doubtful one waits like the others, or for a later request.
    package func beginsVerifying(now: Monotonic, countsDoubt: Bool = true) -> Bool {
        state.withLock { state in
            guard
                (countsDoubt && state.isDoubtful)
                    || VerifyingTurns.isDue(after: state.verifiedAt, now: now),
                state.isRestored || !state.shift.segments.isEmpty
            else { return false }
            state.verifiedAt = now
            state.isDoubtful = false
            return true
        }
    }

    /// Checks everything before the origin's window against the index.
    ///
    /// Blocks on the disk, for a second or two with a day of segments. After a change of keys, the
    /// first check opens the files of all segments that are stored under former ones. Segments that
    /// have just left the window are left to `lookForKept`, which allows for their fetches. With
    /// `all` these and the window itself are checked too.
    package func verify(_ table: TimeShiftTable, all: Bool = false) {
        let check = beginCheck(table)
        end(check, with: find(check, table, all: all))
    }

    /// Returns the window as a check begins from it.
    func beginCheck(_ table: TimeShiftTable) -> WindowCheck {
        let version = table.names.keys.version
        return state.withLock { state in
            WindowCheck(
                shift: state.shift, open: state.open, missing: state.missing,
                lookedTo: state.lookedTo, former: state.former.keys(of: version),
                version: version)
        }
    }

    /// Looks up the segments of a check in the index; blocks on the disk.
    private func find(
        _ check: WindowCheck, _ table: TimeShiftTable, all: Bool
    ) -> WindowCheck.Result {
        let former = check.former
        var result = WindowCheck.Result()
        let end = min(check.shift.windowStart, check.lookedTo)
        let old = check.shift.segments.filter { segment in
            !segment.isGap
                && (all || (segment.number < end && !check.open.contains(segment.number)))
        }
        var known = TimeShiftTable.KnownStructures()
        for start in stride(from: 0, to: old.count, by: 500) {
            let some = old[start..<min(start + 500, old.count)]
            let keys = some.map { segment in
                segment.url.map {
                    ObjectKey(
                        table.key($0, session, role: .segment, mark: segment.marks.segment))
                }
            }
            let rows = table.store.entries(of: keys.compactMap { $0.map { former[$0] ?? $0 } })
            var cursor = 0
            for (segment, key) in zip(some, keys) {
                guard let key else { continue }
                let row = rows[cursor]
                cursor += 1
                let rangeStart = segment.byteRange?.bytes.lowerBound
                if let row, row.isComplete, rangeStart.map({ $0 < row.total ?? 0 }) ?? true {
                    result.found[key] = former[key]
                    continue
                }
                // The index is updated slightly later than the store; it does not know ranges.
                guard let object = table.kept(segment, session, &known) else {
                    result.lost.insert(segment.number)
                    continue
                }
                if object.isComplete, object.key != key { result.found[key] = object.key }
            }
        }
        let gaps = check.shift.segments.lazy.filter { $0.isGap }.map(\.number)
        result.lost.formUnion(gaps)
        return result
    }

    /// Applies the result of a check.
    ///
    /// What was found missing while it ran stays missing: `lookForKept` looked later than the
    /// check, or at segments that the check left to it.
    func end(_ check: WindowCheck, with result: WindowCheck.Result) {
        let start = check.shift.windowStart
        state.withLock { state in
            state.former = FormerSegments(result.found, version: check.version)
            let known = state.missing.filter { $0 >= start || !check.missing.contains($0) }
            let missing = result.lost.union(known)
            guard missing != state.missing else { return }
            state.missing = missing
            state.open.subtract(result.lost)
            state.change()
        }
    }
}

/// A window as it was when a check against the index began.
struct WindowCheck: Sendable {
    let shift: TimeShift
    /// The numbers of segments that were left to `lookForKept`.
    let open: Set<Int>
    /// The numbers of segments that were known not to be stored.
    let missing: Set<Int>
    let lookedTo: Int
    /// The former keys that were known, by the key rules of `version`.
    let former: [ObjectKey: ObjectKey]
    let version: UInt64

    /// What a check found.
    struct Result: Sendable {
        /// The numbers of segments that are not stored.
        var lost: Set<Int> = []
        /// The former keys of segments, by their present ones.
        var found: [ObjectKey: ObjectKey] = [:]
    }
}
