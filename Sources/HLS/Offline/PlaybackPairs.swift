import URISyntax

/// The stored playlists of a title that are played together: a variant stream and one of its audio.
struct PlaybackPairs {
    struct Pair: Hashable {
        let stream: AbsoluteURL
        /// Nil if the audio is part of the variant stream.
        let sound: AbsoluteURL?
    }

    /// A pair, and the ranges that both cover.
    typealias Choice = (pair: Pair, stretches: Stretches)

    private let lists: [AbsoluteURL: OfflineList]
    private let keepsEveryStretch: Bool
    /// In the order of the variants, each once: a hostile playlist may name one in thousands of
    /// variants.
    private let pairs: [Pair]

    /// Creates the pairs of a title.
    ///
    /// - Parameters:
    ///   - variants: its variant streams.
    ///   - lists: its stored playlists by the URLs that name them.
    ///   - keepsEveryStretch: true if what a pair has in common is not reduced to one range.
    init(
        _ variants: [OfflinePlan.Variant], in lists: [AbsoluteURL: OfflineList],
        keepsEveryStretch: Bool
    ) {
        self.lists = lists
        self.keepsEveryStretch = keepsEveryStretch
        var pairs: [Pair] = []
        var known: Set<Pair> = []
        var sounds: [String: [AbsoluteURL?]] = [:]
        for variant in variants {
            guard let stream = lists[variant.url] else { continue }
            let stored =
                variant.soundGroup.flatMap { sounds[$0] } ?? Self.storedSound(variant, lists)
            if let group = variant.soundGroup { sounds[group] = stored }
            for sound in stored {
                let other = sound.flatMap { lists[$0] }
                guard other.map({ stream.mayShareTime(with: $0) }) ?? true else { continue }
                let pair = Pair(stream: variant.url, sound: sound)
                if known.insert(pair).inserted { pairs.append(pair) }
            }
        }
        self.pairs = pairs
    }

    /// Returns the stored audio playlists of a variant; nil as the only one if its audio is part of
    /// it.
    private static func storedSound(
        _ variant: OfflinePlan.Variant, _ lists: [AbsoluteURL: OfflineList]
    ) -> [AbsoluteURL?] {
        guard !variant.sound.isEmpty else { return [nil] }
        let stored = variant.sound.filter { lists[$0] != nil }
        return stored
    }

    /// Returns the pair that plays longest, the first of equally long ones.
    ///
    /// - Parameters:
    ///   - streams: the ranges that variant streams cover; others are not considered.
    ///   - sounds: the ranges that audio playlists cover.
    /// - Returns: the pair; nil if none plays.
    func longest(
        streams: [AbsoluteURL: Stretches], sounds: [AbsoluteURL: Stretches]
    ) -> Choice? {
        var longest: Choice?
        for pair in pairs {
            guard var common = streams[pair.stream] else { continue }
            if let url = pair.sound {
                guard let stream = lists[pair.stream], let other = lists[url],
                    let sound = sounds[url]
                else { continue }
                common = Self.common((stream, common), (other, sound))
            }
            if !keepsEveryStretch {
                let used = [lists[pair.stream], pair.sound.flatMap { lists[$0] }]
                common = Self.played(common, of: used.compactMap { $0 })
            }
            if common.duration > (longest?.stretches.duration ?? 0) + Stretches.tolerance {
                longest = (pair, common)
            }
        }
        return longest
    }

    /// Returns the ranges that are played of those that all of some playlists cover.
    static func played(_ ranges: Stretches, of lists: [OfflineList]) -> Stretches {
        if lists.contains(where: { $0.isLive }) { return ranges.lastLongest }
        return lists.contains(where: { $0.hasMap }) ? ranges.longest : ranges
    }

    /// A playlist, and the ranges that are played of it.
    private typealias Covered = (list: OfflineList, ranges: Stretches)

    /// Returns the ranges that a variant stream and its audio have in common, with what follows in
    /// one of them behind the end of the other up to the first hole.
    private static func common(_ one: Covered, _ other: Covered) -> Stretches {
        var common = one.ranges.intersection(other.ranges)
        let (longer, shorter) = one.list.end < other.list.end ? (other, one) : (one, other)
        guard shorter.list.mayCompareEnd(with: longer.list), let last = common.ranges.last,
            shorter.list.isEnd(last.upperBound),
            let rest = longer.ranges.ranges.last(where: { $0.contains(last.upperBound) })
        else { return common }
        common.append(last.upperBound..<rest.upperBound)
        return common
    }
}
