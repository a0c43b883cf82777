package import HLS
package import Library
package import Model
package import Posix
import Routing
package import Store
package import Synchronization
package import URISyntax

/// The time shift window of one media playlist in one session.
///
/// Can be used from any thread.
package final class ShiftedList: Sendable {
    package let session: Session

    package struct State {
        /// The URL that players used last, without delivery directives; its signature may differ
        /// from that of others.
        var url: AbsoluteURL { didSet { mark = nil } }
        /// The mark of the URL in `PlaylistMemory`; nil until it is needed.
        var mark: Int?
        /// The name of the window; nil once its segments have been added to another list, and while
        /// its saved window cannot be read.
        var name: WindowName?
        package var shift: TimeShift
        /// Changes whenever the playlist for players changes; 0 if they get the origin's text.
        package var version: UInt64 = 0
        /// The generation of the stored object that was merged last.
        package var generation: UInt64 = 0
        /// When the newest text that was merged in this run was received.
        var received: Moment?
        /// True for a playlist with no window to extend: not live when first seen, or of channels.
        var isOther = false
        /// True once its recording no longer follows it: later readings change nothing.
        var isClosed = false
        /// True for a media playlist that was complete when first seen.
        package var isComplete = false
        /// Numbers of segments that left the origin's window and are not yet known to be stored.
        package var open: Set<Int> = []
        /// Numbers of the segments that are not stored.
        package var missing: Set<Int> = []
        /// Segments before this number have been looked up after they left the window.
        var lookedTo = 0
        /// True if there may be a saved window that cannot be read now.
        var isUnread = false
        /// True until the first merge into a restored window.
        var isRestored = false
        /// The epoch of the origin's list by which the segments of its window are marked; nil if it
        /// is unknown.
        var markedEpoch: Epoch?
        /// The latest epoch of another rendition's list by which they are marked: renditions share
        /// keys, and one may begin an epoch alone.
        var markedSiblingEpoch = Epoch.first
        /// The time of the last check against the index; nil if there was none since loading.
        var verifiedAt: Monotonic?
        /// True if objects were purged or cleared since the last check began.
        var isDoubtful = false
        var former = FormerSegments()
        /// The URL under which the keeper follows the list; nil while it does not.
        var followed: AbsoluteURL?
        var lastAsked: Monotonic?
        /// The start of the current run of requests, between which no pause exceeds `longestPause`.
        var watchedSince: Monotonic?
        /// False while only pages of other sites have requested the list.
        var isOfPlayer = false
        /// The time of the last save.
        var savedAt: Monotonic?
        /// The bytes of the last save; 0 before.
        var savedByteCount = 0
        var isUnsaved = false
    }

    package let state: Mutex<State>
    /// Held by the thread that merges.
    let merging = Mutex(())

    package init(url: AbsoluteURL, session: Session, name: WindowName, shift: TimeShift) {
        self.session = session
        var state = State(url: url, name: name, shift: shift)
        if let last = shift.segments.last {
            // Assumes that the segments are stored until the index has been checked.
            state.lookedTo = last.number + 1
            state.isRestored = true
            state.version = 1
        }
        self.state = Mutex(state)
    }

    /// The URL that players used last, without delivery directives.
    package var url: AbsoluteURL { state.withLock { $0.url } }

    /// The name of the window; nil once its segments have been added to another list, and while its
    /// saved window cannot be read.
    var name: WindowName? { state.withLock { $0.name } }

    /// True if there may be a saved window that cannot be read now; the list is in no table then.
    package var isUnread: Bool { state.withLock { $0.isUnread } }

    /// Marks the list as one whose saved window cannot be read now.
    func leaveUnread() {
        state.withLock { state in
            state.isUnread = true
            state.name = nil
        }
    }

    /// The current window.
    package var shift: TimeShift { state.withLock { $0.shift } }

    package var version: UInt64 { state.withLock { $0.isOther ? 0 : $0.version } }

    /// True if a redirect to a private host may have brought something of it.
    package var mayBePrivate: Bool { state.withLock { $0.shift.mayBePrivate } }

    /// True if an object has already been merged.
    package func hasMerged(_ generation: UInt64) -> Bool {
        state.withLock { $0.generation == generation }
    }

    /// The result of a merge.
    package struct Outcome: Sendable {
        var relation = TimeShift.Relation.unchanged
        /// Segments that were dropped at the old end.
        var dropped: [TimeShiftSegment] = []
        var missed = 0
        /// False for a playlist without a window.
        package var isShifted = true
    }

    /// A window as the origin sent it.
    package struct Reading {
        package let body: [UInt8]
        /// The URL that it came from.
        package let base: AbsoluteURL
        /// The key of the playlist.
        package let key: ObjectKey
        /// The generation of the stored object that it was read from.
        package let generation: UInt64
        /// When the origin sent it, or last said that it is current.
        package let received: Moment

        /// - Parameters:
        ///   - body: the text.
        ///   - base: the URL that it came from.
        ///   - key: the key of the playlist.
        ///   - facts: the facts of the stored object that it was read from.
        package init(body: [UInt8], base: AbsoluteURL, key: ObjectKey, facts: ObjectFacts) {
            self.body = body
            self.base = base
            self.key = key
            generation = facts.generation
            received = facts.received
        }
    }

    /// Merges a window, after `LiveMemory` has been updated with it.
    ///
    /// Several threads read the playlist from the store, so a text may come after a newer one: it
    /// is ignored then. It could look like a stream that counts anew.
    ///
    /// - Returns: the result; dropped segments are already being removed.
    /// - Throws: the error that a rewrite would throw; nothing has changed then.
    @discardableResult
    package func merge(_ reading: Reading, _ table: TimeShiftTable) throws(PlaylistError) -> Outcome
    {
        let context = TimeShift.Context(
            variables: table.memory.variables(of: session.id, in: url),
            sibling: table.sibling(of: self),
            countsAnew: table.live.relation(of: reading.key) == .reset,
            listEpoch: table.live.list(reading.key)?.epoch)
        let summary = try Playlist(reading.body, base: nil).summary
        let outcome = try merging.withLock { _ throws(PlaylistError) in
            // Long windows are merged in a copy, so that the state is not locked for long.
            guard
                isLong || isFarBehind(context.sibling)
                    || reading.body.count >= TextWorker.longText
            else {
                return try state.withLock { state throws(PlaylistError) in
                    try state.merge(reading, summary, self, context, table)
                }
            }
            var merged = state.withLock { $0 }
            let (before, wasLooked) = (merged.version, merged.lookedTo)
            let result = Result { () throws(PlaylistError) in
                try merged.merge(reading, summary, self, context, table)
            }
            let hasChanged = merged.version != before
            let looks = merged.lookedTo == wasLooked ? nil : merged.lookedTo
            state.withLock { $0.take(merged, lookedTo: looks, hasChanged: hasChanged) }
            return try result.get()
        }
        table.thread.drop(outcome.dropped, of: self)
        if outcome.isShifted { table.live.noteExtended(reading.key) }
        if outcome.relation == .newEpoch { table.counters.add(.shiftEpochs) }
        if outcome.missed > 0 { table.counters.add(.shiftMissed, Int64(outcome.missed)) }
        return outcome
    }

    /// Ends the window: later merges change nothing.
    ///
    /// Players of a recording go on reloading its lists after the recording has stopped fetching
    /// what they name.
    func close() { state.withLock { $0.isClosed = true } }

    /// Returns the playlist for players: the origin's text, extended back.
    ///
    /// A segment whose fetch may be in flight is a gap until it is stored, also at the start: left
    /// out there, it would come back in front of what players have, or never.
    package func playlist(ending: TimeShift.Ending) -> [UInt8] {
        let (shift, missing) = state.withLock { state -> (TimeShift, Set<Int>) in
            let missing = state.missing.union(state.open)
            if ending == .live {
                // No later window shows which ones of an ended stream are given up.
                let lost = state.shift.isEnded ? missing : state.missing
                let isLater = state.shift.leaveOutLost { lost.contains($0.number) }
                if isLater { state.isUnsaved = true }
            }
            return (state.shift, missing)
        }
        return shift.playlist(ending: ending) { !missing.contains($0.number) }
    }

    /// Records a request of a player, or of a page of another site, under a URL.
    package func noteAsked(_ url: AbsoluteURL, at now: Monotonic, isForPage: Bool) {
        let url = url.withoutDirectives
        state.withLock { state in
            let isLate = state.lastAsked.map { now - $0 > Self.longestPause } ?? true
            if isLate { state.watchedSince = now }
            state.lastAsked = now
            if !isForPage { state.isOfPlayer = true }
            if state.url != url { state.url = url }
        }
    }

    /// Returns the epoch that the place of a piece is marked with: another one than when the piece
    /// was requested if the origin has renumbered its list since, which still shows the place.
    func mark(of piece: TimeShiftFetches.Piece) -> Epoch {
        guard let segment = state.withLock({ $0.shift.segment(number: piece.number) }) else {
            return Epoch(number: piece.mark)
        }
        return switch piece.role {
        case .key: Epoch(number: segment.mark(ofKey: piece.url))
        case .initialization: Epoch(number: segment.marks.map)
        default: Epoch(number: segment.marks.segment)
        }
    }

    /// The longest pause within a run of requests: a playing player reloads its list more often,
    /// even from a slow origin.
    private static let longestPause = Interval.seconds(60 as Int64)

    /// True if the present run of requests began at least a second ago: the request that is
    /// answered now is not its first.
    package func isWatched(at now: Monotonic) -> Bool {
        state.withLock { state in
            state.watchedSince.map { now - $0 >= .seconds(1 as Int64) } ?? false
        }
    }
}

