// A media playlist as look-ahead needs it: which bytes are played when.
package import HLS
package import URISyntax

/// A resource, or a part of one, that playback needs.
package struct MediaPiece: Sendable, Hashable {
    package let url: AbsoluteURL
    /// The byte range of the resource; nil for all of it.
    package let range: Range<Int64>?
    package let role: ResourceRole

    package init(_ url: AbsoluteURL, range: Range<Int64>? = nil, role: ResourceRole) {
        self.url = url
        self.range = range
        self.role = role
    }
}

/// The segments of a list in order, with the resources that each needs for playback; gaps
/// (`EXT-X-GAP`) are omitted.
///
/// A list may have tens of thousands of segments, is read again every few seconds if it is live,
/// and few of its segments are ever needed. So each takes a small entry without references to
/// objects, and its URL is created on request.
package struct CompactMediaList: Sendable {
    /// One media segment.
    package struct Segment: Sendable {
        package let piece: MediaPiece
        /// The playing time in seconds.
        package let seconds: Double
        /// Its media sequence number.
        package let sequence: Int
        /// The key and the initialization section in force.
        package let structure: [MediaPiece]

        package init(
            piece: MediaPiece, seconds: Double, sequence: Int, structure: [MediaPiece]
        ) {
            self.piece = piece
            self.seconds = seconds
            self.sequence = sequence
            self.structure = structure
        }
    }

    /// True if the list is still growing.
    package let isLive: Bool
    private let table: Table
    /// A digest of each segment's URL for searching: a live list is searched once or twice before
    /// it changes, which is too seldom for a dictionary.
    private let digests: [UInt32]
    /// The estimated memory in bytes, with the playlist's text, to which URLs refer.
    let byteCount: Int

    private init(_ table: Table, isLive: Bool) {
        self.table = table
        self.isLive = isLive
        digests = table.entries.map(table.digest)
        byteCount = table.byteCount + digests.count * MemoryLayout<UInt32>.stride
    }

    /// Creates a picture of given segments.
    package init(segments: some Sequence<Segment>, isLive: Bool) {
        var table = Table()
        for segment in segments {
            if table.structures.last != segment.structure {
                table.structures.append(segment.structure)
            }
            table.add(
                .whole(segment.piece.url), segment.piece.range, segment.piece.role,
                segment.seconds, segment.sequence)
        }
        self.init(table, isLive: isLive)
    }

    /// Creates the picture of a parsed media playlist.
    package init(_ list: Playlist) {
        var sketch = Sketch()
        list.media?.segments.forEach { sketch.add($0) }
        self = sketch.picture(list.summary)
    }

    // MARK: Segments

    package var count: Int { table.entries.count }

    /// All segments with their URLs.
    package var segments: [Segment] {
        table.entries.indices.map { index in
            Segment(
                piece: piece(at: index), seconds: seconds(at: index),
                sequence: sequence(at: index), structure: structure(at: index))
        }
    }

    /// Returns the resource of a segment; creates its URL.
    package func piece(at index: Int) -> MediaPiece { table.piece(table.entries[index]) }

    /// Returns the playing time of a segment in seconds.
    package func seconds(at index: Int) -> Double { table.entries[index].seconds }

    /// Returns the media sequence number of a segment.
    package func sequence(at index: Int) -> Int { table.entries[index].sequence }

    /// The media sequence numbers of the first and the last segment; nil without segments.
    package var sequences: ClosedRange<Int>? {
        guard let first = table.entries.first?.sequence, let last = table.entries.last?.sequence
        else { return nil }
        return min(first, last)...max(first, last)
    }

    /// Returns the key and the initialization section in force for a segment.
    package func structure(at index: Int) -> [MediaPiece] {
        table.structures[Int(table.entries[index].structure)]
    }

    /// True if no tag between two segments sets another key or initialization section; compares no
    /// URLs, of which thousands of segments may share one as long as a line.
    func sharesStructure(at index: Int, with other: Int) -> Bool {
        table.entries[index].structure == table.entries[other].structure
    }

    /// The keys and initialization sections of all segments.
    var structures: Set<MediaPiece> { Set(table.structures.joined()) }

    /// Returns the index of a segment by its URL and, if several share one, by the first byte of a
    /// request: the segment that begins there, otherwise the first one that contains it.
    package func index(of url: AbsoluteURL, from start: Int64 = 0) -> Int? {
        let digest = url.tailDigest
        var containing: Int?
        for index in digests.indices where digests[index] == digest {
            let entry = table.entries[index]
            let range = table.range(entry)
            let isStart = (range?.lowerBound ?? 0) == start
            guard isStart || (containing == nil && range?.contains(start) ?? true),
                table.isSame(entry, as: url)
            else { continue }
            if isStart { return index }
            containing = index
        }
        return containing
    }

    /// Returns the index of the first segment after a media sequence number.
    package func index(after sequence: Int) -> Int {
        var low = 0
        var high = count
        while low < high {
            let middle = (low + high) / 2
            if self.sequence(at: middle) <= sequence { low = middle + 1 } else { high = middle }
        }
        return low
    }

    // MARK: Building

    /// Builds the picture of a media playlist while the playlist is parsed.
    package struct Sketch: Sendable {
        private var context: SegmentContext?
        private var table = Table()
        /// The last segment's duration and its playing time, cached since most segments have the
        /// same: dividing durations takes more time than all other work on a segment.
        private var latest = (duration: Duration.zero, seconds: 0.0)

        package init() {}

        /// Adds the next reference of a list that is being rewritten.
        package mutating func add(_ reference: ResourceReference) {
            // By pattern, here and for the tag of a link: == on an enumeration of another module is a
            // call through its witness, for each segment.
            guard case .inf = reference.tag, !reference.isGap else { return }
            add(
                reference.place, reference.byteRange, reference.role, reference.duration,
                reference.mediaSequence, reference.context)
        }

        /// Adds the next segment of a list that is being read.
        package mutating func add(_ segment: MediaPlaylist.Segment) {
            guard let place = segment.place, !segment.isGap else { return }
            add(
                place, segment.byteRange, segment.role, segment.duration, segment.mediaSequence,
                segment.context)
        }

        @inline(__always)
        private mutating func add(
            _ place: ResourceReference.Place, _ range: SubRange?, _ role: ResourceRole,
            _ length: Duration?, _ sequence: Int, _ newContext: SegmentContext
        ) {
            if context !== newContext {
                context = newContext
                table.structures.append(Self.structure(newContext))
            }
            let duration = length ?? .zero
            if duration != latest.duration {
                latest = (duration, max(0, duration / .seconds(1)))
            }
            table.add(place, range?.bytes, role, latest.seconds, sequence)
        }

        private static func structure(_ context: SegmentContext) -> [MediaPiece] {
            var pieces: [MediaPiece] = []
            if let url = context.mapURL {
                pieces.append(
                    MediaPiece(url, range: context.mapByteRange?.bytes, role: .initialization))
            }
            if let url = context.keyURL, !context.isKeyOfSystem {
                pieces.append(MediaPiece(url, role: .key))
            }
            return pieces
        }

        /// Returns the picture, once the whole list was read.
        package func picture(_ summary: PlaylistSummary) -> CompactMediaList {
            CompactMediaList(table, isLive: summary.isLive)
        }
    }

    /// The segments, and separately what several of them share or few have.
    private struct Table: Sendable {
        struct Entry: Sendable {
            let place: Place
            let role: ResourceRole
            let seconds: Double
            let sequence: Int
            /// Indexes in the table; -1 for no range.
            let structure: Int32
            let range: Int32
        }

        /// The location of a URL.
        enum Place: Sendable {
            case whole(Int32)
            case joined(folder: Int32, JoinedURL.Offsets)
        }

        var entries: [Entry] = []
        var structures: [[MediaPiece]] = []
        private var folders: [URLFolder] = []
        private var urls: [AbsoluteURL] = []
        private var ranges: [Range<Int64>] = []

        /// The estimated memory in bytes.
        ///
        /// Few segments have a URL or a structure of their own, so that this looks at few. URLs
        /// that structures share count several times.
        var byteCount: Int {
            var count =
                entries.count * MemoryLayout<Entry>.stride
                + ranges.count * MemoryLayout<Range<Int64>>.stride
                + (folders.first?.document.count ?? 0)
            for folder in folders { count += folder.bytes.count + folder.member.bytes.count + 200 }
            for url in urls { count += url.bytes.count + 100 }
            for pieces in structures {
                count += 50
                for piece in pieces { count += piece.url.bytes.count + 100 }
            }
            return count
        }

        /// Adds a segment with the structure that was added last.
        mutating func add(
            _ place: ResourceReference.Place, _ range: Range<Int64>?, _ role: ResourceRole,
            _ seconds: Double, _ sequence: Int
        ) {
            if let range { ranges.append(range) }
            entries.append(
                Entry(
                    place: self.place(place), role: role, seconds: seconds, sequence: sequence,
                    structure: Int32(structures.count - 1),
                    range: range == nil ? -1 : Int32(ranges.count - 1)))
        }

        private mutating func place(_ place: ResourceReference.Place) -> Place {
            switch place {
            case .whole(let url):
                urls.append(url)
                return .whole(Int32(urls.count - 1))
            case .joined(let joined):
                if folders.last !== joined.folder { folders.append(joined.folder) }
                return .joined(folder: Int32(folders.count - 1), joined.offsets)
            }
        }

        func piece(_ entry: Entry) -> MediaPiece {
            let url =
                switch entry.place {
                case .whole(let number): urls[Int(number)]
                case .joined(let folder, let offsets): folders[Int(folder)].url(at: offsets)
                }
            return MediaPiece(url, range: range(entry), role: entry.role)
        }

        func range(_ entry: Entry) -> Range<Int64>? {
            entry.range < 0 ? nil : ranges[Int(entry.range)]
        }

        func digest(_ entry: Entry) -> UInt32 {
            switch entry.place {
            case .whole(let number): urls[Int(number)].tailDigest
            case .joined(let folder, let offsets): folders[Int(folder)].tailDigest(at: offsets)
            }
        }

        func isSame(_ entry: Entry, as url: AbsoluteURL) -> Bool {
            switch entry.place {
            case .whole(let number): urls[Int(number)] == url
            case .joined(let folder, let offsets):
                folders[Int(folder)].isSame(at: offsets, as: url)
            }
        }
    }
}
