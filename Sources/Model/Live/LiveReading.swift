// The names in one reading of a live media playlist: which resource, in which role, at which media
// sequence number. Pure.
package import HLS
import Numbers
package import Routing
import URISyntax

/// A live media playlist reduced to what the epoch table needs.
package struct LiveReading {
    /// One name in the list.
    package struct Name {
        /// The URL as the list wrote it: hardly any URL of a long list is ever needed in resolved
        /// form.
        package let place: ResourceReference.Place
        package let role: ResourceRole
        /// The media sequence number of the segment, or of the part's parent.
        package let sequence: Int
        /// The number of the first segment after the last EXT-X-DISCONTINUITY before it or, for a
        /// key, after a later line that may change it; nil where the list shows none.
        package let run: Int?
        /// True if several places may share the name: for byte ranges of the resource, preload hints,
        /// initialization sections and keys.
        package let isShared: Bool
        /// True if EXT-X-PRELOAD-HINT announces it.
        let isHint: Bool
        /// Its place in link paths; nil where the link is made from the URL.
        package var position: LivePlace?

        /// The number of the segment that it is the name of; nil for one of several.
        var ownSequence: Int? { isShared ? nil : sequence }

        /// True if EXT-X-PART names it.
        var isListedPart: Bool { role == .part && !isHint }

        /// True if a part is listed before another one, and has no place in common with it.
        func precedes(_ part: Name) -> Bool {
            guard sequence == part.sequence else { return sequence < part.sequence }
            guard case .part(_, let index)? = position, case .part(_, let other)? = part.position
            else { return false }
            return index < other
        }

        /// True if EXT-X-MAP names it.
        var isSection: Bool { role == .initialization && !isHint && position != nil }
    }

    /// A resource that grows by what is listed as byte ranges of it: parts (8216bis 4.4.4.9), or
    /// segments and initialization sections of a packager that appends to one file.
    package struct Container: Hashable {
        /// What a list shows of its length.
        package enum Stage {
            /// It still grows: the length that an origin states is only the present one.
            case growing
            /// It is listed as a whole segment, so that `end` is its length.
            case whole
            /// The list has ended: its length is what the origin states.
            ///
            /// What was stored of it before has the validators of a shorter file.
            case ended
        }

        /// Where the last listed range ends.
        package var end: Int64
        package var stage = Stage.growing

        /// Returns true if a known length is only one of an earlier moment: a file of which another
        /// list names ranges may be complete.
        func outgrows(_ total: Int64) -> Bool { stage == .growing && end > total }
    }

    package let summary: PlaylistSummary
    /// The length of its text in bytes: its names refer to the text.
    let textByteCount: Int
    package let names: [Name]
    let containers: [AbsoluteURL: Container]
    /// The start of segments by number, in milliseconds since 1970, from the first dated segment
    /// on.
    let dates: [Int: Int]
    /// The initialization sections that EXT-X-MAP names.
    let sections: [LiveSection]
    /// The byte ranges of the segments, ascending; none of a list without delta updates, and none
    /// of a delta update whose ranges continue what is not known.
    let ranges: [RangeEnd]
    /// The digest of the text if it has EXT-X-ENDLIST; nil for a live playlist.
    let ended: UInt64?

    /// True for a live list without any segment, part or other name.
    var isEmpty: Bool {
        names.isEmpty && ended == nil && summary.nextMediaSequence == summary.mediaSequence
    }

    /// Reads a media playlist; nil for one that was never live, and for a list of channels.
    ///
    /// - Parameters:
    ///   - text: the playlist.
    ///   - base: the base URL of its references.
    ///   - wasLive: whether it was read before it ended. Its last reading shows that resources no
    ///     longer grow and that nothing is announced.
    ///   - options: what is known of it besides its text.
    /// - Throws: the errors that rewriting it would throw.
    init?(
        _ text: [UInt8], base: AbsoluteURL, wasLive: Bool = false,
        options: PlaylistReading
    ) throws(PlaylistError) {
        // Lists that have ended are the longest, and EXT-X-ENDLIST is usually their last line.
        guard wasLive || !Self.endsAtOnce(text) else { return nil }
        let list = try Playlist(text, base: base, options)
        guard let media = list.media, wasLive || list.summary.isLive,
            !list.summary.isChannelList
        else { return nil }
        summary = list.summary
        textByteCount = text.count
        var builder = Builder(keepsRanges: summary.canSkipUntil != nil || summary.isSkipDelta)
        list.forEachReference { builder.add($0) }
        dates = builder.dates(media.dates)
        names = builder.names
        containers = builder.containers(summary)
        sections = builder.sections
        ranges = summary.guessesRanges ? [] : builder.ranges
        ended = list.summary.hasEndList ? Self.digest(text) : nil
    }

    private static func digest(_ text: [UInt8]) -> UInt64 {
        var hash = FNV1a()
        hash.take(text.span)
        return hash.value
    }

    /// True if EXT-X-ENDLIST is the last line.
    private static func endsAtOnce(_ text: [UInt8]) -> Bool {
        guard let end = text.lastIndex(where: { $0 > 0x20 }),
            let start = text[..<end].lastIndex(where: { $0 == 0x0A || $0 == 0x0D })
        else { return false }
        return text[(start + 1)...end].elementsEqual("#EXT-X-ENDLIST".utf8)
    }

    private struct Builder {
        /// True if a delta update may continue the ranges of the segments.
        let keepsRanges: Bool
        var names: [Name] = []
        /// The resources that parts are ranges of.
        private var grown: [AbsoluteURL: Container] = [:]
        /// The resources that segments and initialization sections are ranges of.
        private var files: [AbsoluteURL: Container] = [:]
        /// The segments by number, with their durations.
        private var segments: [(sequence: Int, duration: Duration?)] = []
        private(set) var sections: [LiveSection] = []
        private(set) var ranges: [RangeEnd] = []
        private var discontinuity: Int?
        private var run: Int?
        private var keys: [UInt32: KeyLines] = [:]

        init(keepsRanges: Bool) { self.keepsRanges = keepsRanges }

        /// The EXT-X-KEY lines of one URI.
        private struct KeyLines {
            /// The number of the first segment after the last of these lines.
            var last: Int
            /// The number of the first segment after the last line that may change the key.
            var change: Int?
        }

        mutating func add(_ reference: ResourceReference) {
            if reference.tag == .inf {
                segments.append((reference.mediaSequence, reference.duration))
                if keepsRanges, let range = reference.byteRange {
                    ranges.append(
                        RangeEnd(
                            number: reference.mediaSequence, place: reference.place,
                            end: range.end))
                }
            }
            guard reference.role != .playlist, reference.role != .json else { return }
            // The file of an advertisement, which is no part of the stream.
            if case .media = reference.role, case .dateRange = reference.tag { return }
            if let known = discontinuity, known != reference.discontinuitySequence {
                run = reference.mediaSequence
            }
            discontinuity = reference.discontinuitySequence
            let isRange = reference.byteRange != nil || reference.hasRangeStart
            let isHint = reference.tag == .preloadHint
            note(reference, isRange: isRange)
            let position = LivePlace(of: reference)
            let change = reference.tag == .key ? changeOfKey(reference) : nil
            if reference.tag == .map, case .section(let name)? = position,
                sections.count < LiveSection.mostKept
            {
                sections.append(LiveSection(number: reference.mediaSequence, name: name))
            }
            names.append(
                Name(
                    place: reference.place, role: reference.role,
                    sequence: reference.mediaSequence, run: change ?? run,
                    isShared: isRange || isHint || !reference.role.hasOnePlace,
                    isHint: isHint, position: position))
        }

        /// Notes a resource that is listed as byte ranges.
        private mutating func note(_ reference: ResourceReference, isRange: Bool) {
            // Images are ranges of files that are complete.
            if isRange, reference.role == .image { return }
            let end = Int64(reference.byteRange?.end ?? 0)
            switch reference.tag {
            case .part where isRange, .preloadHint where isRange:
                let url = reference.url
                grown[url, default: Container(end: 0)].end = max(end, grown[url]?.end ?? 0)
            case .inf where isRange, .map where isRange:
                let url = reference.url
                files[url, default: Container(end: 0)].end = max(end, files[url]?.end ?? 0)
            case .inf:
                if !grown.isEmpty { grown[reference.url]?.stage = .whole }
                // The ranges do not show where it ends: one may be its initialization section.
                if !files.isEmpty { files[reference.url]?.stage = .whole }
            default: break
            }
        }

        /// Returns the resources that are listed as byte ranges, without those whose segment is
        /// listed as a whole and which have no parts: their length is what the origin states.
        ///
        /// Ranges of an I-frame list show no growth: they lie within segments of another list.
        func containers(_ summary: PlaylistSummary) -> [AbsoluteURL: Container] {
            var all = grown
            let appended = summary.isIFramesOnly ? [:] : files
            for (url, file) in appended where file.stage == .growing && all[url]?.stage != .whole {
                all[url] = Container(end: max(file.end, all[url]?.end ?? 0))
            }
            guard summary.hasEndList else { return all }
            return all.mapValues {
                Container(end: $0.end, stage: $0.stage == .growing ? .ended : $0.stage)
            }
        }

        /// Returns the number of the first segment after the last line that may change a key under
        /// its URI, or after a later discontinuity; nil if no line does.
        ///
        /// A line may do so unless the one before it is for the preceding segment: packagers that
        /// write a line for each segment only change the initialization vector, and asking the
        /// origin about each line would cost a request for each segment.
        private mutating func changeOfKey(_ reference: ResourceReference) -> Int? {
            let number = reference.mediaSequence
            // Two URIs with one digest cost at most a revalidation.
            let digest = reference.place.tailDigest
            var lines = keys[digest] ?? KeyLines(last: number)
            if number - lines.last > 1 { lines.change = number }
            lines.last = number
            keys[digest] = lines
            return lines.change.map { max($0, run ?? $0) }
        }

        /// Returns the written dates and those derived from durations.
        func dates(_ written: [(mediaSequence: Int, date: DateTime)]) -> [Int: Int] {
            var dates: [Int: Int] = [:]
            guard !written.isEmpty else { return dates }
            dates.reserveCapacity(segments.count)
            var rest = written[...]
            var next: Int?
            for (sequence, duration) in segments {
                while let first = rest.first, first.mediaSequence <= sequence {
                    // Of two dates before one segment, the last one counts.
                    if first.mediaSequence == sequence { next = first.date.milliseconds }
                    rest = rest.dropFirst()
                }
                guard let start = next else { continue }
                dates[sequence] = start
                // `DateTime` clamps the result to its range of years.
                next = duration.map { (DateTime(milliseconds: start) + $0).milliseconds }
            }
            return dates
        }
    }
}

extension ResourceRole {
    /// True if a live list names such a resource at one media sequence number only.
    fileprivate var hasOnePlace: Bool {
        switch self {
        case .segment, .part, .subtitle, .image, .media: true
        case .initialization, .key, .playlist, .json: false
        }
    }
}
