import URISyntax

/// Where a window joins the remembered segments if its numbers do not continue theirs.
///
/// Nodes of one origin may number the same segments independently, and one may lag behind another.
/// A restarted origin may give new segments the names of old ones. The names of segments decide,
/// since dates that are wrong, such as the same one at the start of each list, would keep new
/// segments out for ever:
///
/// | the window | its new segments |
/// |---|---|
/// | lists the last remembered segment | those after it |
/// | ends with one of those before, under another number | none: it lags behind |
/// | anything else | all |
///
/// Names that the origin gives again and again, like those of a ring of files, show no lag: a
/// restart may list any of them, and would be ignored until its list meets the last one.
struct WindowJoint {
    /// The place of a window among the remembered segments.
    enum Place: Hashable, Sendable {
        /// Nothing shows that it lists a remembered segment.
        case apart
        /// The last remembered segment is the one before this index; nothing is new if that is the
        /// newest one of the window.
        ///
        /// It goes on without doubt if a date or a name that was new makes the joint certain, and
        /// both have one host: a restarted ring of files joins, too, and another host may have
        /// another encoder.
        case after(Int, isContinuous: Bool = true)
        /// Its newest segment precedes the last remembered one.
        case behind
    }

    /// A segment of the window that may be a remembered one, by their indices.
    private struct Pair {
        let own: Int
        let seen: Int

        /// The pair of the segments so many places before.
        func before(_ count: Int) -> Pair { Pair(own: own - count, seen: seen - count) }
    }

    /// The most segments by which a window is expected to lag, if it is as long as that.
    private static let longestLag = 64
    /// The most pairs that are compared to find the right one, and the most segments for each.
    private static let mostPairs = 16

    private let segments: [TimeShiftSegment]
    private let listed: [LiveWindow.Segment]
    /// True if only path and query tell segments apart, and not file names.
    private let isWhole: Bool

    private init(of listed: [LiveWindow.Segment], in segments: [TimeShiftSegment]) {
        self.segments = segments
        self.listed = listed
        isWhole = !Self.haveNamesOfTheirOwn(listed, segments)
    }

    /// Returns the place of the segments of a window among the remembered ones; its list counts
    /// anew, or its numbers are those of another node.
    ///
    /// The cost is linear in the segments of the window.
    static func place(
        of listed: [LiveWindow.Segment], in segments: [TimeShiftSegment]
    ) -> Place {
        // The name of one segment next to one other shows nothing: both may have the only name.
        guard !segments.isEmpty, !listed.isEmpty, segments.count + listed.count > 2 else {
            return .apart
        }
        return WindowJoint(of: listed, in: segments).place
    }

    private var place: Place {
        let last = segments.count - 1
        let newest = listed.count - 1
        var pairs = listed.indices.map { Pair(own: last, seen: $0) }
        pairs.removeAll { !matches($0) }
        for own in last - min(listed.count, Self.longestLag, last)..<last {
            let pair = Pair(own: own, seen: newest)
            if matches(pair), !isRepeated(pair) { pairs.append(pair) }
        }
        guard pairs.count <= Self.mostPairs else { return .apart }
        if pairs.count > 1 { pairs.removeAll { !haveSameBefore($0) } }
        guard pairs.count == 1, let pair = pairs.first else { return .apart }
        let isCertain = isCertain(pair)
        if pair.own == last {
            return .after(pair.seen + 1, isContinuous: isCertain && haveOneHost(pair))
        }
        return isCertain ? .behind : .apart
    }

    private func haveOneHost(_ pair: Pair) -> Bool {
        guard let own = segments[pair.own].url, let seen = listed[pair.seen].url else {
            return true
        }
        return own.sharesAuthority(with: seen)
    }

    /// True if a pair is the same segment by its own date, or if it or one before it in both lists
    /// has a name that was new when it was listed.
    private func isCertain(_ pair: Pair) -> Bool {
        // The dates are near each other then.
        if listed[pair.seen].hasOwnDate, segments[pair.own].date != nil { return true }
        for count in 0...min(pair.own, pair.seen) {
            let before = pair.before(count)
            if segments[before.own].isPlaceholder { continue }
            guard matches(before) else { return false }
            if segments[before.own].generation == 0 { return true }
        }
        return false
    }

    /// True if file names tell the segments of the window apart, and as many of the newest
    /// remembered ones.
    private static func haveNamesOfTheirOwn(
        _ listed: [LiveWindow.Segment], _ segments: [TimeShiftSegment]
    ) -> Bool {
        func areDistinct(_ names: [SegmentName]) -> Bool { Set(names).count == names.count }
        let own = segments.suffix(min(listed.count, longestLag) + 1)
            .filter { !$0.isPlaceholder }
        return areDistinct(listed.map { fileName($0.uri, $0.url, $0.byteRange) })
            && areDistinct(own.map { fileName($0.uri, $0.url, $0.byteRange) })
    }

    private static func fileName(
        _ uri: [UInt8], _ url: AbsoluteURL?, _ range: SubRange?
    ) -> SegmentName {
        SegmentName(url.map { Array($0.bytes[$0.lastPathSegmentRange]) } ?? uri, range)
    }

    /// True if both are the same segment; with `isWhole`, only if path and query are the same too.
    private func matches(_ pair: Pair) -> Bool {
        let (known, seen) = (segments[pair.own], listed[pair.seen])
        guard !known.isPlaceholder, known.isSame(as: seen) else { return false }
        if !isWhole || known.uri == seen.uri { return true }
        guard let old = known.url, let new = seen.url else { return false }
        return old.bytes[old.pathRange.lowerBound...] == new.bytes[new.pathRange.lowerBound...]
    }

    /// True if the origin gives a name again under the same number: it counts anew.
    private func isRepeated(_ pair: Pair) -> Bool {
        segments[pair.own].epoch == segments.last?.epoch
            && segments[pair.own].originNumber == listed[pair.seen].originNumber
    }

    /// True if the segments before a pair are the same in both lists, as far as both have them.
    private func haveSameBefore(_ pair: Pair) -> Bool {
        for count in 1..<Self.mostPairs {
            let before = pair.before(count)
            guard before.own >= 0, before.seen >= 0,
                segments[before.own].epoch == segments[pair.own].epoch
            else { return true }
            guard segments[before.own].isPlaceholder || matches(before) else { return false }
        }
        return true
    }
}
