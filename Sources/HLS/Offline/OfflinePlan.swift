package import URISyntax

/// Decides which parts of a title can be played from what is stored, the same for all its
/// playlists.
///
/// Players match video and audio by discontinuity and time. A hole in only one of them would break
/// their synchronization, so all playlists of a title are cut to the same time ranges: those that a
/// variant stream and its audio have in common, for the pair with the longest total. Other
/// playlists that cover these ranges are listed too, those of I-frames and images among them; the
/// rest is not.
///
/// A playlist that ends before the others has nothing behind its end that could be missing: if its
/// last segment is stored, the others are played beyond it, as they are at the origin.
///
/// If no pair plays, variants of whose audio nothing is stored are played without it: a download
/// may have been ordered so.
///
/// The windows of live playlists that were stored at different times are not played together: the
/// latest are, if anything of them is kept. If no time has both video and its audio, those that may
/// have unrelated numbers and were received within a few windows are taken for windows of one.
///
/// If segments need an initialization section, only the longest range is kept, since some players
/// stop permanently at a hole in fragmented MP4. The same applies to live playlists, since a hole
/// would give later segments other media sequence numbers than before, and with them other links.
/// A plan that keeps every stretch applies neither rule.
///
/// Audio and subtitles may have longer segments than the video. Their segments are listed with the
/// length of what is played of them. Those of subtitles are listed in each stretch that they
/// overlap; those of audio once, in the stretch that has their middle or, at the beginning, in the
/// first one: sound that is repeated would replace, in a player's buffer, that of the time before.
///
/// One discontinuity stands for a hole, whatever the origin has in it. In each stretch, the
/// discontinuity sequence numbers of all playlists differ from the origin's by as much as those of
/// the chosen variant stream: other playlists may have no segment of a stretch, or other segments
/// than the video in a hole.
package struct OfflinePlan: Sendable {
    /// The time ranges that are played; empty if there is nothing to play.
    package private(set) var stretches = Stretches()
    /// The playlists that cover all of them, by the URL that names them.
    package private(set) var playable: Set<AbsoluteURL> = []
    /// Replacements for segments that a playlist lacks: by playlist, and by line in it.
    package private(set) var borrowed: [AbsoluteURL: [Int: AbsoluteURL]] = [:]
    /// Playlists with much longer segments than the video, such as subtitles: their last segment
    /// may extend beyond the end.
    private var coarse: Set<AbsoluteURL> = []
    /// Subtitles of whose segments parts are listed.
    private var fitted: Set<AbsoluteURL> = []
    /// The playlists of audio.
    private let sounds: Set<AbsoluteURL>
    /// The playlists of subtitles.
    private let subtitles: Set<AbsoluteURL>
    /// True if fragmented MP4 and live playlists are not reduced to one range.
    private let keepsEveryStretch: Bool

    /// The playlists of the title, aligned on one time line.
    private var lists: [AbsoluteURL: OfflineList]
    /// The chosen variant stream.
    private var stream: AbsoluteURL?
    /// The chosen variant stream and its audio.
    private var chosen: Set<AbsoluteURL> = []
    /// By how much discontinuity sequence numbers are higher than at the origin, by stretch; empty
    /// without a variant stream.
    private var discontinuityShifts: [Int] = []

    /// The estimated memory in bytes.
    package var byteCount: Int {
        let ofLists = lists.values.reduce(0) { $0 + $1.byteCount }
        return borrowed.values.reduce(ofLists) { $0 + 100 * $1.count }
    }

    /// Creates the plan for a single media playlist.
    package init(only list: OfflineList, at url: AbsoluteURL) {
        lists = [url: list]
        (sounds, subtitles) = ([], [])
        keepsEveryStretch = false
        stretches = PlaybackPairs.played(list.kept, of: [list])
        if !stretches.isEmpty { playable = [url] }
    }

    /// Creates the plan of a title.
    ///
    /// - Parameters:
    ///   - variants: its variant streams, in their order.
    ///   - lists: its media playlists as far as they are stored, including those of renditions, by
    ///     the URL that names them.
    ///   - keepsEveryStretch: true if fragmented MP4 and live playlists are not reduced to one
    ///     range.
    ///   - subtitles: the playlists of subtitles, whose segments may be longer than what is played.
    ///   - stills: its playlists of I-frames and images, which decide nothing about the others.
    package init(
        _ variants: [Variant], lists: [AbsoluteURL: OfflineList], keepsEveryStretch: Bool = false,
        subtitles: Set<AbsoluteURL> = [], stills: [AbsoluteURL: OfflineList] = [:]
    ) {
        self.init(variants, ofLatestTimeIn: lists, keepsEveryStretch, subtitles)
        if isEmpty {
            let silent = variants.silent(in: lists)
            if !silent.isEmpty {
                self = OfflinePlan(silent, ofLatestTimeIn: lists, keepsEveryStretch, subtitles)
            }
        }
        guard !isEmpty else { return }
        let shapes = self.shapes
        let played = chosen.compactMap { self.lists[$0] }
        for (url, list) in stills where self.lists[url] == nil {
            // Live ones are not aligned with the others.
            guard played.allSatisfy(list.mayCompareEnd) else { continue }
            self.lists[url] = list
            include(url, list, shapes)
        }
    }

    /// Creates the plan of the latest time of which anything plays.
    private init(
        _ variants: [Variant], ofLatestTimeIn lists: [AbsoluteURL: OfflineList],
        _ keepsEveryStretch: Bool, _ subtitles: Set<AbsoluteURL>
    ) {
        var windows = OfflineWindows(lists)
        var all = windows.takeLatest()
        var plan = OfflinePlan(variants, ofOneTime: all, keepsEveryStretch, subtitles)
        while plan.isEmpty, !windows.isEmpty {
            let earlier = windows.takeLatest()
            all.merge(earlier) { later, _ in later }
            plan = OfflinePlan(variants, ofOneTime: earlier, keepsEveryStretch, subtitles)
            // Audio and video with unrelated numbers may be of one time all the same.
            if plan.isEmpty, windows.isEmpty {
                plan = OfflinePlan(variants, ofOneTime: all, keepsEveryStretch, subtitles)
            }
        }
        self = plan
    }

    private init(
        _ variants: [Variant], ofOneTime lists: [AbsoluteURL: OfflineList],
        _ keepsEveryStretch: Bool, _ subtitles: Set<AbsoluteURL>
    ) {
        self.lists = lists
        self.keepsEveryStretch = keepsEveryStretch
        self.subtitles = subtitles
        sounds = variants.sounds
        let pairs = PlaybackPairs(variants, in: lists, keepsEveryStretch: keepsEveryStretch)
        let kept = lists.mapValues(\.kept)
        var choice = pairs.longest(streams: kept, sounds: kept)
        let replacements = SegmentReplacements(variants, lists)
        var completed: [AbsoluteURL: Stretches] = [:]
        for (url, loan) in replacements.byBorrower {
            guard let list = lists[url] else { continue }
            completed[url] = Stretches(
                list.segments.filter { $0.isKept || loan[$0.line] != nil }.map(\.range))
        }
        let together = pairs.longest(streams: completed, sounds: kept)
        if let together, together.stretches.duration > (choice?.stretches.duration ?? 0) + 0.5 {
            choice = together
            let url = together.pair.stream
            borrowed = [url: replacements.byBorrower[url] ?? [:]]
        }
        guard let choice else { return }
        let url = choice.pair.stream
        stream = url
        playable = [url, choice.pair.sound ?? url]
        stretches = choice.stretches
        // Players count discontinuities: audio with another number than the video would be played
        // at another time, or wait for it for ever.
        stretches = widerHoles(at: url)
        stretches = stretches.having(middles(at: url))
        stretches = withoutBareEnds(at: url)
        if stretches.isEmpty {
            clear()
            return
        }
        chosen = playable
        discontinuityShifts = shifts(at: url)
        let played = playable.compactMap { lists[$0] }
        let shapes = self.shapes
        for (url, list) in lists where !playable.contains(url) {
            guard played.allSatisfy({ list.mayShareTime(with: $0) }) else { continue }
            include(url, list, shapes)
        }
    }

    /// Returns the middles of the segments of a playlist that are kept or borrowed.
    private func middles(at url: AbsoluteURL) -> [Double] {
        let substitutes = borrowed[url] ?? [:]
        return (lists[url]?.segments ?? [])
            .filter { $0.isKept || substitutes[$0.line] != nil }.map(\.middle)
    }

    /// Returns the ranges without those segments of the video that would be listed although audio
    /// is missing between their ends.
    ///
    /// The video has a discontinuity between any two of what is returned.
    private func widerHoles(at url: AbsoluteURL) -> Stretches {
        let segments = lists[url]?.segments ?? []
        var holes: [Range<Double>] = []
        var first = 0
        for (range, next) in zip(stretches.ranges, stretches.ranges.dropFirst()) {
            let hole = range.upperBound..<next.lowerBound
            while first < segments.count, segments[first].range.upperBound <= hole.lowerBound {
                first += 1
            }
            let overlapped = segments[first...].prefix { $0.start < hole.upperBound }
            // A segment with its middle there is not listed.
            guard !overlapped.contains(where: { hole.contains($0.middle) }) else { continue }
            let most = overlapped.map(\.range).max {
                $0.clamped(to: hole).length < $1.clamped(to: hole).length
            }
            if let most { holes.append(most) }
        }
        guard !holes.isEmpty else { return stretches }
        var rest: [Range<Double>] = []
        var start = -Double.infinity
        for hole in holes {
            rest.append(start..<max(start, hole.lowerBound))
            start = max(start, hole.upperBound)
        }
        rest.append(start..<Double.infinity)
        return stretches.intersection(Stretches(rest))
    }

    /// Returns the ranges without a beginning, or an end, that a discontinuity of the origin
    /// separates from all segments that the video lists of the range.
    ///
    /// Audio there would have no pictures, and one discontinuity more than the video.
    private func withoutBareEnds(at url: AbsoluteURL) -> Stretches {
        let segments = lists[url]?.segments ?? []
        var ranges = stretches.ranges
        for (before, after) in zip(segments, segments.dropFirst())
        where before.discontinuity != after.discontinuity {
            guard let index = stretches.index(of: after.start) else { continue }
            if stretches.index(of: before.middle) != index {
                ranges[index] = ranges[index].clamped(to: after.start..<Double.infinity)
            } else if stretches.index(of: after.middle) != index {
                ranges[index] = ranges[index].clamped(to: -Double.infinity..<after.start)
            }
        }
        return Stretches(ranges)
    }

    /// Returns by how much the discontinuity sequence numbers of a playlist's listed segments are
    /// higher than at the origin, by stretch.
    private func shifts(at url: AbsoluteURL) -> [Int] {
        let missing = missing(at: url)
        var shifts: [Int] = []
        // The number of the segment that was listed last.
        var written = 0
        for segment in lists[url]?.segments ?? [] where !missing.contains(segment.line) {
            if stretches.index(of: segment.middle) == shifts.count {
                shifts.append(shifts.isEmpty ? 0 : written + 1 - segment.discontinuity)
            }
            written = segment.discontinuity + (shifts.last ?? 0)
        }
        return shifts
    }

    /// Makes the plan one with nothing to play.
    private mutating func clear() {
        stretches = Stretches()
        (playable, borrowed, stream) = ([], [:], nil)
    }

    /// The shapes that other playlists may have: the segments of the chosen audio end elsewhere
    /// than those of the video, and segments of other languages often end where those do.
    ///
    /// The first two are those of the video.
    private var shapes: [Stretches] {
        let video = stream.map { [$0] } ?? []
        return [stretches]
            + (video + chosen.subtracting(video)).compactMap { lists[$0] }.map {
                listedRanges(of: $0)
            }
    }

    /// Lists a playlist beside the chosen ones, if it covers what is played.
    private mutating func include(
        _ url: AbsoluteURL, _ list: OfflineList, _ shapes: [Stretches]
    ) {
        let isText = subtitles.contains(url)
        // Segments that end where those of the audio do may begin before the video.
        if isText, !covers(list, as: shapes.prefix(2)), coversInParts(list) {
            playable.insert(url)
            fitted.insert(url)
        } else if covers(list, as: shapes[...]) {
            playable.insert(url)
        } else if stretches.ranges.count == 1 || (isText && keepsEveryStretch),
            coversCoarsely(list)
        {
            playable.insert(url)
            coarse.insert(url)
        }
    }

    /// True if there is nothing to play.
    package var isEmpty: Bool { stretches.isEmpty }

    /// The playlists that can be played together with the chosen ones, listed or not.
    var listsOfItsTime: [AbsoluteURL: OfflineList] {
        let played = chosen.compactMap { lists[$0] }
        return lists.filter { _, list in played.allSatisfy { list.mayShareTime(with: $0) } }
    }

    /// Returns the lines of the segments of a playlist that are not listed.
    package func missing(at url: AbsoluteURL) -> Set<Int> {
        guard let list = lists[url] else { return [] }
        let substitutes = borrowed[url] ?? [:]
        let isCoarse = coarse.contains(url) || fitted.contains(url)
        let isSound = isSound(list, at: url)
        var played = list.segments.indices.filter { index in
            let segment = list.segments[index]
            if !segment.isKept, substitutes[segment.line] == nil { return false }
            return isCoarse
                ? stretches.overlaps(segment.range)
                : stretches.contains(segment.middle) || (isSound && leadsIn(segment))
        }
        // A range ignores holes that are shorter than the rounding of durations.
        if list.isLive, !keepsEveryStretch { played = Array(Self.longestRun(of: played)) }
        let lines = Set(played.map { list.segments[$0].line })
        return Set(list.segments.map(\.line)).subtracting(lines)
    }

    /// Returns the pieces of the listed segments of a playlist, by line; empty if they are listed
    /// as they are.
    ///
    /// Audio and subtitles with other segments than the video have to be as long as the video. All
    /// playlists have discontinuities at the same times.
    package func pieces(at url: AbsoluteURL) -> [Int: [SegmentPiece]] {
        guard let list = lists[url] else { return [:] }
        let isText = fitted.contains(url)
        let isCoarse = coarse.contains(url)
        let isTrimmed = isText || isSound(list, at: url)
        guard isTrimmed || discontinuityShifts.count > 1 else { return [:] }
        let missing = missing(at: url)
        var found: [Int: [SegmentPiece]] = [:]
        for segment in list.segments where !missing.contains(segment.line) {
            var pieces = isTrimmed ? stretches.pieces(of: segment.range) : []
            if !isText, pieces.count > 1 {
                pieces = [pieces.first { $0.contains(segment.duration / 2) } ?? pieces[0]]
            }
            if pieces.isEmpty {
                let stretch =
                    isCoarse
                    ? stretches.pieces(of: segment.range).first?.stretch
                    : stretches.index(of: segment.middle)
                guard let stretch else { continue }
                pieces = [SegmentPiece(stretch: stretch, offset: 0, seconds: nil)]
            }
            found[segment.line] = pieces.map { piece in
                var piece = piece
                if discontinuityShifts.indices.contains(piece.stretch) {
                    piece.discontinuity =
                        segment.discontinuity + discontinuityShifts[piece.stretch]
                }
                return piece
            }
        }
        let isPlain = found.values.allSatisfy { $0.count == 1 && $0[0].seconds == nil }
        return isPlain && stretches.ranges.count == 1 ? [:] : found
    }

    /// True for audio beside the chosen video whose times are known exactly.
    private func isSound(_ list: OfflineList, at url: AbsoluteURL) -> Bool {
        guard sounds.contains(url), url != stream, let video = stream.flatMap({ lists[$0] }) else {
            return false
        }
        return list.mayCompareEnd(with: video)
    }

    /// The least seconds that are played of a segment for it to be listed although its middle is
    /// not: frames of audio do not end where those of video do, so that segments of equal length
    /// overlap by up to a few tenths of a second.
    private static let leastLeadIn = 0.5

    /// True if a segment begins before what is played, and has its beginning.
    private func leadsIn(_ segment: OfflineList.Segment) -> Bool {
        guard let first = stretches.ranges.first else { return false }
        return segment.start < first.lowerBound
            && segment.range.upperBound > first.lowerBound + Self.leastLeadIn
    }

    /// Returns the TIME-OFFSET of the multivariant playlist's EXT-X-START for what is played.
    ///
    /// - Parameter offset: the origin's.
    /// - Returns: the offset of the same point; nil if that is not played.
    package func movedStart(_ offset: Duration) -> Duration? {
        guard let stream, let list = lists[stream] else { return offset }
        return list.movedStart(offset, without: missing(at: stream))
    }

    /// Returns the longest run of consecutive numbers, the last of equally long ones.
    private static func longestRun(of ascending: [Int]) -> Range<Int> {
        var longest = 0..<0
        var run = 0..<0
        for number in ascending {
            run = (number == run.upperBound ? run.lowerBound : number)..<(number + 1)
            if run.count >= longest.count { longest = run }
        }
        return longest
    }

    /// Returns the ranges of the segments that a playlist lists of all stretches.
    private func listedRanges(of list: OfflineList) -> Stretches {
        Stretches(list.segments.filter { stretches.contains($0.middle) }.map(\.range))
    }

    /// Returns the ranges that a playlist covers, with those behind its end, where it lacks nothing.
    private func withRest(_ own: Stretches, of list: OfflineList) -> Stretches {
        guard let last = own.ranges.last, list.isEnd(last.upperBound),
            chosen.allSatisfy({ lists[$0].map(list.mayCompareEnd) ?? false })
        else { return own }
        let rest = stretches.intersection(Stretches([last.upperBound..<Double.infinity]))
        return Stretches(own.ranges + rest.ranges)
    }

    /// The most pieces of a playlist beyond one for each segment: each makes players fetch the
    /// segment again.
    private static let mostRepeats = 64

    /// True if a playlist has every segment that overlaps a range, wherever it begins and ends.
    private func coversInParts(_ list: OfflineList) -> Bool {
        guard chosen.allSatisfy({ lists[$0].map(list.mayCompareEnd) ?? false }) else {
            return false
        }
        let listed = list.segments.filter { stretches.overlaps($0.range) }
        guard !listed.isEmpty, listed.allSatisfy(\.isKept) else { return false }
        let own = withRest(Stretches(listed.map(\.range)), of: list)
        guard own.intersection(stretches).duration > stretches.duration - 1 else { return false }
        let count = listed.reduce(0) { $0 + stretches.pieces(of: $1.range).count }
        return count <= listed.count + Self.mostRepeats
    }

    /// True if a playlist covers all ranges from the beginning of the first one, with segments that
    /// may end later.
    private func coversCoarsely(_ list: OfflineList) -> Bool {
        let listed = list.segments.filter { stretches.overlaps($0.range) }
        guard !listed.isEmpty, listed.allSatisfy(\.isKept) else { return false }
        let own = withRest(Stretches(listed.map(\.range)), of: list)
        guard let first = stretches.ranges.first, let last = stretches.ranges.last,
            let ownFirst = own.ranges.first, let ownLast = own.ranges.last
        else { return false }
        return own.ranges.count <= stretches.ranges.count
            && abs(ownFirst.lowerBound - first.lowerBound) < 1
            && ownLast.upperBound > last.upperBound - 1
    }

    /// True if a playlist covers all ranges, with segments that begin and end where those of one of
    /// the shapes do.
    private func covers(_ list: OfflineList, as shapes: ArraySlice<Stretches>) -> Bool {
        let listed = list.segments.filter { stretches.contains($0.middle) }
        guard !listed.isEmpty, listed.allSatisfy(\.isKept) else { return false }
        let own = Stretches(listed.map(\.range))
        return shapes.contains { Self.isAlike(own, $0) }
            || Self.isAlike(withRest(own, of: list), stretches)
    }

    private static func isAlike(_ ranges: Stretches, _ shape: Stretches) -> Bool {
        guard ranges.ranges.count == shape.ranges.count else { return false }
        return zip(ranges.ranges, shape.ranges).allSatisfy { own, wanted in
            abs(own.lowerBound - wanted.lowerBound) < 1
                && abs(own.upperBound - wanted.upperBound) < 1
        }
    }
}
