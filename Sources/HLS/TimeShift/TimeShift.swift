import Numbers
package import URISyntax

/// The successive windows of a live media playlist, joined into a longer one.
///
/// Segments that have left the origin's window are kept. Numbers rise by one from segment to
/// segment and never go back, even if the origin restarts its numbering. A value without clock or
/// lock; each belongs to one media playlist of one session. Takes about a kilobyte a segment.
package struct TimeShift: Sendable {
    /// The relation of a window to those before it.
    package enum Relation: Hashable, Sendable {
        case first
        /// It contains nothing new.
        case unchanged
        /// It continues the last one, possibly after missed segments.
        case advanced
        /// It is older than the last one, from a cache on the way that lags behind; it was ignored.
        case stale
        /// The origin restarted its numbering or lists other segments: a discontinuity, and a new
        /// epoch.
        case newEpoch
    }

    package struct Merge: Sendable {
        package let relation: Relation
        /// The numbers of the new segments, without placeholders.
        package let added: Range<Int>
        /// The number of segments that were never seen; each has a placeholder, but for those of a
        /// hole that is too long for that.
        package let missed: Int
        /// True if the origin lists segments as present that it had marked as missing.
        package var fillsGaps = false
        /// URLs that named other segments before: bytes stored for them are not those of the new
        /// segment.
        package let reused: [AbsoluteURL]
    }

    /// The context of a window besides its text.
    package struct Context: Sendable {
        /// The variables of the multivariant playlist.
        package var variables: [String: String] = [:]
        /// Another rendition of the same presentation; numbers and epochs are kept in step with it.
        package var sibling: TimeShift?
        /// True if a window with lower numbers is a new epoch, and not a late one, and one with
        /// higher numbers does not follow a hole.
        package var countsAnew = false
        /// The epoch that the origin's list is in now; nil if it is unknown.
        package var listEpoch: Epoch?

        package init(
            variables: [String: String] = [:], sibling: TimeShift? = nil, countsAnew: Bool = false,
            listEpoch: Epoch? = nil
        ) {
            self.variables = variables
            self.sibling = sibling
            self.countsAnew = countsAnew
            self.listEpoch = listEpoch
        }
    }

    package struct Limits: Hashable, Sendable {
        /// The most segments that are remembered, whatever their duration.
        ///
        /// Default 50,000: more than a day of 2 s segments.
        package var segmentCount = 50_000
        /// The most consecutive placeholders; a longer hole is a discontinuity, and a new epoch,
        /// unless another rendition was read meanwhile.
        package var placeholderCount = 2_000
        /// The most by which the discontinuity sequence number rises from one segment to the next.
        ///
        /// Each step is a line of the playlist. A larger step of the origin, as in a hole, is
        /// reduced to this.
        package var discontinuityStep = 16
        /// The most bytes of EXT-X-DATERANGE lines; the oldest are dropped first.
        ///
        /// Default 16 MiB, as long as the longest list of an origin.
        package var dateRangeByteCount = 16 << 20
        /// The most bytes that the segments may take in a playlist, whether remembered or written;
        /// the oldest are dropped first.
        ///
        /// Default 96 MiB, so that a window with its dates and notes can be read again, see
        /// `PlaylistLimits.own`; a day of 2 s segments takes about 10 MiB.
        package var byteCount = 96 << 20

        package init() {}
    }

    var remembered = ShiftedSegments()
    /// Oldest first.
    package var segments: [TimeShiftSegment] { remembered.all }
    /// After how many segments the origin gives names again, by the segments of the present epoch;
    /// nil if it does not.
    package var nameDistance: Int? { remembered.nameDistance }
    /// The number of segments that were dropped for the limits since the first window.
    package internal(set) var droppedCount = 0
    /// The number of segments that were never seen and have no placeholder.
    var skippedCount = 0
    /// The number of segments that the stream had since the first window and that are not listed.
    package var lostCount: Int { droppedCount.addingSaturated(skippedCount) }
    /// True if the origin has ended the stream.
    package var isEnded: Bool { newestWindow.summary.hasEndList }
    /// The epoch of the newest segment.
    package internal(set) var epoch = 0
    /// The epoch that the origin's list was in at the last change; nil if it is unknown.
    ///
    /// A saved window may be older than the saved epoch of its list: then the list was renumbered
    /// since, although its next reading continues the last one.
    package internal(set) var listEpoch: Epoch?
    /// The number of the first segment of the origin's newest window; earlier ones exist only in
    /// this list.
    package var windowStart: Int { newestWindow.start }
    /// Segments before this number are not listed for players any more: they were gaps at the start
    /// once, see `leaveOutLost`.
    package var listStart = 0
    package let limits: Limits
    /// Segments before this number may have been listed by a private host; nil if none was.
    var privateEnd: Int?

    var newestWindow = NewestWindow()
    /// The URLs of the newest window's segments that are remembered under others, by number: their
    /// tokens may be newer.
    package private(set) var renewedURLs: [Int: AbsoluteURL] = [:]
    var dateRanges: ShiftedDateRanges
    /// The origin's discontinuity sequence number of the newest segment.
    var originDiscontinuity = 0
    /// The numbers of the first segment of the first window.
    var began = FirstNumbers()
    private(set) var origin: Origin?

    package init(limits: Limits = Limits()) {
        self.limits = limits
        dateRanges = ShiftedDateRanges(limit: limits.dateRangeByteCount)
    }

    /// Merges `body`, a media playlist that came from `base`: its URL after redirects.
    ///
    /// Delta updates may follow a full playlist. The texts of an origin all end with a line end, or
    /// none does: one that ends in the middle of a URI has been cut there. Never blocks. Throws the
    /// same errors as a rewrite, and then changes nothing.
    package mutating func merge(
        _ body: [UInt8], base: AbsoluteURL, in context: Context = Context()
    ) throws(PlaylistError) -> Merge {
        var window = try LiveWindow(
            body, base: base, PlaylistReading(variables: context.variables),
            context: segments.last?.context ?? .none)
        if newestWindow.isTerminated { window.dropUnfinished(of: body) }
        let merge = take(window, from: base.origin, context)
        if merge.relation != .stale { newestWindow.isTerminated = LiveWindow.isTerminated(body) }
        return merge
    }

    /// Drops the oldest segments beyond `duration`, but none of the origin's newest window.
    ///
    /// - Returns: the dropped segments.
    @discardableResult
    package mutating func trim(to duration: Duration) -> [TimeShiftSegment] {
        var kept = Duration.zero
        var first = segments.endIndex
        while first > segments.startIndex {
            // In place: there may be days of them.
            guard remembered.all[first - 1].number >= windowStart || kept < duration else { break }
            kept += remembered.all[first - 1].duration
            first -= 1
        }
        let index = max(first, segments.count - limits.segmentCount)
        let dropped = Array(segments[..<index])
        dropSegments(before: index)
        return dropped
    }

    private mutating func dropSegments(before index: Int) {
        guard index > 0 else { return }
        let next = segments[index - 1].number + 1
        remembered.removeFirst(index)
        dateRanges.drop(before: next)
    }

    /// Drops the oldest segments beyond the limits.
    mutating func dropExcess() {
        let count = max(
            segments.count - limits.segmentCount, remembered.excessCount(over: limits.byteCount))
        droppedCount = droppedCount.addingSaturated(max(count, 0))
        dropSegments(before: count)
    }

    // MARK: Merging

    private mutating func take(
        _ window: LiveWindow, from source: Origin, _ context: Context
    ) -> Merge {
        let sibling = context.sibling
        if isOutOfStep(with: sibling), !window.segments.isEmpty {
            dropSegments(before: segments.count)
        }
        let placement = placement(of: window, from: source, context)
        guard placement.relation != .stale else {
            return Merge(relation: .stale, added: 0..<0, missed: 0, reused: [])
        }
        if !placement.isInStep {
            origin = source
            if placement.relation != .unchanged || listEpoch == nil {
                listEpoch = context.listEpoch ?? listEpoch
            }
        }
        newestWindow.takeHead(of: window)
        let fillsGaps = !placement.isInStep && fillGaps(window, placement)
        let fresh = window.segments[placement.firstNew...]
        var missed = placement.missed
        var epochStep = 1
        if placement.relation == .first {
            if let first = fresh.first, let newest = fresh.last {
                began = FirstNumbers(of: first, newest: newest, inStepWith: sibling, limits)
                epoch = began.epoch ?? epoch
            }
        } else if placement.relation == .newEpoch {
            epoch += 1
            began.isBehind = false
            var filled = 0
            var stepOfOther: Int?
            if let next = fresh.first {
                stepOfOther = discontinuityStep(inStepWith: sibling, at: next)
                filled = catchUp(with: sibling, at: next)
            }
            skippedCount = skippedCount.addingSaturated(max(missed - filled, 0))
            missed = max(missed, filled)
            epochStep = stepOfOther ?? (placement.isContinuous && missed == 0 ? 0 : 1)
        } else if missed > 0, let last = segments.last {
            appendPlaceholders(missed, after: last)
        }
        let start = segments.last.map { $0.number + 1 } ?? (fresh.isEmpty ? 0 : began.number)
        var reused: [AbsoluteURL] = []
        var shared: SharedContext?
        let length = window.summary.nextMediaSequence - window.summary.mediaSequence
        for segment in fresh {
            let made = make(segment, ownContext(of: segment, &shared), epochStep: epochStep)
            let generation = remembered.appendNew(made, windowLength: length)
            if generation > 0, let url = made.url { reused.append(url) }
        }
        note(window)
        dropExcess()
        let end = segments.last.map { $0.number + 1 } ?? start
        return Merge(
            relation: placement.relation, added: start..<end, missed: missed, fillsGaps: fillsGaps,
            reused: reused)
    }

    /// Takes over which of the known segments the origin has by now: packagers list a late one as
    /// missing at first.
    ///
    /// - Returns: true if there are any.
    private mutating func fillGaps(
        _ window: LiveWindow, _ placement: WindowComparison.Placement
    ) -> Bool {
        guard [.unchanged, .advanced].contains(placement.relation) else { return false }
        var fillsAny = false
        for segment in window.segments[..<placement.firstNew]
        where !segment.isGap && remembered.fillGap(segment.originNumber) {
            fillsAny = true
        }
        return fillsAny
    }

    /// Returns what becomes of a window.
    private func placement(
        of window: LiveWindow, from source: Origin, _ context: Context
    ) -> WindowComparison.Placement {
        WindowComparison(
            listed: window.segments, remembered: remembered,
            sibling: context.sibling?.remembered, limits: limits,
            targetDuration: targetDuration,
            countsAnew: context.countsAnew || isBefore(context.listEpoch),
            isOfOtherOrigin: origin.map { $0 != source } ?? false
        ).placement
    }

    /// The target duration of the newest window; nil if it states none, or one of over a minute,
    /// which is taken for a mistake.
    var targetDuration: Duration? {
        newestWindow.summary.targetDuration.flatMap { $0 <= .seconds(60) ? $0 : nil }
    }

    /// True if the origin's list has entered this epoch since the last change.
    private func isBefore(_ epoch: Epoch?) -> Bool {
        guard let epoch, let listEpoch else { return false }
        return listEpoch < epoch
    }

    /// A context as a window read it, and the object that the remembered segments share for it.
    private struct SharedContext {
        let seen: TimeShiftContext
        let own: TimeShiftContext
    }

    /// Returns the context of a new segment.
    ///
    /// Each merge creates new contexts, although most segments have that of the one before them.
    /// Those of one window share theirs: its lines, which can be long, are compared once.
    private func ownContext(
        of seen: LiveWindow.Segment, _ shared: inout SharedContext?
    ) -> TimeShiftContext {
        if let shared, shared.seen === seen.context { return shared.own }
        let own = segments.last.map {
            $0.context == seen.context ? $0.context : seen.context.sharing($0.context)
        }
        shared = SharedContext(seen: seen.context, own: own ?? seen.context)
        return own ?? seen.context
    }

    /// Returns a new segment after the last one.
    ///
    /// - Parameters:
    ///   - seen: the segment as its window lists it.
    ///   - context: its context.
    ///   - epochStep: the least rise of the discontinuity sequence number if it begins an epoch; 0
    ///     where it follows the last one all the same: the origin's tags alone then say whether
    ///     there is a discontinuity between them.
    /// - Returns: the segment.
    private mutating func make(
        _ seen: LiveWindow.Segment, _ context: TimeShiftContext, epochStep: Int
    ) -> TimeShiftSegment {
        let last = segments.last
        let number = last.map { $0.number + 1 } ?? began.number
        let isNewEpoch = last.map { $0.epoch != epoch } ?? false
        let least = isNewEpoch ? epochStep : nil
        let discontinuity =
            last.map { $0.discontinuity + discontinuityStep(to: seen, atLeast: least) }
            ?? began.discontinuity
        originDiscontinuity = seen.originDiscontinuity
        return TimeShiftSegment(
            number: number, originNumber: seen.originNumber, epoch: epoch, generation: 0,
            discontinuity: discontinuity, url: seen.url, byteRange: seen.byteRange,
            duration: seen.duration, date: seen.date ?? nextDate(discontinuity),
            isGap: seen.isGap, isPlaceholder: false, uri: seen.uri, lines: seen.lines,
            hasOwnDate: seen.hasOwnDate, context: context)
    }

    /// Returns the end date of the last segment if it has the same discontinuity sequence number as
    /// the next one.
    func nextDate(_ discontinuity: Int) -> DateTime? {
        guard let last = segments.last, last.discontinuity == discontinuity else { return nil }
        return last.date.map { $0 + last.duration }
    }

    /// Returns the rise of the discontinuity sequence number from the last segment to `seen`.
    ///
    /// `least` is that of the first segment of an epoch, whose number at the origin says nothing;
    /// nil for others.
    private func discontinuityStep(to seen: LiveWindow.Segment, atLeast least: Int?) -> Int {
        // Segments that were never seen may lie between this one and the last.
        let passed = least ?? seen.originDiscontinuity - originDiscontinuity
        let counts = least != nil || newestWindow.summary.startsWithDiscontinuitySequence
        return min(max(seen.discontinuities, counts ? passed : 0), limits.discontinuityStep)
    }

    /// Returns the segment with a number; nil if it is not remembered.
    package func segment(number: Int) -> TimeShiftSegment? { remembered.segment(number: number) }

    /// Returns the marks of a segment; nil if it is not remembered.
    package func marks(number: Int) -> TimeShiftSegment.Marks? {
        // Avoids copying the segment, since this is called for every URL of a list that may cover a
        // day.
        guard let index = remembered.index(of: number) else { return nil }
        return remembered.all[index].marks
    }

    /// Sets the marks of a segment.
    package mutating func mark(_ number: Int, _ marks: TimeShiftSegment.Marks) {
        remembered.mark(number, marks)
    }

    /// The digests of all segments that it names, ascending.
    package var digests: [Int] { segments.filter { !$0.isPlaceholder }.map(\.digest).sorted() }

    /// Returns the mark of a key that a segment needs; 0 if the segment is not remembered.
    package func mark(ofKey url: AbsoluteURL, number: Int) -> UInt32 {
        segment(number: number)?.mark(ofKey: url) ?? 0
    }

    /// Returns the epoch of a name that a segment has or needs.
    ///
    /// Only the origin's newest window has parts, and what the segment in progress needs: its names
    /// mean there what they mean now.
    ///
    /// - Parameters:
    ///   - reference: the name of the segment, its key, its initialization section or a part of it.
    ///   - number: the number of the segment.
    /// - Returns: the epoch; nil where the present one applies, and the first one for a segment that
    ///   is not remembered any more.
    package func nameEpoch(of reference: ResourceReference, for number: Int) -> Epoch? {
        switch reference.role {
        case .part: return nil
        case .playlist, .json: return .first
        case .initialization, .key, .segment, .subtitle, .media, .image: break
        }
        guard let marks = marks(number: number) else {
            let isComplete = segments.last.map { number <= $0.number } ?? false
            return isComplete ? .first : nil
        }
        return switch reference.role {
        case .initialization: Epoch(number: marks.map)
        case .key: Epoch(number: mark(ofKey: reference.url, number: number))
        default: Epoch(number: marks.segment)
        }
    }

    /// Records what the newest window has besides segments.
    private mutating func note(_ window: LiveWindow) {
        renewedURLs = [:]
        guard let offset = newestWindow.takeEnd(of: window, last: segments.last),
            let last = segments.last
        else { return }
        dateRanges.beginWindow(
            isDelta: window.summary.isSkipDelta, removed: window.removedDateRanges)
        for segment in window.segments {
            let number = segment.originNumber + offset
            if let url = segment.url, let place = remembered.index(of: number),
                remembered.all[place].url != url
            {
                renewedURLs[number] = url
            }
            for range in segment.dateRanges { dateRanges.noteListed(range, at: number) }
        }
        for range in window.tailDateRanges { dateRanges.noteListed(range, at: last.number) }
    }

    // MARK: Private hosts

    /// True if the window may have something that a private host listed.
    ///
    /// What such a host listed, to which a redirect had led, stays in the window after the origin's
    /// text comes from a public one again.
    package var mayBePrivate: Bool {
        guard let privateEnd else { return false }
        return (segments.first?.number ?? 0) < privateEnd || segments.isEmpty
    }

    /// Records that the text that was merged last may come from a private host.
    package mutating func markPrivate() {
        privateEnd = (segments.last?.number ?? -1) + 1
    }
}
