// The keys and initialization sections that segments need.
import HLS
import URISyntax

/// What the segments of a media playlist need besides their own bytes.
struct SegmentStructure {
    /// An initialization section.
    private struct Section: Hashable {
        let url: AbsoluteURL
        let range: SubRange?
    }

    /// Keys by the line of the segment that follows them.
    ///
    /// A playlist may list several keys for a segment, of which its context holds only one. The line
    /// names the segment, since a list may give all segments one number.
    private var keysBefore: [Int: [AbsoluteURL]] = [:]
    /// The keys in force at an initialization section, which decrypt it (8216bis, 4.4.4.5).
    private var keysOfSection: [Section: [AbsoluteURL]] = [:]
    /// Keys that cannot be fetched for playback.
    private var foreign: Set<AbsoluteURL> = []

    /// The most keys in force at a section; titles for all devices have three or four.
    private static let mostKeys = 32

    /// - Parameters:
    ///   - list: the playlist; linear in its tags and segments.
    ///   - foreignLines: the lines of keys that are left out.
    init(_ list: MediaPlaylist, without foreignLines: Set<Int>) {
        var segments = list.segments[...]
        var sections = list.maps.compactMap(\.reference)[...]
        var inForce: [(format: String, url: AbsoluteURL)] = []
        for key in list.keys {
            let line = key.line
            while let section = sections.first, section.line < line {
                note(inForce, at: section)
                sections.removeFirst()
            }
            if key.isNone { inForce = [] }
            guard let url = key.reference?.url else { continue }
            if foreignLines.contains(line) {
                foreign.insert(url)
                continue
            }
            inForce.removeAll { $0.format == key.format }
            if inForce.count < Self.mostKeys { inForce.append((key.format, url)) }
            segments = segments.drop { $0.line < line }
            if let segment = segments.first { keysBefore[segment.line, default: []].append(url) }
        }
        for section in sections { note(inForce, at: section) }
    }

    private mutating func note(
        _ keys: [(format: String, url: AbsoluteURL)], at section: ResourceReference
    ) {
        let place = Section(url: section.url, range: section.byteRange)
        let known = keysOfSection[place] ?? []
        guard known.count < Self.mostKeys else { return }
        keysOfSection[place] = known + keys.map(\.url).filter { !known.contains($0) }
    }

    /// True if a segment may need other resources than one before it with this context.
    ///
    /// Thousands of segments may share a key whose URL is as long as a line.
    func hasOtherNeeds(_ segment: MediaPlaylist.Segment, than context: SegmentContext?) -> Bool {
        segment.context !== context || keysBefore[segment.line] != nil
    }

    /// Returns the resources that a segment needs, those first that others are read with.
    func needs(
        of segment: MediaPlaylist.Segment
    ) -> [(url: AbsoluteURL, range: Range<Int64>?, role: ResourceRole)] {
        var keys = keysBefore[segment.line] ?? []
        if let key = segment.context.keyURL, !foreign.contains(key) { keys.append(key) }
        guard let map = segment.context.mapURL else { return keys.map { ($0, nil, .key) } }
        let range = segment.context.mapByteRange
        keys += keysOfSection[Section(url: map, range: range)] ?? []
        return keys.map { ($0, nil, .key) } + [(map, range?.bytes, .initialization)]
    }
}
