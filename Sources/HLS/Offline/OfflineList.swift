import URISyntax

/// The segments of a media playlist that are kept, on the time line of the title.
package struct OfflineList: Sendable {
    /// One segment of the playlist.
    package struct Segment: Sendable {
        /// The line of its URI.
        let line: Int
        let number: Int
        /// Its discontinuity sequence number: the first one of the list and the EXT-X-DISCONTINUITY
        /// tags up to it.
        let discontinuity: Int
        /// Seconds from the start of the title.
        var start: Double
        let duration: Double
        let url: AbsoluteURL
        /// True if it can be played: it is stored with its key and initialization section.
        package let isKept: Bool
        /// True if another rendition's segment can replace it: it is a whole resource, unencrypted
        /// and without an initialization section.
        let isExchangeable: Bool

        var middle: Double { start + duration / 2 }
        var range: Range<Double> { start..<start + duration }
    }

    package private(set) var segments: [Segment] = []
    /// The estimated memory in bytes.
    var byteCount: Int {
        segments.reduce(0) { $0 + $1.url.bytes.count + MemoryLayout<Segment>.stride + 32 }
    }
    /// True if any segment needs an initialization section.
    package let hasMap: Bool
    /// The number of segments that can be played.
    package let keptCount: Int
    /// True if other renditions' segments can replace all of its segments.
    let isExchangeable: Bool
    /// True if the playlist was still growing when it was stored.
    let isLive: Bool
    /// True if it was growing then or at any earlier time: its place in the stream depends on when
    /// it was read.
    let slides: Bool
    /// When the origin sent it or confirmed it last, in seconds of a clock that all lists of a title
    /// share; nil if that is not known.
    let received: Double?
    /// The sum of the durations of its segments, in seconds.
    let length: Double
    /// The sum of the durations of the segments that can be played, in seconds.
    let keptLength: Double
    /// The number of its first segment.
    let start: Int
    /// The time of the stream that it shows, counted from the latest one of the title; nil before
    /// the lists are told apart, and for a list that was never live.
    var timeIndex: Int?

    /// Creates the list from a media playlist.
    ///
    /// - Parameters:
    ///   - list: the playlist.
    ///   - wasLive: whether its URL had a live playlist before.
    ///   - received: when the origin sent it or confirmed it last, in seconds; nil if that is not
    ///     known.
    ///   - isPresent: called once for each segment, initialization section and key, except keys
    ///     that only a key system can get.
    package init(
        _ list: Playlist, wasLive: Bool = false, received: Double? = nil,
        isPresent: (ResourceReference) -> Bool
    ) {
        isLive = list.summary.isLive
        slides = wasLive || list.summary.isLive
        self.received = received
        start = list.summary.mediaSequence
        var keys = StoredKeys(list)
        var absentMaps: Set<Section> = []
        // Thousands of segments may share a section whose URL is as long as a line.
        var context: SegmentContext?
        var isMapAbsent = false
        var time = 0.0
        var hasMap = false
        var segments: [Segment] = []
        // Segments whose URIs pass to players unchanged have tags too, and no reference.
        var unread = (list.media?.segments ?? [])[...]
        var discontinuity = list.summary.discontinuitySequence ?? 0
        list.forEachReference { reference in
            switch reference.tag {
            case .key: keys.note(reference, isPresent)
            case .map:
                if !isPresent(reference) {
                    absentMaps.insert(Section(url: reference.url, range: reference.byteRange))
                }
            case .inf:
                keys.advance(to: reference.line)
                if context !== reference.context {
                    context = reference.context
                    let map = reference.mapURL.map {
                        Section(url: $0, range: reference.mapByteRange)
                    }
                    isMapAbsent = map.map(absentMaps.contains) == true
                }
                let isKept =
                    !reference.isGap && keys.suffice && !isMapAbsent && isPresent(reference)
                let duration = max(0, reference.duration.map { $0 / .seconds(1) } ?? 0)
                while let next = unread.first, next.line <= reference.line {
                    discontinuity += next.discontinuities
                    unread.removeFirst()
                }
                hasMap = hasMap || reference.hasMap
                segments.append(
                    Segment(
                        line: reference.line, number: reference.mediaSequence,
                        discontinuity: discontinuity, start: time, duration: duration,
                        url: reference.url, isKept: isKept,
                        isExchangeable: keys.isClear && !reference.hasMap
                            && reference.byteRange == nil))
                time += duration
            default: break
            }
        }
        self.hasMap = hasMap
        self.segments = segments
        length = time
        keptCount = segments.count(where: \.isKept)
        keptLength = segments.reduce(0) { $1.isKept ? $0 + $1.duration : $0 }
        isExchangeable = !segments.isEmpty && segments.allSatisfy(\.isExchangeable)
    }

    /// True if everything can be played.
    var isWhole: Bool { keptCount == segments.count && !segments.isEmpty }

    /// True if it was never live and everything can be played, so that nothing is left out of it.
    package var isWholeFilm: Bool { isWhole && !slides }

    /// The lines of the segments that cannot be played.
    package var missing: Set<Int> { Set(segments.filter { !$0.isKept }.map(\.line)) }

    /// The time ranges that can be played.
    package var kept: Stretches { Stretches(segments.filter(\.isKept).map(\.range)) }

    /// The time at which its last segment ends; 0 without segments.
    var end: Double { segments.last?.range.upperBound ?? 0 }

    /// True if a time is the end of the list, but for the rounding of durations.
    func isEnd(_ time: Double) -> Bool { time > end - Stretches.tolerance }

    /// True if it is known which of two lists ends first: both have ended, and their times are exact.
    ///
    /// The times of windows that begin at different numbers are estimated.
    func mayCompareEnd(with other: OfflineList) -> Bool {
        guard !isLive, !other.isLive else { return false }
        return start == other.start || (!slides && !other.slides)
    }

    /// Returns the offset of a point in the list without some of its segments.
    ///
    /// - Parameters:
    ///   - offset: seconds from the start of the list, or from its end if negative.
    ///   - missing: the lines of the segments that are left out.
    /// - Returns: the offset; nil if the point is in a segment that is left out.
    func movedStart(_ offset: Duration, without missing: Set<Int>) -> Duration? {
        guard !missing.isEmpty, let first = segments.first?.start else { return offset }
        let left = segments.lazy.filter { !missing.contains($0.line) }.map { segment in
            segment.start - first..<segment.start - first + segment.duration
        }
        return StartOffset.moved(offset, in: length, to: Array(left))
    }

    /// Shifts a list that is or was live to the place of its window on the time line that begins with
    /// segment `number`: the windows of renditions are fetched at different times, and share their
    /// numbering.
    mutating func align(toNumber number: Int) {
        guard slides, !segments.isEmpty, start > number else { return }
        let shift = Double(start - number) * (length / Double(segments.count))
        for index in segments.indices { segments[index].start += shift }
    }
}

