import URISyntax

/// Finds segments of one variant that can replace missing ones of another.
struct SegmentReplacements {
    /// For the most complete variant of each encoding group: replacements for its missing segments,
    /// by line.
    private(set) var byBorrower: [AbsoluteURL: [Int: AbsoluteURL]] = [:]

    init(_ variants: [OfflinePlan.Variant], _ lists: [AbsoluteURL: OfflineList]) {
        // The lenders without anything for a borrower: in a hostile playlist the same two lists may
        // be in thousands of groups.
        var useless: [AbsoluteURL: Set<AbsoluteURL>] = [:]
        for kin in Self.kin(variants, lists) where kin.count > 1 {
            let borrower = kin.max { one, two in
                (lists[one]?.keptCount ?? 0) < (lists[two]?.keptCount ?? 0)
            }
            guard let borrower, byBorrower[borrower] == nil, let list = lists[borrower],
                list.keptCount > 0
            else { continue }
            let known = useless[borrower] ?? []
            let lenders = kin.filter { $0 != borrower && !known.contains($0) }
            guard !lenders.isEmpty else { continue }
            let found = Self.replacements(in: list, from: lenders.compactMap { lists[$0] })
            if found.isEmpty {
                useless[borrower, default: []].formUnion(lenders)
            } else {
                byBorrower[borrower] = found
            }
        }
    }

    /// Returns the exchangeable playlists of each encoding group, each once in a group, in the
    /// order of the variants.
    private static func kin(
        _ variants: [OfflinePlan.Variant], _ lists: [AbsoluteURL: OfflineList]
    ) -> [[AbsoluteURL]] {
        var groups: [(urls: [AbsoluteURL], known: Set<AbsoluteURL>)] = []
        var places: [String: Int] = [:]
        for variant in variants {
            guard let group = variant.encodingGroup, let list = lists[variant.url],
                list.isExchangeable
            else { continue }
            let place = places[group] ?? groups.count
            if place == groups.count {
                places[group] = place
                groups.append((urls: [], known: []))
            }
            if groups[place].known.insert(variant.url).inserted {
                groups[place].urls.append(variant.url)
            }
        }
        return groups.map { $0.urls }
    }

    private static func replacements(
        in list: OfflineList, from lenders: [OfflineList]
    ) -> [Int: AbsoluteURL] {
        var missing = list.segments.filter { !$0.isKept }
        var found: [Int: AbsoluteURL] = [:]
        for lender in lenders where !missing.isEmpty {
            let offers = SegmentOffers(lender)
            missing.removeAll { segment in
                guard let fitting = offers.first(like: segment) else { return false }
                found[segment.line] = fitting.url
                return true
            }
        }
        return found
    }
}

/// The stored segments of a list, by their numbers.
private struct SegmentOffers {
    /// Those with one number are in the order of the list, in which starts never descend.
    private let segments: [OfflineList.Segment]

    init(_ list: OfflineList) {
        segments = list.segments.filter(\.isKept)
            .sorted { ($0.number, $0.line) < ($1.number, $1.line) }
    }

    /// Returns the first segment that can replace another: the same number is not enough, start and
    /// duration must match too.
    func first(like segment: OfflineList.Segment) -> OfflineList.Segment? {
        // Binary search: the origin may give thousands of segments the same number.
        let index = segments.binarySearch { precedes($0, segment) }
        for offer in segments[index...] {
            guard offer.number == segment.number,
                offer.start - segment.start < Stretches.tolerance
            else { return nil }
            if abs(offer.duration - segment.duration) < Stretches.tolerance / 2 { return offer }
        }
        return nil
    }

    /// True if a segment comes before all those that match another's number and start.
    private func precedes(_ offer: OfflineList.Segment, _ segment: OfflineList.Segment) -> Bool {
        offer.number < segment.number
            || (offer.number == segment.number
                && segment.start - offer.start >= Stretches.tolerance)
    }
}
