import URISyntax

/// What of a media playlist is kept, segment by segment, on the time line of its title.
package struct OfflineList: Sendable {
    /// One segment that the list names.
    package struct Segment: Sendable {
        /// The line of its URI.
        let line: Int
        let number: Int
        /// Seconds from the title's beginning.
        var start: Double
        let duration: Double
        let url: AbsoluteURL
        /// Whether it can be played: it is kept, with its key and its initialization section.
        package let isKept: Bool
        /// Whether another rendition's may stand in its place: a whole resource of its own, in the
        /// clear, that needs no initialization section.
        let isExchangeable: Bool

        var middle: Double { start + duration / 2 }
        var range: Range<Double> { start..<start + duration }
    }

    package private(set) var segments: [Segment] = []
    /// Whether any segment needs an initialization section.
    package let hasMap: Bool
    /// Whether the list was still growing when it was stored.
    let isLive: Bool
    private let firstNumber: Int

    /// Reads a media playlist.
    ///
    /// - Parameters:
    ///   - list: the playlist.
    ///   - isPresent: asked once of each segment, key and initialization section.
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
    }

    /// What can be played.
    package var kept: Stretches { Stretches(segments.filter(\.isKept).map(\.range)) }

    /// How many segments can be played.
    package var keptCount: Int { segments.count(where: \.isKept) }

    var isExchangeable: Bool { !segments.isEmpty && segments.allSatisfy(\.isExchangeable) }

    /// Moves a live list to where its window lies on the time line that begins with segment
    /// `number`: windows of renditions are read at different moments, and number alike.
    mutating func align(toNumber number: Int) {
        guard isLive, !segments.isEmpty, firstNumber > number else { return }
        let mean = segments.reduce(0) { $0 + $1.duration } / Double(segments.count)
        let shift = Double(firstNumber - number) * mean
        // Numbers that have nothing to do with each other say nothing of time.
        guard firstNumber - number <= segments.count else { return }
        for index in segments.indices { segments[index].start += shift }
    }

    var start: Int { firstNumber }
}
