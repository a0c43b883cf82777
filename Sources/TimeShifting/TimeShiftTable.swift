// The windows of live playlists that reach farther back than the origin's, by session and playlist.
//
// A session that was entered with `dvr=` has one `ShiftedList` for each of its media playlists. The
// origin's windows are merged into it as they come, whoever asked for them: a player, or the
// `TimeShiftKeeper` that goes on for a while after the players. What players get is written from it.
package import HLS
import Library
package import Logging
package import Model
package import Posix
package import Routing
package import Store
package import Synchronization
package import URISyntax

/// All of them.
///
/// Any thread may use it. A list that was not used for long is kept on disk only.
package final class TimeShiftTable: Sendable {
    private let lists = Mutex<[PlaylistMemory.Key: ShiftedList]>([:])
    let windows: TimeShiftFiles
    private let recorded: TimeShiftFiles
    package let store: ObjectStore
    package let names: ResourceNames
    package let live: LiveMemory
    package let memory: PlaylistMemory
    package let counters: Counters
    /// Lets go what falls out of windows.
    package let thread: TimeShiftThread

    /// Snapshots are kept in the folder of the store, each kind in a folder of its own.
    ///
    /// - Parameters:
    ///   - store: where segments are looked for.
    ///   - names: what their URLs mean.
    ///   - live: what the names in live lists stand for.
    ///   - memory: variables of multivariant playlists.
    ///   - counters: count what was missed.
    ///   - thread: lets go what falls out of windows.
    ///   - log: told of damaged snapshots.
    package init(
        store: ObjectStore, names: ResourceNames, live: LiveMemory, memory: PlaylistMemory,
        counters: Counters, thread: TimeShiftThread, log: Logger
    ) {
        self.store = store
        self.names = names
        self.live = live
        self.memory = memory
        self.counters = counters
        self.thread = thread
        let folder = store.folderPath
        windows = TimeShiftFiles(folder: folder + "/windows", log: log)
        recorded = TimeShiftFiles(folder: folder + "/recordings/windows", log: log)
    }

    /// Where a session's snapshots are kept; those of recordings last.
    func files(of session: Session) -> TimeShiftFiles {
        session.shift.recording == nil ? windows : recorded
    }

    /// The list of a playlist, with what is remembered of it; reads a file the first time.
    ///
    /// Blocks once a list and run, or when nobody has used it for a quarter of an hour: about 0.1 s
    /// for a day of segments of 4 s. Callers keep that off the server loops.
    package func list(_ url: AbsoluteURL, of session: Session) -> ShiftedList {
        let key = PlaylistMemory.Key(list: url, session: session.id)
        if let known = lists.withLock({ $0[key] }) { return known }
        let read = ShiftedList(
            url: url.withoutDirectives, session: session,
            shift: files(of: session).load(url, session.id)
                ?? TimeShift(limits: session.shift.limits))
        return lists.withLock { lists in
            if let known = lists[key] { return known }
            lists[key] = read
            return read
        }
    }

    /// The list of a playlist if one is in memory.
    package func known(_ url: AbsoluteURL, of session: SessionID) -> ShiftedList? {
        let key = PlaylistMemory.Key(list: url, session: session)
        return lists.withLock { $0[key] }
    }

    /// All lists in memory.
    package var all: [ShiftedList] { lists.withLock { Array($0.values) } }

    /// The rendition of the same session that is the farthest, for a list to keep in step with.
    func sibling(of list: ShiftedList) -> TimeShift? {
        let others = all.filter { $0.session.id == list.session.id && $0 !== list }
        return others.map(\.shift).filter { !$0.segments.isEmpty }.max { left, right in
            (left.epoch, left.segments.last?.number ?? 0)
                < (right.epoch, right.segments.last?.number ?? 0)
        }
    }

    /// Takes lists out of memory; whoever holds one goes on with what would be another one.
    package func forget(_ list: ShiftedList) {
        let key = PlaylistMemory.Key(list: list.url, session: list.session.id)
        lists.withLock { lists in
            if lists[key] === list { lists[key] = nil }
        }
    }
}

