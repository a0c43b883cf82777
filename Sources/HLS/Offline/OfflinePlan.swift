package import URISyntax

/// Decides which parts of a title can be played from what is stored, the same for all its
/// playlists.
///
/// Players match video and audio by discontinuity and time. A hole in only one of them would break
/// their synchronization, so all playlists of a title are cut to the same time ranges: those that a
/// variant stream and its audio have in common, for the pair with the longest total. Other
/// playlists that cover these ranges are listed too; the rest is not.
///
/// If segments need an initialization section, only the longest range is kept, since some players
/// stop permanently at a hole in fragmented MP4.
package struct OfflinePlan: Sendable {
    /// The time ranges that are played; empty if there is nothing to play.
    package private(set) var stretches = Stretches()
    /// The playlists that cover all of them, by the URL that names them.
    package private(set) var playable: Set<AbsoluteURL> = []
    /// Replacements for segments that a playlist lacks: by playlist, and by line in it.
    package private(set) var borrowed: [AbsoluteURL: [Int: AbsoluteURL]] = [:]
    /// Playlists with much longer segments than the video, such as subtitles: their last segment
    /// may extend beyond the end.
    private var coarse: Set<AbsoluteURL> = []

    /// The playlists of the title, aligned on one time line.
    private let lists: [AbsoluteURL: OfflineList]

    /// A variant stream of the multivariant playlist.
    package struct Variant: Sendable {
        package let url: AbsoluteURL
        /// The playlists of its audio; empty if the audio is part of the variant stream.
        package let sound: [AbsoluteURL]
        /// CODECS and audio group: only variants with equal values can replace each other's
        /// segments.
        package let encodingGroup: String?

        package init(url: AbsoluteURL, sound: [AbsoluteURL], encodingGroup: String?) {
            self.url = url
            self.sound = sound
            self.encodingGroup = encodingGroup
        }
    }

    /// Creates the plan for a single media playlist.
    package init(only list: OfflineList, at url: AbsoluteURL) {
        lists = [url: list]
        stretches = list.hasMap ? list.kept.longest : list.kept
        if !stretches.isEmpty { playable = [url] }
    }

    /// Creates the plan of a title.
    ///
    /// - Parameters:
    ///   - variants: its variant streams, in their order.
    ///   - lists: its media playlists as far as they are stored, including those of renditions, by
    ///     the URL that names them.
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
        let replacements = SegmentReplacements(variants, lists)
        let together = Self.best(variants) { variant in
            guard let list = lists[variant.url], let loan = replacements.byBorrower[variant.url]
            else {
                return nil
            }
            return Stretches(
                list.segments.filter { $0.isKept || loan[$0.line] != nil }.map(\.range))
        } sound: {
            lists[$0]?.kept
        }
        if let together, together.stretches.duration > (alone?.stretches.duration ?? 0) + 0.5 {
            stretches = together.stretches
            borrowed = [together.variant.url: replacements.byBorrower[together.variant.url] ?? [:]]
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

    /// True if there is nothing to play.
    package var isEmpty: Bool { stretches.isEmpty }

    /// Returns the lines of the segments of a playlist that are not listed.
    package func missing(at url: AbsoluteURL) -> Set<Int> {
        guard let list = lists[url] else { return [] }
        let substitutes = borrowed[url] ?? [:]
        let isCoarse = coarse.contains(url)
        return Set(
            list.segments.filter { segment in
                if !segment.isKept, substitutes[segment.line] == nil { return true }
                return isCoarse ? !overlaps(segment) : !stretches.contains(segment.middle)
            }.map(\.line))
    }

    private func overlaps(_ segment: OfflineList.Segment) -> Bool {
        stretches.ranges.contains {
            segment.start < $0.upperBound - Stretches.tolerance
                && segment.start + segment.duration > $0.lowerBound + Stretches.tolerance
        }
    }

    /// True if a playlist covers a single range from its beginning, with segments that may end
    /// later.
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

    /// True if a playlist covers all ranges, with segments that begin and end where they do.
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

    /// A variant, its audio playlist, and the ranges that both cover.
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

/// Finds segments of one variant that can replace missing ones of another.
private struct SegmentReplacements {
    /// For the most complete variant of each encoding group: replacements for its missing segments, by
    /// line.
    private(set) var byBorrower: [AbsoluteURL: [Int: AbsoluteURL]] = [:]

    init(_ variants: [OfflinePlan.Variant], _ lists: [AbsoluteURL: OfflineList]) {
        let able = variants.filter { variant in
            variant.encodingGroup != nil && lists[variant.url]?.isExchangeable ?? false
        }
        for kin in Dictionary(grouping: able, by: \.encodingGroup).values where kin.count > 1 {
            let borrower = kin.max { one, two in
                (lists[one.url]?.keptCount ?? 0) < (lists[two.url]?.keptCount ?? 0)
            }
            guard let borrower, let list = lists[borrower.url], list.keptCount > 0 else { continue }
            let lenders = kin.filter { $0.url != borrower.url }.compactMap { lists[$0.url] }
            let found = Self.replacements(in: list, from: lenders)
            if !found.isEmpty { byBorrower[borrower.url] = found }
        }
    }

    private static func replacements(
        in list: OfflineList, from lenders: [OfflineList]
    ) -> [Int: AbsoluteURL] {
        var offers: [Int: [OfflineList.Segment]] = [:]
        for segment in lenders.flatMap(\.segments) where segment.isKept {
            offers[segment.number, default: []].append(segment)
        }
        var found: [Int: AbsoluteURL] = [:]
        for segment in list.segments where !segment.isKept {
            // The same number is not enough: start and duration must match too.
            let fitting = offers[segment.number]?.first {
                abs($0.start - segment.start) < Stretches.tolerance
                    && abs($0.duration - segment.duration) < Stretches.tolerance / 2
            }
            if let fitting { found[segment.line] = fitting.url }
        }
        return found
    }
}
