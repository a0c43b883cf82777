// Pairs a list's former children with its current ones, for children whose token has expired.
package import HLS
package import Store
package import URISyntax

/// Pairs the former children of a list with its current ones.
///
/// Children match by key, where rules leave the token out; then by path, where no other child has
/// the same path; then by place in the list: role, media sequence number, part and order. Files of
/// advertisements have no place.
///
/// Variants and renditions have their place among those of the same label: what their tags say of
/// the content, such as the language. Another order or a further rendition then makes no pair of
/// two languages, or of audio and video. The file name decides where a label has several children
/// or none. Where the former reading is unknown, `Reading.renamed` compares paths.
///
/// Places in media playlists count only if all segments that have a number in common are alike, and
/// the discontinuities between them: where an origin puts advertisements into each reading, or has
/// restarted, equal numbers stand for other content.
package struct Succession {
    /// The children of a list in one reading of it.
    package struct Reading: Sendable {
        package private(set) var children: [ResourceReference] = []
        /// True if the list has EXT-X-DISCONTINUITY-SEQUENCE.
        fileprivate var countsDiscontinuities = false
        /// The attributes that label variants and renditions, by the line of the URI.
        fileprivate var labels: [Int: [String?]] = [:]
        /// The media sequence number of the first segment; nil if there is none.
        fileprivate var first: Int? { children.first { $0.tag == .inf }?.mediaSequence }

        /// Makes the reading of a list that is missing.
        package init() {}

        package init(_ list: Playlist) {
            children = list.references
            countsDiscontinuities = list.summary.startsWithDiscontinuitySequence
            guard let multivariant = list.multivariant else { return }
            for variant in multivariant.variants {
                guard let line = variant.reference?.line else { continue }
                // Without the bandwidth, which some origins measure anew for each reading.
                labels[line] = [
                    variant.resolutionText, variant.videoRange, variant.audioGroup,
                    variant.pathwayID,
                ]
            }
            for rendition in multivariant.renditions {
                guard let line = rendition.reference?.line else { continue }
                labels[line] = [
                    rendition.type, rendition.groupID, rendition.language, rendition.name,
                ]
            }
        }

        /// Returns the playlist that replaces one of an unknown former reading: its URL differs in
        /// one folder of the path, which all playlists have in common, such as the origin's name of
        /// a session.
        ///
        /// File names, and folders that some playlists lack, may tell languages, or audio and
        /// video, apart: a rendition that was removed must not be replaced by the only one of its
        /// depth.
        ///
        /// - Parameter former: the URL that this reading does not name.
        /// - Returns: the current URL; nil if none or several fit, or if the list is very long.
        package func renamed(_ former: AbsoluteURL) -> AbsoluteURL? {
            let parts = Self.parts(of: former)
            guard children.count <= Self.mostCompared, parts.count <= Self.mostParts else {
                return nil
            }
            let all = children.compactMap { child -> (url: AbsoluteURL, parts: [Substring])? in
                guard child.role == .playlist, child.tag != .dateRange,
                    child.tag != .renditionReport, child.url.origin == former.origin
                else { return nil }
                return (url: child.url, parts: Self.parts(of: child.url))
            }
            let lists = all.filter { $0.parts.count == parts.count }
            guard let first = lists.first else { return nil }
            let changed = parts.indices.filter { index in
                first.parts[index] != parts[index]
                    && all.allSatisfy {
                        index < $0.parts.count - 1 && $0.parts[index] == first.parts[index]
                    }
            }
            guard changed.count == 1 else { return nil }
            let named = lists.filter { list in
                parts.indices.allSatisfy { $0 == changed[0] || list.parts[$0] == parts[$0] }
            }
            return named.allSatisfy { $0.url == named[0].url } ? named.first?.url : nil
        }

        /// More children than multivariant playlists have, and deeper paths: all are in memory.
        private static let mostCompared = 1_000
        private static let mostParts = 64

        private static func parts(of url: AbsoluteURL) -> [Substring] {
            url.path.split(separator: "/", omittingEmptySubsequences: false)
        }
    }

    private struct Place: Hashable {
        let role: ResourceRole
        /// The tag of a playlist; nil for others.
        let tag: Tag.Name?
        let label: [String?]
        let sequence: Int
        let part: Int?
        var order = 0
    }

    /// The file name of a playlist and its tag; for a rendition also its label, since another
    /// language may have an equal file name.
    private struct FileName: Hashable {
        let tag: Tag.Name
        let label: [String?]
        let name: String

        init(_ child: ResourceReference, label: [String?]) {
            tag = child.tag
            self.label = tag == .media ? label : []
            name = child.url.lastPathSegment
        }
    }

    /// The children of a reading with their places.
    private struct Placed {
        private(set) var children: [(place: Place, child: ResourceReference)] = []
        /// The number of children of each place, whose order is 0 here.
        private(set) var counts: [Place: Int] = [:]
        /// The playlists by file name; nil where several have the name.
        ///
        /// Playlists of date ranges are left out: different advertisements often have equal file
        /// names.
        private(set) var byName: [FileName: AbsoluteURL?] = [:]

        init(_ reading: Reading) {
            children.reserveCapacity(reading.children.count)
            for child in reading.children {
                let isPlaylist = child.role == .playlist
                var place = Place(
                    role: child.role, tag: isPlaylist ? child.tag : nil,
                    label: isPlaylist ? reading.labels[child.line] ?? [] : [],
                    sequence: child.mediaSequence, part: child.partIndex)
                let order = counts[place, default: 0]
                counts[place] = order + 1
                place.order = order
                children.append((place, child))
                guard isPlaylist, child.tag != .dateRange else { continue }
                let name = FileName(child, label: place.label)
                if let known = byName[name] {
                    if known != child.url { byName[name] = .some(nil) }
                } else {
                    byName[name] = child.url
                }
            }
        }

        /// Returns how many children share the place of a child, whatever their order.
        func count(at place: Place) -> Int {
            var first = place
            first.order = 0
            return counts[first] ?? 0
        }
    }

    /// The properties of a segment that identify it in two readings although its URL has changed.
    private struct Segment {
        let duration: Duration?
        let discontinuitySequence: Int
        let byteRange: SubRange?

        init(_ child: ResourceReference) {
            duration = child.duration
            discontinuitySequence = child.discontinuitySequence
            byteRange = child.byteRange
        }

        /// True if nothing differs but the number of discontinuities before it.
        func isAlike(_ other: Self) -> Bool {
            duration == other.duration && byteRange == other.byteRange
        }
    }

    private var byKey: [ObjectKey: AbsoluteURL] = [:]
    private var byPath: [String: AbsoluteURL?] = [:]
    private var byPlace: [Place: AbsoluteURL] = [:]
    /// The segments by media sequence number.
    private var segments: [Int: Segment] = [:]
    private let now: Reading
    private let placed: Placed
    private let key: (AbsoluteURL, ResourceRole) -> ObjectKey

    /// Prepares the current reading of a list; `key` makes the key of a child.
    package init(
        _ now: Reading, key: @escaping (AbsoluteURL, ResourceRole) -> ObjectKey
    ) {
        self.key = key
        self.now = now
        placed = Placed(now)
        for (place, child) in placed.children {
            byKey[key(child.url, child.role)] = child.url
            byPlace[place] = child.url
            if child.tag == .inf { segments[child.mediaSequence] = Segment(child) }
            if let known = byPath[child.url.path] {
                if known != child.url { byPath[child.url.path] = .some(nil) }
            } else {
                byPath[child.url.path] = child.url
            }
        }
    }

    /// Returns the current URL of a former child, matched by key or by path but not by place.
    package func successor(of url: AbsoluteURL, _ role: ResourceRole) -> AbsoluteURL? {
        byKey[key(url, role)] ?? byPath[url.path].flatMap { $0 }
    }

    /// Returns the children of a former reading whose URL has changed, each with its current URL.
    package func pairs(with former: Reading) -> [(dead: AbsoluteURL, url: AbsoluteURL)] {
        let isNumberedAlike = isNumberedAlike(former)
        let before = Placed(former)
        return before.children.compactMap { place, child in
            let atPlace = isNumberedAlike ? byPlace[place] : nil
            let dead = child.url
            guard
                let url = successor(of: dead, child.role)
                    ?? replacement(of: child, in: place, of: before, atPlace),
                url != dead
            else { return nil }
            return (dead, url)
        }
    }

    /// Returns the child that replaces a former one of another key and path.
    private func replacement(
        of child: ResourceReference, in place: Place, of former: Placed, _ atPlace: AbsoluteURL?
    ) -> AbsoluteURL? {
        switch child.role {
        case .playlist: playlist(in: place, of: former, for: child, atPlace)
        // The file of an advertisement, which players read by ranges: the file now at its place may
        // be that of another advertisement.
        case .media where child.tag == .dateRange: nil
        default: atPlace
        }
    }

    /// Returns the playlist that replaces a former one: the only one of its label, or the only one
    /// with its tag and file name, or the one in its place among as many of the same label.
    private func playlist(
        in place: Place, of former: Placed, for child: ResourceReference, _ atPlace: AbsoluteURL?
    ) -> AbsoluteURL? {
        let count = former.count(at: place)
        let isPaired = placed.count(at: place) == count
        if isPaired, count == 1, !place.label.isEmpty, let atPlace { return atPlace }
        let name = FileName(child, label: place.label)
        if former.byName[name] == child.url, let named = placed.byName[name].flatMap({ $0 }) {
            return named
        }
        return isPaired ? atPlace : nil
    }

    /// True if no segment differs from the one that has its number now.
    ///
    /// A list without EXT-X-DISCONTINUITY-SEQUENCE counts discontinuities from the first segment of
    /// each reading: the numbers of two readings then differ by those that have left its window,
    /// the same for all segments. If either reading has the tag, differing numbers mean that the
    /// origin has restarted.
    private func isNumberedAlike(_ former: Reading) -> Bool {
        var common: Int?
        for child in former.children where child.tag == .inf {
            guard let now = segments[child.mediaSequence] else { continue }
            let before = Segment(child)
            let left = before.discontinuitySequence &- now.discontinuitySequence
            guard now.isAlike(before), left == common ?? left else { return false }
            common = left
        }
        guard let difference = common, difference != 0 else { return true }
        guard !now.countsDiscontinuities, !former.countsDiscontinuities,
            let start = former.first, let first = now.first
        else { return false }
        // A window only advances: more discontinuities than before mean that some were inserted.
        return difference > 0 && first > start
    }
}
