// The known content of a feed item, and how much of it is fetched.
import HLS
import Numbers
import URISyntax

/// The pieces of an item in playback order.
package struct FeedPlan: Sendable, Equatable {
    /// One piece.
    package struct Part: Sendable, Equatable {
        package let piece: MediaPiece
        /// The playing time in seconds; 0 for keys and initialization sections.
        package let seconds: Double
        /// The start of its playing time, in seconds.
        package let begins: Double

        package init(_ piece: MediaPiece, seconds: Double, begins: Double) {
            self.piece = piece
            self.seconds = seconds
            self.begins = begins
        }
    }

    /// The least playing time of a segment.
    private static let leastSeconds = 0.1
    /// The most pieces of a head: a low announced rate makes segments seem short of bytes.
    private static let mostPieces = 512
    /// The number of parts by which the tracks of a player may be apart.
    private static let mostAside = 16

    package let parts: [Part]
    /// The announced bytes per second of playing time; nil if unknown.
    package let rate: Double?
    /// True if the item is a stream that is still growing: the plan is of one moment.
    package let isLive: Bool
    /// The playing time of the whole item in seconds.
    let seconds: Double

    /// Creates a plan of parts, which must be in the order of their times.
    package init(parts: [Part], rate: Double?, isLive: Bool = false) {
        self.parts = parts
        self.rate = rate
        self.isLive = isLive
        seconds = parts.reduce(0) { max($0, $1.begins + $1.seconds) }
    }

    /// Creates the plan of tracks that are played together.
    ///
    /// - Parameters:
    ///   - tracks: the media playlists; the first one's segments come first where times are
    ///     equal.
    ///   - rate: the bytes per second of all tracks together.
    ///   - most: the maximum number of segments per track; nil for all.
    package init(_ tracks: [CompactMediaList], rate: Double?, most: Int? = nil) {
        var parts: [Part] = []
        for track in tracks {
            var begins = 0.0
            var known: Set<MediaPiece> = []
            for index in 0..<min(track.count, most ?? .max) {
                if index == 0 || !track.sharesStructure(at: index, with: index - 1) {
                    for piece in track.structure(at: index) where known.insert(piece).inserted {
                        parts.append(Part(piece, seconds: 0, begins: begins))
                    }
                }
                // Segments without a duration would all begin at once, and all belong to the head.
                let seconds = max(track.seconds(at: index), Self.leastSeconds)
                parts.append(Part(track.piece(at: index), seconds: seconds, begins: begins))
                begins += seconds
            }
        }
        let order = parts.enumerated().sorted {
            ($0.element.begins, $0.offset) < ($1.element.begins, $1.offset)
        }
        self.init(
            parts: order.map(\.element), rate: rate, isLive: tracks.contains { $0.isLive })
    }

    /// The playing time of the longest segment in seconds.
    var longestSegment: Double { parts.reduce(0) { max($0, $1.seconds) } }

    /// Finds the part that a player requests.
    ///
    /// Begins shortly before the last one: most requests are for what follows, and a segment that
    /// is listed several times is meant where the viewer is.
    ///
    /// - Parameters:
    ///   - url: what it requests.
    ///   - start: the first byte of it; several parts may be ranges of one file.
    ///   - last: the foremost part that it requested before; nil for none.
    /// - Returns: its index; nil if the player requests something else.
    func index(of url: AbsoluteURL, from start: Int64, after last: Int?) -> Int? {
        func matches(_ part: Part) -> Bool {
            part.piece.url == url && (part.piece.range?.contains(start) ?? true)
        }
        let first = min(max(0, (last ?? 0) - Self.mostAside), parts.count)
        return parts[first...].firstIndex(where: matches)
            ?? parts[..<first].firstIndex(where: matches)
    }

    /// Returns the parts that begin while a part plays or when it ends: what its player needs next.
    func followers(of index: Int) -> Range<Int> {
        // The durations of tracks that are played together differ by fractions.
        let end = parts[index].begins + parts[index].seconds + 0.01
        return parts.indices.dropFirst(index + 1).prefix(Self.mostPieces)
            .prefix { parts[$0].begins <= end }
    }

    /// Returns what is fetched of a neighbour: pieces from the start until they reach both
    /// `headSeconds` and `headBytes`.
    ///
    /// Sizes are unknown before the bytes arrive: if a segment is much larger than needed by the
    /// announced rate, only its beginning is taken.
    func head(_ parameters: FeedParameters) -> [(index: Int, range: Range<Int64>?)] {
        var head: [(index: Int, range: Range<Int64>?)] = []
        var bytes: Int64 = 0
        for (index, part) in parts.prefix(Self.mostPieces).enumerated() {
            guard part.seconds > 0 || isFile else {
                head.append((index, part.piece.range))
                continue
            }
            if part.begins >= parameters.headSeconds, bytes >= parameters.headBytes { break }
            let wanted = max(
                parameters.headBytes.subtractingSaturated(bytes),
                self.bytes(in: parameters.headSeconds - part.begins) ?? 0)
            let size = self.bytes(in: part.seconds)
            // If only bytes count, this many are taken, whatever the size of the segment.
            let cut =
                size == nil && part.piece.range == nil && parameters.headSeconds == 0
                ? 0..<max(wanted, 1) : self.cut(part, to: wanted, of: size)
            head.append((index, cut))
            bytes = bytes.addingSaturated(
                cut.map { Int64($0.count) } ?? size ?? parameters.headBytes)
        }
        // Removes trailing structure, whose segments are not included.
        while let last = head.last, parts[last.index].seconds == 0, !isFile,
            parts[last.index].begins >= parameters.headSeconds, head.count > 1
        {
            head.removeLast()
        }
        return head
    }

    /// Returns the bytes of some playing time by the announced rate, clamped to 0...2^53 - 1; nil
    /// without a rate.
    func bytes(in seconds: Double) -> Int64? {
        rate.map { min(Int64(saturating: $0 * max(0, seconds)), Int64(ExternalNumber.largest)) }
    }

    /// True if this is a single media file, with unknown times.
    private var isFile: Bool { parts.count == 1 && parts[0].piece.role == .media }

    private func cut(_ part: Part, to wanted: Int64, of size: Int64?) -> Range<Int64>? {
        let start = part.piece.range?.lowerBound ?? 0
        let known = part.piece.range.map { Int64($0.count) } ?? size
        if isFile { return start..<start + max(wanted, 1) }
        // A small rest is not worth a request of its own.
        guard let known, wanted > 0, wanted < known * 3 / 4 else { return part.piece.range }
        return start..<start + wanted
    }
}

