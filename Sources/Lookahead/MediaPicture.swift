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
    package struct Segment: Sendable {
        /// As the list names it: most segments of a long list are asked for by nobody, and need no
        /// URL in one piece.
        fileprivate let place: ResourceReference.Place
        package let role: ResourceRole
        /// Bytes of the resource; nil for the whole of it.
        package let range: Range<Int64>?
        /// Playing time.
        package let seconds: Double
        /// Its media sequence number.
        package let sequence: Int
        /// The key and the initialization section in force.
        package let structure: [MediaPiece]

        fileprivate init(
            _ reference: ResourceReference, seconds: Double, structure: [MediaPiece]
        ) {
            place = reference.place
            role = reference.role
            range = reference.byteRange?.bytes
            self.seconds = seconds
            sequence = reference.mediaSequence
            self.structure = structure
        }

        package init(
            piece: MediaPiece, seconds: Double, sequence: Int, structure: [MediaPiece]
        ) {
            place = .whole(piece.url)
            role = piece.role
            range = piece.range
            self.seconds = seconds
            self.sequence = sequence
            self.structure = structure
        }

        /// What playing it needs; makes its URL.
        package var piece: MediaPiece { MediaPiece(place.url, range: range, role: role) }

        fileprivate var start: Int64 { range?.lowerBound ?? 0 }
    }

    /// In their order; announced gaps are left out.
    package let segments: [Segment]
    /// Whether the list goes on growing.
    package let isLive: Bool
    /// Of each segment's URL, by which it is found: a live list changes every few seconds and is asked
    /// once or twice, which is too seldom for a table.
    private let digests: [UInt32]

    /// A picture of given segments.
    package init(segments: [Segment], isLive: Bool) {
        self.segments = segments
        self.isLive = isLive
        digests = segments.map(\.place.tailDigest)
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
                Segment(reference, seconds: latest.seconds, structure: structure))
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
        let digest = url.tailDigest
        var atStart: Int?
        for index in digests.indices where digests[index] == digest {
            let segment = segments[index]
            guard segment.start == start || segment.start == 0, segment.place.isSame(as: url)
            else { continue }
            if segment.start == start { return index }
            atStart = atStart ?? index
        }
        return atStart
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
