/// A media playlist as what runs ahead of players sees it: which bytes play when.
package import HLS
package import URISyntax

/// A resource, or a part of one, that playing needs.
package struct MediaPiece: Sendable, Hashable {
    package let url: AbsoluteURL
    /// Bytes of the resource; nil for the whole of it.
    package let range: Range<Int64>?
    package let role: ResourceRole

    package init(_ url: AbsoluteURL, range: Range<Int64>? = nil, role: ResourceRole) {
        self.url = url
        self.range = range
        self.role = role
    }
}

/// The segments of a list with what each needs to be played.
package struct MediaPicture: Sendable {
    /// One media segment.
    package struct Segment: Sendable, Hashable {
        package let piece: MediaPiece
        /// Playing time.
        package let seconds: Double
        /// Its media sequence number.
        package let sequence: Int
        /// The key and the initialization section in force.
        package let structure: [MediaPiece]
    }

    /// In their order; announced gaps are left out.
    package let segments: [Segment]
    /// Whether the list goes on growing.
    package let isLive: Bool
    private let places: [Place: Int]

    private struct Place: Hashable {
        let url: AbsoluteURL
        let start: Int64
    }

    /// A picture of given segments.
    package init(segments: [Segment], isLive: Bool) {
        self.segments = segments
        self.isLive = isLive
        var places: [Place: Int] = [:]
        places.reserveCapacity(segments.count)
        // From the end, so that of equal places the first one stays.
        for index in segments.indices.reversed() {
            let piece = segments[index].piece
            places[Place(url: piece.url, start: piece.range?.lowerBound ?? 0)] = index
        }
        self.places = places
    }

    /// Draws the picture of a media playlist while that is read.
    package struct Sketch {
        private var context: SegmentContext?
        private var structure: [MediaPiece] = []
        private var segments: [Segment] = []
        /// The last segment's playing time, as that of most others is: to divide durations takes more
        /// than all else that is done with a segment.
        private var latest = (duration: Duration.zero, seconds: 0.0)

        package init() {}

        /// Takes in the next reference of the list.
        package mutating func add(_ reference: ResourceReference) {
            guard reference.tag == .inf, !reference.isGap else { return }
            if context !== reference.context {
                context = reference.context
                structure = Self.structure(reference)
            }
            let duration = reference.duration ?? .zero
            if duration != latest.duration {
                latest = (duration, max(0, duration / .seconds(1)))
            }
            segments.append(
                Segment(
                    piece: MediaPiece(
                        reference.url, range: reference.byteRange?.bytes, role: reference.role),
                    seconds: latest.seconds,
                    sequence: reference.mediaSequence, structure: structure))
        }

        private static func structure(_ reference: ResourceReference) -> [MediaPiece] {
            var pieces: [MediaPiece] = []
            if let url = reference.mapURL {
                pieces.append(
                    MediaPiece(url, range: reference.mapByteRange?.bytes, role: .initialization))
            }
            if let url = reference.keyURL { pieces.append(MediaPiece(url, role: .key)) }
            return pieces
        }

        /// The picture, once the list was read to its end.
        package func picture(_ summary: PlaylistSummary) -> MediaPicture {
            MediaPicture(segments: segments, isLive: summary.isLive)
        }
    }

    /// The picture of a media playlist that was read.
    package init(_ references: [ResourceReference], _ summary: PlaylistSummary) {
        var sketch = Sketch()
        for reference in references { sketch.add(reference) }
        self = sketch.picture(summary)
    }

    /// Where a segment stands by its URL and, where several share one, by its first byte.
    package func index(of url: AbsoluteURL, from start: Int64 = 0) -> Int? {
        places[Place(url: url, start: start)] ?? (start == 0 ? nil : index(of: url))
    }

    /// The first segment that comes behind a media sequence number.
    package func index(after sequence: Int) -> Int {
        var low = 0
        var high = segments.count
        while low < high {
            let middle = (low + high) / 2
            if segments[middle].sequence <= sequence { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
