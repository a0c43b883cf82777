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
    /// Of the current children.
    private let mayCountFromZero: Bool
    private let key: (AbsoluteURL, ResourceRole) -> ObjectKey

    /// - Parameters:
    ///   - now: the current children of the list.
    ///   - key: makes the key of a child.
    package init(
        _ now: [ResourceReference], key: @escaping (AbsoluteURL, ResourceRole) -> ObjectKey
    ) {
        self.key = key
        mayCountFromZero = Self.mayCountFromZero(now)
        for (place, child) in Self.placed(now) {
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

    /// Returns the former children of a list whose URL has changed, each with its current URL.
    package func pairs(with former: [ResourceReference]) -> [(dead: AbsoluteURL, url: AbsoluteURL)]
    {
        let isNumberedAlike = isNumberedAlike(former)
        return Self.placed(former).compactMap { place, child in
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
    /// the same for all segments.
    private func isNumberedAlike(_ former: [ResourceReference]) -> Bool {
        var common: Int?
        for child in former where child.tag == .inf {
            guard let now = segments[child.mediaSequence] else { continue }
            let before = Segment(child)
            let left = before.discontinuitySequence &- now.discontinuitySequence
            guard now.isAlike(before), left == common ?? left else { return false }
            common = left
        }
        guard let difference = common, difference != 0 else { return true }
        // Windows only advance: if there are more of them than before, they were put in.
        return difference > 0 && mayCountFromZero && Self.mayCountFromZero(former)
    }

    /// False if a reading can only have the numbers of its discontinuities from
    /// EXT-X-DISCONTINUITY-SEQUENCE: they tell an origin that has restarted.
    private static func mayCountFromZero(_ list: [ResourceReference]) -> Bool {
        // The list may begin with a discontinuity.
        (list.first { $0.tag == .inf }?.discontinuitySequence ?? 0) <= 1
    }
}