/// The longer window of one media playlist of one session.
///
/// Any thread may use it.
package final class ShiftedList: Sendable {
    package let url: AbsoluteURL
    package let session: Session

    package struct State {
        package var shift: TimeShift
        /// Changes whenever what players get changes; 0 where they get the origin's text.
        package var version: UInt64 = 0
        /// The stored object that was merged last.
        package var generation: UInt64 = 0
        /// True for a playlist with no window to extend: multivariant, or complete when first seen.
        var isOther = false
        /// True for a media playlist that was complete when first seen.
        package var isComplete = false
        /// Numbers of segments that have left the origin's window and were not found kept yet.
        package var open: Set<Int> = []
        /// Numbers of those that are not kept.
        package var missing: Set<Int> = []
        /// Segments before this number were looked at when they left the window.
        var lookedTo = 0
        /// True while nothing was merged into what a former run had saved.
        var isRestored = false
        /// True while the keeper looks after it.
        var isFollowed = false
        var lastAsked: Monotonic?
        /// When it was saved last, and whether it has changed since.
        var savedAt: Monotonic?
        var isUnsaved = false
    }

    package let state: Mutex<State>
    /// Held by the one thread that merges.
    private let merging = Mutex(())

    package init(url: AbsoluteURL, session: Session, shift: TimeShift) {
        self.url = url
        self.session = session
        var state = State(shift: shift)
        if let last = shift.segments.last {
            // Taken to be there until the index has been asked.
            state.lookedTo = last.number + 1
            state.isRestored = true
            state.version = 1
        }
        self.state = Mutex(state)
    }

    /// What is remembered now.
    package var shift: TimeShift { state.withLock { $0.shift } }

    package var version: UInt64 { state.withLock { $0.isOther ? 0 : $0.version } }

    /// Whether an object was merged already.
    package func hasMerged(_ generation: UInt64) -> Bool {
        state.withLock { $0.generation == generation }
    }

    /// What a merge has brought.
    package struct Outcome: Sendable {
        var relation = TimeShift.Relation.unchanged
        /// Segments that fell out at the far end.
        var dropped: [TimeShiftSegment] = []
        var missed = 0
        /// False for a playlist that has no window.
        package var isShifted = true
    }

    /// A window as the origin sent it.
    package struct Reading {
        package let body: [UInt8]
        /// The URL that it came from.
        package let base: AbsoluteURL
        /// The key of the playlist.
        package let key: ObjectKey
        /// The stored object that it was read from; 0 for none.
        package var generation: UInt64 = 0

        package init(body: [UInt8], base: AbsoluteURL, key: ObjectKey, generation: UInt64 = 0) {
            self.body = body
            self.base = base
            self.key = key
            self.generation = generation
        }
    }

    /// Takes in a window, after the memory of live lists has.
    ///
    /// - Returns: what it has brought; what fell out is let go already.
    /// - Throws: what a rewrite would throw; nothing has changed then.
    @discardableResult
    package func merge(_ reading: Reading, _ table: TimeShiftTable) throws(PlaylistError) -> Outcome
    {
        let surroundings = TimeShift.Surroundings(
            variables: table.memory.variables(of: session.id),
            sibling: table.sibling(of: self),
            countsAnew: table.live.relation(of: reading.key) == .reset)
        let summary = try Playlist(reading.body, base: nil).summary
        let outcome = try merging.withLock { _ throws(PlaylistError) in
            // A long one in a copy: nobody who asks for the state may have to wait for it.
            guard isLong || reading.body.count >= TextWorker.longText else {
                return try state.withLock { state throws(PlaylistError) in
                    try state.merge(reading, summary, self, surroundings, table)
                }
            }
            var merged = state.withLock { $0 }
            let (before, wasLooked) = (merged.version, merged.lookedTo)
            let result = Result { () throws(PlaylistError) in
                try merged.merge(reading, summary, self, surroundings, table)
            }
            let hasChanged = merged.version != before
            let looks = merged.lookedTo == wasLooked ? nil : merged.lookedTo
            state.withLock { $0.take(merged, lookedTo: looks, hasChanged: hasChanged) }
            return try result.get()
        }
        table.thread.drop(outcome.dropped, of: self)
        if outcome.relation == .newEpoch { table.counters.add(.shiftEpochs) }
        if outcome.missed > 0 { table.counters.add(.shiftMissed, Int64(outcome.missed)) }
        return outcome
    }

    /// Whether its text takes a loop too long.
    package var isLong: Bool { state.withLock { $0.shift.segments.count >= TextWorker.longWindow } }

    /// What players get: the origin's text, extended back.
    package func playlist(ending: TimeShift.Ending) -> [UInt8] {
        let (shift, missing) = state.withLock { ($0.shift, $0.missing.union($0.open)) }
        return shift.playlist(ending: ending) { !missing.contains($0.number) }
    }

    /// Notes that a player asked for it.
    package func noteAsked(at now: Monotonic) {
        state.withLock { $0.lastAsked = now }
    }
}

