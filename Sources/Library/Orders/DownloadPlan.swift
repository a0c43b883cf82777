// The pieces that a complete download must have in the store.
package import HLS
import Numbers
package import URISyntax

/// A resource, or a range of one, that a download needs.
package struct DownloadPiece: Sendable, Hashable {
    package let url: AbsoluteURL
    /// Nil for a file without a playlist.
    package let role: ResourceRole?
    /// Nil for the whole resource.
    package let range: Range<Int64>?
    /// Playing time; 0 for keys and initialization sections.
    package var seconds: Double
    /// Playing time before it.
    package var start: Double
    /// Its length in bytes: that of its range, or estimated from a bit rate; nil without both.
    package var expectedBytes: Int64?
}

/// The pieces of a title, in the order in which they are fetched.
package struct DownloadPlan: Sendable {
    package private(set) var pieces: [DownloadPiece] = []
    /// Playing time of the longest playlist.
    package private(set) var seconds = 0.0
    /// The streams and renditions of the plan, for users.
    package private(set) var labels: [String] = []
    /// The key systems that prevent playback with stored keys.
    package private(set) var protection: ContentProtection?
    /// The sum of the pieces' expected lengths.
    private var expectedBytes: Int64 = 0
    /// The number of pieces without an expected length.
    private var unknownLengths = 0
    /// True if all pieces are byte ranges, so that their total is no estimate.
    package private(set) var isExact = true
    /// True for a file until its length is known.
    private var isOpen = false
    private var known: Set<Identity> = []

    package init() {}

    private struct Identity: Hashable {
        let url: AbsoluteURL
        let range: Range<Int64>?
    }

    /// Adds the segments of a media playlist within `from..<to`, and what they need.
    ///
    /// Keys and initialization sections that no selected segment uses are left out.
    ///
    /// - Parameters:
    ///   - list: the playlist.
    ///   - label: its stream or rendition, for users.
    ///   - bandwidth: the bits per second of segments that are no byte ranges; nil if unknown.
    ///   - from: the start in seconds of playing time; nil for that of the title.
    ///   - to: the end.
    package mutating func add(
        _ list: MediaPlaylist, label: String, bandwidth: Int? = nil, from: Double?, to: Double?
    ) {
        labels.append(label)
        let keys = ContentProtection.read(list)
        if let found = keys.protection {
            if protection?.add(found) == nil { protection = found }
        }
        var clock = 0.0
        var kept = 0.0
        let structure = SegmentStructure(list, without: keys.foreignKeyLines)
        var place: SegmentStructure.Place?
        for segment in list.segments {
            let seconds = max(0, segment.duration.map { $0 / .seconds(1) } ?? 0)
            let start = clock
            clock += seconds
            guard let url = segment.place?.url, !segment.isGap else { continue }
            if let from, clock <= from { continue }
            if let to, start >= to { break }
            let former = place
            place = structure.place(of: segment)
            if place != former {
                for (url, range, role) in structure.needs(of: segment) {
                    add(
                        DownloadPiece(
                            url: url, role: role, range: range, seconds: 0, start: start),
                        bandwidth: 0)
                }
            }
            add(
                DownloadPiece(
                    url: url, role: segment.role, range: segment.byteRange?.bytes,
                    seconds: seconds, start: start),
                bandwidth: bandwidth)
            kept += seconds
        }
        self.seconds = max(self.seconds, kept)
    }

    private mutating func add(_ piece: DownloadPiece, bandwidth: Int?) {
        guard known.insert(Identity(url: piece.url, range: piece.range)).inserted else { return }
        var piece = piece
        if let range = piece.range {
            piece.expectedBytes = Int64(range.count)
        } else {
            isExact = false
            let seconds = piece.seconds
            piece.expectedBytes = bandwidth.map { Int64(saturating: seconds * Double($0) / 8) }
        }
        if let bytes = piece.expectedBytes {
            expectedBytes = expectedBytes.addingSaturated(bytes)
        } else {
            unknownLengths += 1
        }
        pieces.append(piece)
    }

    /// Returns the length of all pieces together, in which known lengths replace expected ones.
    ///
    /// - Parameter lengths: known lengths by the index of the piece.
    /// - Returns: 0...2^53 - 1; nil if the length of a piece is neither known nor expected.
    package func expectedTotal(knowing lengths: [Int: Int64] = [:]) -> Int64? {
        var (sum, unknown) = (expectedBytes, unknownLengths)
        for (index, length) in lengths where pieces.indices.contains(index) {
            let expected = pieces[index].expectedBytes
            if expected == nil { unknown -= 1 }
            sum = sum.addingSaturated(length.subtractingSaturated(expected ?? 0))
        }
        guard unknown == 0, !isOpen else { return nil }
        return min(max(0, sum), Int64(ExternalNumber.largest))
    }

    /// Plans the first part of a file without a playlist; its response tells the length of the
    /// file.
    package mutating func addFirstPart(of url: AbsoluteURL) {
        labels = ["file"]
        add(
            DownloadPiece(url: url, role: nil, range: 0..<Self.part, seconds: 0, start: 0),
            bandwidth: nil)
        isOpen = true
    }

    /// Plans the other parts of a file, which can be fetched in parallel, once its length is known.
    ///
    /// The first part keeps its index and ends where the file does.
    package mutating func addParts(of url: AbsoluteURL, total: Int64) {
        pieces = []
        known = []
        expectedBytes = 0
        isOpen = false
        let total = max(0, total)
        let part = max(Self.part, total / Self.mostParts + 1)
        var offset: Int64 = 0
        repeat {
            let end = min(total, offset.addingSaturated(offset == 0 ? Self.part : part))
            add(
                DownloadPiece(
                    url: url, role: nil, range: offset..<end, seconds: 0, start: Double(offset)),
                bandwidth: nil)
            offset = end
        } while offset < total
    }

    /// The bytes of one part of a file: half a second on a fast network.
    package static let part: Int64 = 4 << 20

    /// The most parts; a file of more than 256 GiB has larger ones, since its length is whatever
    /// the origin says.
    static let mostParts: Int64 = 65_536

    /// Sorts the pieces of all playlists by playing time, so that a partial download can be played
    /// from its start.
    package mutating func sort() {
        let order = pieces.indices.sorted { a, b in
            (pieces[a].start, a) < (pieces[b].start, b)
        }
        pieces = order.map { pieces[$0] }
    }
}
