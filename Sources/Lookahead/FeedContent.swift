// What is known of one item of a feed, and how far it is got ready.
import HLS
import Numbers
import URISyntax

/// The pieces of an item in the order in which they play.
package struct FeedPlan: Sendable, Equatable {
    /// One piece.
    package struct Part: Sendable, Equatable {
        package let piece: MediaPiece
        /// Playing time; 0 for keys and initialization sections.
        package let seconds: Double
        /// Where its playing time begins.
        package let begins: Double

        package init(_ piece: MediaPiece, seconds: Double, begins: Double) {
            self.piece = piece
            self.seconds = seconds
            self.begins = begins
        }
    }

    package let parts: [Part]
    /// Bytes that a second takes, as announced by whoever wrote the playlist; nil where nothing tells.
    package let rate: Double?

    package init(parts: [Part], rate: Double?) {
        self.parts = parts
        self.rate = rate
    }

    /// The plan of tracks that are played together.
    ///
    /// - Parameters:
    ///   - tracks: the pictures of their lists; the first one's segments come first where times are
    ///     equal.
    ///   - rate: bytes that a second of all of them takes.
    ///   - most: segments of each track that are of use; nil for all.
    package init(_ tracks: [MediaPicture], rate: Double?, most: Int? = nil) {
        var parts: [Part] = []
        for track in tracks {
            var begins = 0.0
            var known: Set<MediaPiece> = []
            for segment in track.segments.prefix(most ?? .max) {
                for piece in segment.structure where known.insert(piece).inserted {
                    parts.append(Part(piece, seconds: 0, begins: begins))
                }
                parts.append(Part(segment.piece, seconds: segment.seconds, begins: begins))
                begins += segment.seconds
            }
        }
        let order = parts.enumerated().sorted {
            ($0.element.begins, $0.offset) < ($1.element.begins, $1.offset)
        }
        self.init(parts: order.map(\.element), rate: rate)
    }

    /// The playing time of all.
    var seconds: Double { parts.reduce(0) { max($0, $1.begins + $1.seconds) } }

    /// What a neighbour gets: pieces from the start until they hold both the seconds and the bytes.
    ///
    /// Sizes are not known before the bytes come: where the announced rate says that a segment holds
    /// much more than is wanted, its beginning is taken.
    func head(_ parameters: FeedParameters) -> [(index: Int, range: Range<Int64>?)] {
        var head: [(index: Int, range: Range<Int64>?)] = []
        var bytes: Int64 = 0
        for (index, part) in parts.enumerated() {
            guard part.seconds > 0 || isFile else {
                head.append((index, part.piece.range))
                continue
            }
            if part.begins >= parameters.headSeconds, bytes >= parameters.headBytes { break }
            let wanted = max(
                parameters.headBytes.subtractingSaturated(bytes),
                self.bytes(in: parameters.headSeconds - part.begins) ?? 0)
            let size = self.bytes(in: part.seconds)
            // Where only bytes count, so many are taken whatever the segment holds.
            let cut =
                size == nil && part.piece.range == nil && parameters.headSeconds == 0
                ? 0..<max(wanted, 1) : self.cut(part, to: wanted, of: size)
            head.append((index, cut))
            bytes = bytes.addingSaturated(
                cut.map { Int64($0.count) } ?? size ?? parameters.headBytes)
        }
        // Structure of segments that are not wanted.
        while let last = head.last, parts[last.index].seconds == 0, !isFile,
            parts[last.index].begins >= parameters.headSeconds, head.count > 1
        {
            head.removeLast()
        }
        return head
    }

    /// The bytes that so much playing time takes by the announced rate: 0 to 2^53 - 1, whatever was
    /// announced; nil without a rate.
    func bytes(in seconds: Double) -> Int64? {
        rate.map { min(Int64(saturating: $0 * max(0, seconds)), Int64(OutsideNumber.largest)) }
    }

    /// Whether this is one media file, of which no times are known.
    private var isFile: Bool { parts.count == 1 && parts[0].piece.role == .media }

    private func cut(_ part: Part, to wanted: Int64, of size: Int64?) -> Range<Int64>? {
        let start = part.piece.range?.lowerBound ?? 0
        let known = part.piece.range.map { Int64($0.count) } ?? size
        if isFile { return start..<start + max(wanted, 1) }
        // A rest that is small is not worth a request of its own.
        guard let known, wanted > 0, wanted < known * 3 / 4 else { return part.piece.range }
        return start..<start + wanted
    }
}

/// An item while it is looked after.
struct FeedContent: Sendable {
    enum Knowledge: Sendable, Equatable {
        case unknown
        case reading
        case known(FeedPlan)
        case dead(String)
    }

    var knowledge = Knowledge.unknown
    /// By the index of the part: the bytes from its start that are there, `.max` for all.
    var present: [Int: Int64] = [:]
    /// Bytes that were fetched for it.
    var broughtBytes: Int64 = 0
    /// Whether the viewer came to it.
    var wasActive = false
    /// When the viewer's player first asked for something of it since it became active.
    var playedSince: Double?
    /// When it became the active one.
    var activeSince: Double?
    /// The foremost part that the player asked for.
    var playedPart: Int?
    var failures = 0
    /// How often it turned out to be nothing that a feed can show.
    var refusals = 0
    /// Not asked for before this time, after a failure.
    var restsUntil = 0.0
    var reason: String?

    var plan: FeedPlan? {
        guard case .known(let plan) = knowledge else { return nil }
        return plan
    }

    func holds(_ part: Int, _ range: Range<Int64>?) -> Bool {
        guard let present = present[part] else { return false }
        guard let range, present != .max else { return present == .max }
        let start = plan?.parts[part].piece.range?.lowerBound ?? 0
        return range.upperBound - start <= present
    }

    /// Playing time that its viewer has seen, about.
    func watched(at now: Double) -> Double {
        max(0, now - (playedSince ?? activeSince ?? now))
    }

    /// Playing time in hand before the player runs dry; nil where nothing of it is known.
    func secured(at now: Double) -> Double? {
        guard let plan else { return nil }
        // What the player has asked for may be on its way still.
        guard let index = plan.parts.indices.first(where: { present[$0] != .max }) else {
            return .infinity
        }
        let part = plan.parts[index]
        let begun = plan.rate.map { Double(present[index] ?? 0) / max(1, $0) } ?? 0
        let reached = part.begins + min(begun, part.seconds)
        return reached - (playedSince.map { now - $0 } ?? 0)
    }
}
