/// What one reading of a live media playlist says of the names in it: which resource, in which role,
/// at which sequence. Pure.
import HLS
import Posix
import URISyntax

/// A live media playlist as the epochs of its names see it.
struct LiveReading {
    /// One name in the list.
    struct Name {
        let url: AbsoluteURL
        let role: ResourceRole
        /// The media sequence number of the segment, or of the part's parent.
        let sequence: Int
        /// The number of the first segment behind the last EXT-X-DISCONTINUITY before it; nil where
        /// the list shows none.
        let run: Int?
        /// Whether only a part of the resource is meant, so that many places share the name.
        let isShared: Bool
    }

    /// A resource that grows by parts that are byte ranges of it (8216bis 4.4.4.9).
    struct Container: Hashable {
        /// Where the last listed part ends.
        var end: Int64
        /// Whether it is listed as a whole segment, so that `end` is its length.
        var isWhole = false
    }

    let summary: PlaylistSummary
    let names: [Name]
    let containers: [AbsoluteURL: Container]
    /// What is announced by EXT-X-PRELOAD-HINT.
    let hints: Set<AbsoluteURL>
    /// When segments begin, in milliseconds since 1970, by their numbers; without those before the
    /// first that is dated.
    let dates: [Int: Int]

    /// Reads a media playlist; nil for one that never was a live one.
    ///
    /// Costs about twice what the rewriting costs.
    ///
    /// - Parameters:
    ///   - text: the playlist.
    ///   - base: what its references are relative to.
    ///   - wasLive: whether it was read before it ended. Its last reading tells which resources grow
    ///     no more, and that nothing is announced.
    ///   - options: what is known of it beside its text.
    /// - Throws: what the rewriting would throw.
    init?(
        _ text: [UInt8], base: AbsoluteURL, wasLive: Bool = false,
        options: PlaylistRewriter.Options
    ) throws(PlaylistError) {
        // Lists that have ended are the longest, and say so in their last line.
        guard wasLive || !Self.endsAtOnce(text) else { return nil }
        var options = options
        options.collectsReferences = true
        let list = try PlaylistRewriter.rewrite(text, base: base, options: options) { _, _ in false
        }
        guard list.summary.isLive || (wasLive && list.summary.kind == .media) else { return nil }
        summary = list.summary
        let lines = try PlaylistText(text, limits: options.limits)
        let marks = Marks(lines, summary)
        dates = Self.dates(list.references, marks.dates)
        var builder = Builder(openHints: marks.openHints)
        for reference in list.references { builder.add(reference) }
        names = builder.names
        containers = builder.containers
        hints = builder.hints
    }

    /// Whether EXT-X-ENDLIST is the last line.
    private static func endsAtOnce(_ text: [UInt8]) -> Bool {
        guard let end = text.lastIndex(where: { $0 > 0x20 }),
            let start = text[..<end].lastIndex(where: { $0 == 0x0A || $0 == 0x0D })
        else { return false }
        return text[(start + 1)...end].elementsEqual("#EXT-X-ENDLIST".utf8)
    }

    /// The dates that are written, and those that follow from durations.
    private static func dates(
        _ references: [ResourceReference], _ written: [Int: Int]
    ) -> [Int: Int] {
        var dates: [Int: Int] = [:]
        guard !written.isEmpty else { return dates }
        var next: Int?
        for reference in references where reference.tag == .inf {
            let start = written[reference.mediaSequence] ?? next
            guard let start else { continue }
            dates[reference.mediaSequence] = start
            next = reference.duration.map {
                start + Int(Interval($0).nanoseconds / 1_000_000)
            }
        }
        return dates
    }

    /// What the references do not tell.
    private struct Marks {
        var dates: [Int: Int] = [:]
        /// Lines of hints for a range of a resource.
        var openHints: Set<Int> = []

        init(_ text: PlaylistText, _ summary: PlaylistSummary) {
            var sequence = summary.mediaSequence + summary.skippedSegmentCount
            for line in text.lines {
                switch line.kind {
                case .uri: sequence += 1
                case .tag(let tag, let value) where tag.name == .programDateTime:
                    dates[sequence] = DateTime(text.bytes[value])?.milliseconds
                case .tag(let tag, let value) where tag.name == .preloadHint:
                    let attributes = AttributeList(text.bytes, in: value)
                    if attributes.bytes(of: "BYTERANGE-START") != nil {
                        openHints.insert(line.number)
                    }
                default: break
                }
            }
        }
    }

    private struct Builder {
        let openHints: Set<Int>
        var names: [Name] = []
        var containers: [AbsoluteURL: Container] = [:]
        var hints: Set<AbsoluteURL> = []
        private var discontinuity: Int?
        private var run: Int?

        init(openHints: Set<Int>) { self.openHints = openHints }

        mutating func add(_ reference: ResourceReference) {
            guard reference.role != .playlist, reference.role != .json else { return }
            if let known = discontinuity, known != reference.discontinuitySequence {
                run = reference.mediaSequence
            }
            discontinuity = reference.discontinuitySequence
            let url = reference.url
            let isRange = reference.byteRange != nil || openHints.contains(reference.line)
            if reference.tag == .part || reference.tag == .preloadHint, isRange {
                let end = Int64(reference.byteRange?.end ?? 0)
                containers[url, default: Container(end: 0)].end =
                    max(end, containers[url]?.end ?? 0)
            } else if reference.tag == .inf, !isRange, !containers.isEmpty {
                containers[url]?.isWhole = true
            }
            if reference.tag == .preloadHint { hints.insert(url) }
            names.append(
                Name(
                    url: url, role: reference.role, sequence: reference.mediaSequence, run: run,
                    isShared: isRange || reference.tag == .preloadHint))
        }
    }
}