extension ShiftedList.State {
    package mutating func change() {
        version += 1
        isUnsaved = true
        let first = shift.segments.first?.number ?? 0
        if let oldest = missing.min(), oldest < first { missing = missing.filter { $0 >= first } }
    }

    /// Takes in a window of `list`.
    fileprivate mutating func merge(
        _ reading: ShiftedList.Reading, _ summary: PlaylistSummary, _ list: ShiftedList,
        _ surroundings: TimeShift.Surroundings, _ table: TimeShiftTable
    ) throws(PlaylistError) -> ShiftedList.Outcome {
        if reading.generation != 0 { generation = reading.generation }
        var outcome = ShiftedList.Outcome()
        let isFirst = shift.segments.isEmpty
        isComplete = isFirst && summary.kind == .media && summary.hasEndList
        isOther = isFirst && (summary.kind != .media || isComplete)
        guard !isOther else {
            outcome.isShifted = false
            return outcome
        }
        let merge = try shift.merge(reading.body, base: reading.base, in: surroundings)
        outcome.relation = merge.relation
        outcome.missed = merge.missed
        for number in merge.added {
            guard let segment = shift.segment(number: number) else { continue }
            let marks = table.marks(of: segment, list.session)
            if marks != segment.marks { shift.mark(number, marks) }
        }
        if let duration = list.session.shift.duration {
            outcome.dropped = shift.trim(to: duration)
        }
        if isFirst || isRestored { lookedTo = shift.windowStart }
        isRestored = false
        if merge.relation != .unchanged && merge.relation != .stale { change() }
        return outcome
    }

    /// Takes over what a merge changed in a copy; what others have noted meanwhile stays.
    fileprivate mutating func take(_ merged: Self, lookedTo looked: Int?, hasChanged: Bool) {
        shift = merged.shift
        generation = merged.generation
        isComplete = merged.isComplete
        isOther = merged.isOther
        if let looked { lookedTo = looked }
        isRestored = merged.isRestored
        if hasChanged { change() }
    }
}

extension TimeShiftTable {
    /// What the names of a segment stand for now.
    package func marks(of segment: TimeShiftSegment, _ session: Session) -> TimeShiftSegment.Marks {
        func mark(_ url: AbsoluteURL?, _ role: ResourceRole) -> UInt32 {
            guard let url else { return 0 }
            let name = ObjectKey(names.cacheKey(url, session: session, role: role))
            return live.epoch(of: name).number
        }
        return TimeShiftSegment.Marks(
            segment: mark(segment.url, .segment), map: mark(segment.mapURL, .initialization),
            key: mark(segment.keyURL, .key))
    }
}
