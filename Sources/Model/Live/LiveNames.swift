// What the paths of links into live lists say: which list, and where in it. Pure.
package import HLS
import Numbers
package import Routing
package import Store
package import URISyntax

/// An initialization section of a live list.
package struct LiveSection: Hashable, Sendable {
    /// The number of the first segment that it is listed before.
    package var number: Int
    /// What its path calls it.
    package var name: UInt32

    /// The most sections of a list whose names are kept; others are named by what they are now.
    static let mostKept = 256

    /// A name that is the same for as long as only host and query of the URL change.
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

    /// The names of the sections of a reading.
    ///
    /// A section that the former reading had at the same number keeps its name, so that a token in
    /// its path does not change it; the first one of a window is the one that was in force there.
    ///
    /// - Parameters:
    ///   - seen: the sections of the reading, each with the name of its URL.
    ///   - first: the number of the first segment that the reading lists.
    ///   - isDelta: whether the reading leaves out what stands before that.
    ///   - former: the sections of the reading before, in the same epoch.
    ///   - formerEnd: the number behind its last segment.
    /// - Returns: the sections with the names that their paths show.
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
    /// Where a live list names a resource; nil where its link is that of its URL: for keys, which no
    /// player compares and no number tells apart, for playlists and for data.
    package init?(of reference: ResourceReference) {
        switch reference.tag {
        case .inf:
            guard [.segment, .subtitle, .image].contains(reference.role) else { return nil }
            self = .segment(reference.mediaSequence)
        case .part, .preloadHint:
            switch reference.role {
            case .part:
                // Ranges of one resource, and the hint that announces the next of them, are one URI.
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

/// Gives the paths of one rewritten form of a live list.
package struct LiveNames {
    package let list: (name: UInt64, epoch: Epoch)
    /// The names of initialization sections by the number that they are listed at.
    let sections: [Int: UInt32]

    /// The place of a reference in the list; nil where its link is that of its URL.
    package func place(of reference: ResourceReference) -> LivePlace? {
        guard let place = LivePlace(of: reference) else { return nil }
        guard reference.tag == .map, let name = sections[reference.mediaSequence] else {
            return place
        }
        return .section(name)
    }
}

extension ObjectKey {
    /// What the paths of links call the live list of this key.
    package var listName: UInt64 { bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) } }
}