extension ShiftedList.State {
    package mutating func change() {
        version += 1
        isUnsaved = true
        let first = shift.segments.first?.number ?? 0
        if let oldest = missing.min(), oldest < first { missing = missing.filter { $0 >= first } }
    }

    /// Merges a window of `list`.
    fileprivate mutating func merge(
        _ reading: ShiftedList.Reading, _ summary: PlaylistSummary, _ list: ShiftedList,
        _ context: TimeShift.Context, _ table: TimeShiftTable
    ) throws(PlaylistError) -> ShiftedList.Outcome {
        var outcome = ShiftedList.Outcome()
        if isClosed {
            generation = reading.generation
            outcome.relation = .stale
            outcome.isShifted = !isOther
            return outcome
        }
        if let received, reading.received < received {
            outcome.relation = .stale
            outcome.isShifted = !isOther
            return outcome
        }
        generation = reading.generation
        received = reading.received
        let isFirst = shift.segments.isEmpty
        isComplete = isFirst && summary.kind == .media && summary.hasEndList
        isOther =
            isFirst && (summary.kind != .media || isComplete || summary.isChannelList)
        guard !isOther else {
            outcome.isShifted = false
            return outcome
        }
        let merge = try shift.merge(reading.body, base: reading.base, in: context)
        outcome.relation = merge.relation
        if merge.relation != .stale, table.mayBePrivate(reading.base) { shift.markPrivate() }
        outcome.missed = merge.missed
        // A name that was given again has another mark from a number on.
        let sharesMarks =
            merge.added.count < 2 || table.live.list(reading.key)?.namesEpoch == nil
        var known: (structure: TimeShiftSegment.Structure, marks: TimeShiftSegment.Marks)?
        for number in merge.added {
            guard let segment = shift.segment(number: number) else { continue }
            var shared: TimeShiftSegment.Marks?
            if sharesMarks, let known, known.structure == segment.structure {
                shared = known.marks
            }
            let marks = table.marks(
                of: segment, list.session, in: reading.key, shared: shared)
            known = (segment.structure, marks)
            if marks != segment.marks { shift.mark(number, marks) }
        }
        if let duration = list.session.shift.duration {
            outcome.dropped = shift.trim(to: duration)
        }
        // A reading of a node that lags says nothing of the present names.
        let isContinued = isRestored && merge.relation != .stale
        var isMarked = false
        if merge.relation != .stale {
            let siblingEpoch = max(markedSiblingEpoch, context.sibling?.listEpoch ?? .first)
            // A list that was renumbered may go on with the same segments.
            let hasNewMeanings =
                markedEpoch != context.listEpoch || markedSiblingEpoch != siblingEpoch
            if isRestored || (!isFirst && hasNewMeanings) {
                isMarked = markMissing(before: merge.added.lowerBound, reading, list, table)
            }
            isRestored = false
            markedEpoch = context.listEpoch
            markedSiblingEpoch = siblingEpoch
        }
        if isFirst || isContinued { lookedTo = shift.windowStart }
        let isExtended = merge.relation != .unchanged && merge.relation != .stale
        if isExtended || merge.fillsGaps || isMarked { change() }
        return outcome
    }