/// The state of an item in the window.
struct FeedContent: Sendable {
    enum Knowledge: Sendable, Equatable {
        case unknown
        case reading
        case known(FeedPlan)
        case dead(String)
    }

    var knowledge = Knowledge.unknown
    /// When its plan was read.
    var readAt = 0.0
    /// True if its last plan was that of a live stream.
    var isLive = false
    /// By part index: the number of bytes present from the part's start, `.max` for all.
    private(set) var present: [Int: Int64] = [:]
    /// The first part that is not present as a whole; the number of parts if all are.
    private(set) var firstMissing = 0
    /// The bytes fetched for it.
    var broughtBytes: Int64 = 0
    /// Those of them that its viewer has not reached, by part index; of parts of a former plan
    /// together, by `former`.
    var unseenBytes: [Int: Int64] = [:]
    /// True once it was the active item.
    var wasActive = false
    /// When the viewer's player first requested something of it since it became active.
    var playedSince: Double?
    /// When it became the active item.
    var activeSince: Double?
    /// The foremost part that the player requested.
    private(set) var playedPart: Int?
    /// What the player requested last, in order.
    private var requested: [MediaPiece] = []
    var failures = 0
    /// How often the store lost something of it since its viewer reached it last.
    var losses = 0
    /// How often the item was neither a playlist nor media, or was refused for want of a token.
    var refusals = 0
    /// The time before which it is not fetched again after a failure.
    var restsUntil = 0.0
    var reason: String?

