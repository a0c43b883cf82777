// Pairs a list's former children with its current ones, for children whose token has expired.
package import HLS
package import Store
package import URISyntax

/// Pairs the former children of a list with its current ones.
///
/// Children match by key, where rules leave the token out; then by path, where no other child has
/// the same path; then by place in the list: role, media sequence number, part and order.
///
/// Places in media playlists count only if all segments that have a number in common are alike, and
/// the discontinuities between them: where an origin puts advertisements into each reading, or has
/// restarted, equal numbers stand for other content.
package struct Succession {
    /// What one reading of a list says of its children.
    package struct Reading: Sendable {
        package private(set) var children: [ResourceReference] = []
        /// True if it has EXT-X-DISCONTINUITY-SEQUENCE.
        fileprivate var countsDiscontinuities = false
        /// The number of its first segment; nil without one.
        fileprivate var first: Int? { children.first { $0.tag == .inf }?.mediaSequence }

        /// One of a list that is not there.
        package init() {}

        package init(_ list: Playlist) {
            children = list.references
            countsDiscontinuities = list.summary.startsWithDiscontinuitySequence
        }
    }

    private struct Place: Hashable {
        let role: ResourceRole
        let sequence: Int
        let part: Int?
        let order: Int
    }

    /// What two readings of a list have in common of a segment whose URL has changed.
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
    private let key: (AbsoluteURL, ResourceRole) -> ObjectKey

    /// - Parameters:
    ///   - now: the current reading of the list.
    ///   - key: makes the key of a child.
    package init(
        _ now: Reading, key: @escaping (AbsoluteURL, ResourceRole) -> ObjectKey
    ) {
        self.key = key
        self.now = now
        for (place, child) in Self.placed(now.children) {
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

    private static func placed(_ list: [ResourceReference]) -> [(Place, ResourceReference)] {
        var orders: [Place: Int] = [:]
        return list.map { child in
            let first = Place(
                role: child.role, sequence: child.mediaSequence, part: child.partIndex, order: 0)
            let order = orders[first, default: 0]
            orders[first] = order + 1
            return (
                Place(
                    role: first.role, sequence: first.sequence, part: first.part, order: order),
                child
            )
        }
    }

    /// Returns the current URL of a former child, matched by key or by path but not by place.
    package func successor(of url: AbsoluteURL, _ role: ResourceRole) -> AbsoluteURL? {
        byKey[key(url, role)] ?? byPath[url.path].flatMap { $0 }
    }

    /// Returns the children of a former reading whose URL has changed, each with its current URL.
    package func pairs(with former: Reading) -> [(dead: AbsoluteURL, url: AbsoluteURL)] {
        let isNumberedAlike = isNumberedAlike(former)
        return Self.placed(former.children).compactMap { place, child in
            let isPlaced = isNumberedAlike || child.role == .playlist
            guard
                let url = successor(of: child.url, child.role)
                    ?? (isPlaced ? byPlace[place] : nil),
                url != child.url
            else { return nil }
            return (child.url, url)
        }
    }

    /// True if no segment differs from the one that has its number now.
    ///
    /// A list without EXT-X-DISCONTINUITY-SEQUENCE counts discontinuities from the first segment of
    /// each reading: the numbers of two readings then differ by those that have left its window,
    /// the same for all segments. With the tag in either one, other numbers tell an origin that has
    /// restarted.
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
        // Windows only advance: if there are more of them than before, they were put in.
        return difference > 0 && first > start
    }
}