    /// Marks the known segments that the origin still lists and that are not stored with the epochs
    /// that their names have now, under which they are fetched.
    ///
    /// - Returns: true if a mark has changed.
    private mutating func markMissing(
        before end: Int, _ reading: ShiftedList.Reading, _ list: ShiftedList,
        _ table: TimeShiftTable
    ) -> Bool {
        var hasChanged = false
        var known = TimeShiftTable.KnownStructures()
        // An origin's window may begin at any number: only remembered segments are walked.
        let start = max(shift.windowStart, shift.segments.first?.number ?? 0)
        for number in start..<max(start, end) {
            guard let segment = shift.segment(number: number), !segment.isPlaceholder else {
                continue
            }
            let present = table.marks(of: segment, list.session, in: reading.key)
            // Files are opened for a few segments at most, once.
            guard present != segment.marks, !table.isKept(segment, list.session, &known) else {
                continue
            }
            // What is stored was requested once, and is not requested again.
            let marks = table.marks(present, ofMissingIn: segment, list.session)
            guard marks != segment.marks else { continue }
            shift.mark(number, marks)
            hasChanged = true
        }
        return hasChanged
    }

    /// Applies the changes of a merge in a copy; changes by other threads in the meantime are kept.
    fileprivate mutating func take(_ merged: Self, lookedTo looked: Int?, hasChanged: Bool) {
        // The list may have been written meanwhile.
        let start = shift.listStart
        shift = merged.shift
        shift.listStart = max(shift.listStart, start)
        generation = merged.generation
        received = merged.received
        isComplete = merged.isComplete
        isOther = merged.isOther
        if let looked { lookedTo = looked }
        isRestored = merged.isRestored
        markedEpoch = merged.markedEpoch
        markedSiblingEpoch = merged.markedSiblingEpoch
        if hasChanged { change() }
    }
}
