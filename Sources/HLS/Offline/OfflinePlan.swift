package import URISyntax

/// Decides what of a title can be played from what is kept, for all of its playlists alike.
///
/// Players match pictures and sound by discontinuity and time. A hole in one of them alone would
/// move it against the other, so all playlists of a title are cut to the same stretches: those that
/// one variant stream and its sound have in common, of all such pairs the longest. Whatever else
/// has these stretches too is listed beside it; the rest is not.
///
/// Where segments need an initialization section, only the longest stretch is kept, since some
/// players stop for good at a hole in fragmented MP4.
package struct OfflinePlan: Sendable {
    /// What is played; nil for a plan of nothing.
    package private(set) var stretches = Stretches()
    /// The playlists that have all of it, by the URL that names them.
    package private(set) var playable: Set<AbsoluteURL> = []
    /// Segments that stand in for those that a playlist misses: by playlist, and by line in it.
    package private(set) var borrowed: [AbsoluteURL: [Int: AbsoluteURL]] = [:]
    /// Playlists whose segments are far longer than those of the pictures, as of subtitles: they
    /// may reach beyond the end.
    private var coarse: Set<AbsoluteURL> = []

    /// The playlists that the plan was made from, on one time line.
    private let lists: [AbsoluteURL: OfflineList]

    /// A variant stream of the multivariant playlist.
    package struct Variant: Sendable {
        package let url: AbsoluteURL
        /// The playlists of its sound; empty where it is in the variant itself.
        package let sound: [AbsoluteURL]
        /// CODECS and the group of its sound: only equals lend to each other.
        package let kinship: String?

        package init(url: AbsoluteURL, sound: [AbsoluteURL], kinship: String?) {
            self.url = url
            self.sound = sound
            self.kinship = kinship
        }
    }

    /// A plan for one media playlist by itself.
    package init(only list: OfflineList, at url: AbsoluteURL) {
        lists = [url: list]
        stretches = list.hasMap ? list.kept.longest : list.kept
        if !stretches.isEmpty { playable = [url] }
    }

    /// Makes the plan of a title.
    ///
    /// - Parameters:
    ///   - variants: its variant streams, in their order.
    ///   - lists: its media playlists as far as they are kept, those of renditions too, by the URL
    ///     that names them.
    package init(_ variants: [Variant], lists: [AbsoluteURL: OfflineList]) {
        var lists = lists
        let first = lists.values.map(\.start).min() ?? 0
        for url in lists.keys { lists[url]?.align(toNumber: first) }
        self.lists = lists
        let alone = Self.best(variants) {
            lists[$0.url]?.kept
        } sound: {
            lists[$0]?.kept
        }
        let loans = Loans(variants, lists)
        let together = Self.best(variants) { variant in
            guard let list = lists[variant.url], let lent = loans.byBorrower[variant.url] else {
                return nil
            }
            return Stretches(
                list.segments.filter { $0.isKept || lent[$0.line] != nil }.map(\.range))
        } sound: {
            lists[$0]?.kept
        }
        if let together, together.stretches.duration > (alone?.stretches.duration ?? 0) + 0.5 {
            stretches = together.stretches
            borrowed = [together.variant.url: loans.byBorrower[together.variant.url] ?? [:]]
            playable = [together.variant.url, together.sound ?? together.variant.url]
        } else if let alone {
            stretches = alone.stretches
            playable = [alone.variant.url, alone.sound ?? alone.variant.url]
        }
        if playable.contains(where: { lists[$0]?.hasMap ?? false }) {
            stretches = stretches.longest
        }
        guard !stretches.isEmpty else { return }
        for (url, list) in lists where !playable.contains(url) {
            if covers(list) {
                playable.insert(url)
            } else if coversCoarsely(list) {
                playable.insert(url)
                coarse.insert(url)
            }
        }
    }

    /// Whether there is nothing to play.
    package var isEmpty: Bool { stretches.isEmpty }

    /// The lines of the segments of a playlist that are not listed.
    package func missing(at url: AbsoluteURL) -> Set<Int> {
        guard let list = lists[url] else { return [] }
        let lent = borrowed[url] ?? [:]
        let isCoarse = coarse.contains(url)
        return Set(
            list.segments.filter { segment in
                if !segment.isKept, lent[segment.line] == nil { return true }
                return isCoarse ? !overlaps(segment) : !stretches.contains(segment.middle)
            }.map(\.line))
    }

    private func overlaps(_ segment: OfflineList.Segment) -> Bool {
        stretches.ranges.contains {
            segment.start < $0.upperBound - Stretches.tolerance
                && segment.start + segment.duration > $0.lowerBound + Stretches.tolerance
        }
    }

    /// Whether a playlist has one stretch from its beginning on, in segments that may end later.
    private func coversCoarsely(_ list: OfflineList) -> Bool {
        let listed = list.segments.filter(overlaps)
        guard stretches.ranges.count == 1, !listed.isEmpty, listed.allSatisfy(\.isKept) else {
            return false
        }
        let own = Stretches(listed.map(\.range))
        return own.ranges.count == 1
            && abs(own.ranges[0].lowerBound - stretches.ranges[0].lowerBound) < 1
            && own.ranges[0].upperBound > stretches.ranges[0].upperBound - 1
    }

    /// Whether a playlist has all that is played, in segments that begin and end where it does.
    private func covers(_ list: OfflineList) -> Bool {
        let listed = list.segments.filter { stretches.contains($0.middle) }
        guard !listed.isEmpty, listed.allSatisfy(\.isKept) else { return false }
        let own = Stretches(listed.map(\.range))
        guard own.ranges.count == stretches.ranges.count else { return false }
        return zip(own.ranges, stretches.ranges).allSatisfy { own, wanted in
            abs(own.lowerBound - wanted.lowerBound) < 1
                && abs(own.upperBound - wanted.upperBound) < 1
        }
    }

    /// A variant, the playlist of its sound, and what both have.
    private typealias Choice = (variant: Variant, sound: AbsoluteURL?, stretches: Stretches)

    private static func best(
        _ variants: [Variant], own: (Variant) -> Stretches?, sound: (AbsoluteURL) -> Stretches?
    ) -> Choice? {
        var best: Choice?
        for variant in variants {
            guard let own = own(variant) else { continue }
            var ways: [(AbsoluteURL?, Stretches)] = variant.sound.compactMap { url in
                sound(url).map { (url, own.intersection($0)) }
            }
            if variant.sound.isEmpty { ways = [(nil, own)] }
            for (url, stretches) in ways
            where stretches.duration > (best?.stretches.duration ?? 0) + Stretches.tolerance {
                best = (variant, url, stretches)
            }
        }
        return best
    }
}

