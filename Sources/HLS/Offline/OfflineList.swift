import URISyntax

/// The segments of a media playlist that are kept, on the time line of the title.
package struct OfflineList: Sendable {
    /// One segment of the playlist.
    package struct Segment: Sendable {
        /// The line of its URI.
        let line: Int
        let number: Int
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
    /// True if any segment needs an initialization section.
    package let hasMap: Bool
    /// The number of segments that can be played.
    package let keptCount: Int
    /// True if other renditions' segments can replace all of its segments.
    let isExchangeable: Bool
    /// True if the playlist was still growing when it was stored.
    let isLive: Bool
    private let firstNumber: Int

    /// Creates the list from a media playlist.
    ///
    /// - Parameters:
    ///   - list: the playlist.
    ///   - isPresent: called once for each segment, key and initialization section.
    package init(
        _ list: Playlist, isPresent: (ResourceReference) -> Bool
    ) {
        isLive = list.summary.isLive
        firstNumber = list.summary.mediaSequence
        var absent: Set<AbsoluteURL> = []
        var time = 0.0
        var hasMap = false
        var segments: [Segment] = []
        list.forEachReference { reference in
            switch reference.tag {
            case .key, .map:
                if !isPresent(reference) { absent.insert(reference.url) }
            case .inf:
                let needs = [reference.keyURL, reference.mapURL].compactMap { $0 }
                let isKept =
                    !reference.isGap && !needs.contains(where: absent.contains)
                    && isPresent(reference)
                let duration = max(0, reference.duration.map { $0 / .seconds(1) } ?? 0)
                hasMap = hasMap || reference.hasMap
                segments.append(
                    Segment(
                        line: reference.line, number: reference.mediaSequence, start: time,
                        duration: duration, url: reference.url, isKept: isKept,
                        isExchangeable: needs.isEmpty && !reference.hasMap
                            && reference.byteRange == nil))
                time += duration
            default: break
            }
        }
        self.hasMap = hasMap
        self.segments = segments
        keptCount = segments.count(where: \.isKept)
        isExchangeable = !segments.isEmpty && segments.allSatisfy(\.isExchangeable)
    }

    /// The time ranges that can be played.
    package var kept: Stretches { Stretches(segments.filter(\.isKept).map(\.range)) }

    /// Shifts a live list to the place of its window on the time line that begins with segment
    /// `number`: the windows of renditions are fetched at different times, and share their
    /// numbering.
    mutating func align(toNumber number: Int) {
        guard isLive, !segments.isEmpty, firstNumber > number else { return }
        let mean = segments.reduce(0) { $0 + $1.duration } / Double(segments.count)
        let shift = Double(firstNumber - number) * mean
        // A larger distance means unrelated numbering, which tells nothing about time.
        guard firstNumber - number <= segments.count else { return }
        for index in segments.indices { segments[index].start += shift }
    }

    var start: Int { firstNumber }
}