/// An initialization section.
private struct Section: Hashable {
    let url: AbsoluteURL
    /// Nil for the whole resource.
    let range: SubRange?
}

/// The keys in force while a list is read, as far as they can be stored.
private struct StoredKeys {
    /// The keys of the list that are not in force yet.
    private var coming: ArraySlice<EncryptionKey>
    /// The lines of the keys that only a key system can get.
    private let foreignLines: Set<Int>
    /// The lines of the keys that are stored.
    private var storedLines: Set<Int> = []
    /// Whether the key in force of each KEYFORMAT is stored.
    private var inForce: [String: Bool] = [:]
    /// True if the next segment can be decrypted as far as stored keys decide: keys of different
    /// formats are the same key in different wrappings, so that one is enough.
    private(set) var suffice = true
    /// True if the next segment is unencrypted: no key is in force, be it in the playlist itself or
    /// one that only a key system can get.
    private(set) var isClear = true

    init(_ list: Playlist) {
        coming = (list.media?.keys ?? [])[...]
        foreignLines = list.media.map { ContentProtection.read($0).foreignKeyLines } ?? []
    }

    /// Looks a key up in the store, unless only a key system can get it.
    mutating func note(_ reference: ResourceReference, _ isPresent: (ResourceReference) -> Bool) {
        guard !foreignLines.contains(reference.line), isPresent(reference) else { return }
        storedLines.insert(reference.line)
    }

    /// Puts the keys before a segment's line in force.
    mutating func advance(to line: Int) {
        guard let first = coming.first, first.line < line else { return }
        while let key = coming.first, key.line < line {
            coming.removeFirst()
            isClear = key.isNone
            if key.isNone {
                inForce = [:]
            } else if foreignLines.contains(key.line) {
                inForce[key.format] = nil
            } else {
                // A key in the playlist itself, `data:`, need not be stored.
                inForce[key.format] = key.reference == nil || storedLines.contains(key.line)
            }
        }
        suffice = inForce.isEmpty || inForce.values.contains(true)
    }
}