/// Who can lend what to whom.
private struct Loans {
    /// For the fullest variant of each kin: what stands in for what it misses, by line.
    private(set) var byBorrower: [AbsoluteURL: [Int: AbsoluteURL]] = [:]

    init(_ variants: [OfflinePlan.Variant], _ lists: [AbsoluteURL: OfflineList]) {
        let able = variants.filter { variant in
            variant.kinship != nil && lists[variant.url]?.isExchangeable ?? false
        }
        for kin in Dictionary(grouping: able, by: \.kinship).values where kin.count > 1 {
            let borrower = kin.max { one, two in
                (lists[one.url]?.keptCount ?? 0) < (lists[two.url]?.keptCount ?? 0)
            }
            guard let borrower, let list = lists[borrower.url], list.keptCount > 0 else { continue }
            let lenders = kin.filter { $0.url != borrower.url }.compactMap { lists[$0.url] }
            let lent = Self.lent(to: list, by: lenders)
            if !lent.isEmpty { byBorrower[borrower.url] = lent }
        }
    }

    private static func lent(to list: OfflineList, by lenders: [OfflineList]) -> [Int: AbsoluteURL]
    {
        var offers: [Int: [OfflineList.Segment]] = [:]
        for segment in lenders.flatMap(\.segments) where segment.isKept {
            offers[segment.number, default: []].append(segment)
        }
        var lent: [Int: AbsoluteURL] = [:]
        for segment in list.segments where !segment.isKept {
            // The same number alone proves nothing: begin and end must be the same too.
            let fitting = offers[segment.number]?.first {
                abs($0.start - segment.start) < Stretches.tolerance
                    && abs($0.duration - segment.duration) < Stretches.tolerance / 2
            }
            if let fitting { lent[segment.line] = fitting.url }
        }
        return lent
    }
}
