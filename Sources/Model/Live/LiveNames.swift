// The content of the paths of links into live lists: which list, and which place in it. Pure.
package import HLS
import Numbers
package import Routing
package import Store
package import URISyntax

/// An initialization section of a live list.
package struct LiveSection: Hashable, Sendable {
    /// The number of the first segment that it is listed before.
    package var number: Int
    /// Its name in link paths.
    package var name: UInt32

    /// The most sections of a list whose names are kept; others are named by their current URL.
    static let mostKept = 256

    /// Returns a name that stays the same while only host and query of the URL change.
    package static func name(of url: AbsoluteURL, _ range: SubRange?) -> UInt32 {
        var hash = FNV1a()
        for byte in url.bytes[url.pathRange] { hash.take(byte) }
        if let range {
            for number in [range.offset, range.length] {
                for shift in stride(from: 0, to: 64, by: 8) {
                    hash.take(UInt8(truncatingIfNeeded: number >> shift))
                }
            }
        }
        return UInt32(truncatingIfNeeded: hash.value ^ hash.value >> 32)
    }

    /// Returns the sections of a reading with the names that their link paths contain.
    ///
    /// A section at the same number as in the former reading keeps its name, so that a token in its
    /// path does not change it; the first section of a window takes the name in force there.
    ///
    /// - Parameters:
    ///   - seen: the sections of the reading, each named by its URL.
    ///   - first: the number of the first segment that the reading lists.
    ///   - isDelta: whether the reading omits what precedes that segment.
    ///   - former: the sections of the reading before, in the same epoch.
    ///   - formerEnd: the number after its last segment.
    /// - Returns: the sections with the names that their link paths contain.
    package static func named(
        _ seen: [LiveSection], first: Int, isDelta: Bool, after former: [LiveSection],
        formerEnd: Int
    ) -> [LiveSection] {
        guard !former.isEmpty else { return seen }
        let known = Dictionary(former.map { ($0.number, $0.name) }, uniquingKeysWith: { $1 })
        var named = seen
        for index in named.indices {
            if let name = known[named[index].number] {
                named[index].name = name
            } else if index == 0, named[index].number == first, first < formerEnd,
                let inForce = former.last(where: { $0.number < first })
            {
                named[index].name = inForce.name
            }
        }
        guard isDelta else { return named }
        return Array((former.filter { $0.number < first } + named).suffix(mostKept))
    }
}

extension LivePlace {
    /// Where a live list contains a resource; nil where the link is made from the URL: for keys,
    /// which players do not compare and numbers do not distinguish, for playlists and for JSON.
    package init?(of reference: ResourceReference) {
        switch reference.tag {
        case .inf:
            guard [.segment, .subtitle, .image].contains(reference.role) else { return nil }
            self = .segment(reference.mediaSequence)
        case .part, .preloadHint:
            switch reference.role {
            case .part:
                // Ranges of one resource, and the hint that announces the next of them, share one
                // URI.
                if reference.byteRange == nil, !reference.hasRangeStart,
                    let index = reference.partIndex
                {
                    self = .part(reference.mediaSequence, index: index)
                } else {
                    self = .segment(reference.mediaSequence)
                }
            case .initialization:
                self = .section(LiveSection.name(of: reference.url, nil))
            default: return nil
            }
        case .map:
            self = .section(LiveSection.name(of: reference.url, reference.byteRange))
        default: return nil
        }
    }
}

/// Makes the link paths of one rewritten form of a live list.
package struct LiveNames {
    package let list: (name: UInt64, epoch: Epoch)
    /// The names of initialization sections by the number that they are listed at.
    let sections: [Int: UInt32]
    /// The names of initialization sections by the names that their URLs alone give them; nil
    /// except for a form that lacks some segments.
    ///
    /// Segments behind a hole have other numbers there.
    var sectionsByURL: [UInt32: UInt32]?
    /// The number from which on a form that lacks some segments has other numbers than the list;
    /// nil if there is none.
    ///
    /// With its number in that form, a link without its query would lead to the segment before.
    var movedFrom: Int?

    /// Returns the place of a reference in the list; nil where its link is made from its URL.
    package func place(of reference: ResourceReference) -> LivePlace? {
        guard let place = LivePlace(of: reference) else { return nil }
        if let movedFrom, reference.tag == .inf, reference.mediaSequence >= movedFrom { return nil }
        guard reference.tag == .map, case .section(let ofURL) = place else { return place }
        let name: UInt32? = sectionsByURL.map { $0[ofURL] } ?? sections[reference.mediaSequence]
        return .section(name ?? ofURL)
    }
}

extension ObjectKey {
    /// The name of this key's live list in link paths.
    package var listName: UInt64 { bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) } }
}