    /// Stands for the parts of a former plan; before all parts.
    private static let former = -1
    /// The number of pieces that count as requested last: those of two tracks, several at once.
    private static let mostRequested = 8

    /// Adds bytes of a part, nil for one of a former plan, that its viewer has not reached.
    mutating func bring(_ bytes: Int64, of part: Int?) {
        broughtBytes = broughtBytes.addingSaturated(bytes)
        let part = part ?? Self.former
        guard bytes > 0, part > playedPart ?? .min else { return }
        unseenBytes[part] = (unseenBytes[part] ?? 0).addingSaturated(bytes)
    }

    /// Notes how many bytes from the start of a part are present; `.max` for all.
    mutating func note(_ bytes: Int64, of part: Int) {
        present[part] = max(present[part] ?? 0, bytes)
        while present[firstMissing] == .max { firstMissing += 1 }
    }

    /// Notes that the store no longer has a part.
    mutating func lose(_ part: Int) {
        present[part] = nil
        firstMissing = min(firstMissing, part)
        unseenBytes[part] = nil
    }

    /// Notes that its player has requested a part: what precedes it is seen.
    mutating func reach(_ part: Int) {
        if let piece = plan?.parts[part].piece {
            requested.removeAll { $0 == piece }
            requested.append(piece)
            if requested.count > Self.mostRequested { requested.removeFirst() }
        }
        guard part > playedPart ?? .min else { return }
        playedPart = part
        unseenBytes = unseenBytes.filter { $0.key > part }
    }

    /// True if its player has requested a part lately: the player fetches it itself.
    func isRequested(_ part: Int) -> Bool {
        guard part <= playedPart ?? .min, let plan else { return false }
        return requested.contains(plan.parts[part].piece)
    }

    /// Notes that its viewer has left it.
    mutating func leave() {
        playedSince = nil
        playedPart = nil
        requested = []
    }

    /// Replaces its plan, and with it the numbers of its parts.
    mutating func learn(_ plan: FeedPlan, at now: Double) {
        if self.plan != plan {
            present = [:]
            firstMissing = 0
            let sum = unseenBytes.values.saturatedSum()
            unseenBytes = sum > 0 ? [Self.former: sum] : [:]
            // The renditions of a title have the same numbers; a live list has others each time.
            if isLive || plan.isLive {
                playedPart = plan.parts.lastIndex { requested.contains($0.piece) }
            }
        }
        knowledge = .known(plan)
        readAt = now
        isLive = plan.isLive
        reason = nil
    }

    var plan: FeedPlan? {
        guard case .known(let plan) = knowledge else { return nil }
        return plan
    }

    /// True if its plan is of a stream that has gone on by a segment since.
    func isOutdated(at now: Double) -> Bool {
        guard let plan, plan.isLive else { return false }
        return now - readAt >= plan.longestSegment
    }

    func holds(_ part: Int, _ range: Range<Int64>?) -> Bool {
        guard let present = present[part] else { return false }
        guard let range, present != .max else { return present == .max }
        let start = plan?.parts[part].piece.range?.lowerBound ?? 0
        return range.upperBound - start <= present
    }

    /// Returns the approximate playing time that the viewer has seen, in seconds.
    func watched(at now: Double) -> Double {
        max(0, now - (playedSince ?? activeSince ?? now))
    }

    /// Returns the playing time left before the player runs dry, in seconds; nil if the plan is
    /// unknown.
    func secured(at now: Double) -> Double? {
        guard let plan else { return nil }
        // Parts that the player requested may still be in transfer.
        guard plan.parts.indices.contains(firstMissing) else { return .infinity }
        let part = plan.parts[firstMissing]
        let begun = plan.rate.map { Double(present[firstMissing] ?? 0) / max(1, $0) } ?? 0
        let reached = part.begins + min(begun, part.seconds)
        return reached - (playedSince.map { now - $0 } ?? 0)
    }
}
