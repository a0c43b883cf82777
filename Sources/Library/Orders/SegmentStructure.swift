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

    /// The keys in force behind a line.
    private struct Change {
        let line: Int
        let keys: [AbsoluteURL]
    }

    /// What each EXT-X-KEY puts in force, in the order of the list.
    ///
    /// Several keys may be in force at a segment, of which its context holds only the last one,
    /// even if only a key system can get that. Lines tell which are in force, since a list may give
    /// all segments one number.
    private var changes: [Change] = []
    /// The keys in force at an initialization section, which decrypt it (8216bis, 4.4.4.5).
    private var keysOfSection: [Section: [AbsoluteURL]] = [:]

    /// The most keys in force at a section; titles for all devices have three or four.
    private static let mostKeys = 32
    /// The most keys in force at a segment, besides those of key systems, which are left out.
    private static let mostInForce = 4

    /// - Parameters:
    ///   - list: the playlist; linear in its tags and segments.
    ///   - foreignLines: the lines of keys that are left out.
    init(_ list: MediaPlaylist, without foreignLines: Set<Int>) {
        var sections = list.maps.compactMap(\.reference)[...]
        var inForce: [(format: String, url: AbsoluteURL)] = []
        for key in list.keys {
            let line = key.line
            while let section = sections.first, section.line < line {
                note(inForce, at: section)
                sections.removeFirst()
            }
            if key.isNone {
                inForce = []
            } else if let url = key.reference?.url, !foreignLines.contains(line) {
                inForce.removeAll { $0.format == key.format }
                if inForce.count < Self.mostInForce { inForce.append((key.format, url)) }
            }
            changes.append(Change(line: line, keys: inForce.map(\.url)))
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

    /// Tells segments with the same needs without a comparison of URLs, of which thousands of segments
    /// may share one as long as a line.
    struct Place: Equatable {
        fileprivate let context: ObjectIdentifier
        /// The number of changes before the segment.
        fileprivate let changes: Int
    }

    func place(of segment: MediaPlaylist.Segment) -> Place {
        Place(context: ObjectIdentifier(segment.context), changes: changes(before: segment.line))
    }

    /// Returns the resources that a segment needs besides its own bytes: keys, then the
    /// initialization section.
    func needs(
        of segment: MediaPlaylist.Segment
    ) -> [(url: AbsoluteURL, range: Range<Int64>?, role: ResourceRole)] {
        let count = changes(before: segment.line)
        var keys = count > 0 ? changes[count - 1].keys : []
        guard let map = segment.context.mapURL else { return keys.map { ($0, nil, .key) } }
        let range = segment.context.mapByteRange
        keys += keysOfSection[Section(url: map, range: range)] ?? []
        return keys.map { ($0, nil, .key) } + [(map, range?.bytes, .initialization)]
    }

    private func changes(before line: Int) -> Int {
        // Binary search: a list may have a key for each segment.
        var (low, high) = (0, changes.count)
        while low < high {
            let middle = (low + high) / 2
            if changes[middle].line < line { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
