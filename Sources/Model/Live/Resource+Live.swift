// The live properties of a resource: its epoch, its growth, and the list that a delta update
// belongs to.
package import CachePolicy
package import HLS
package import HTTP
package import Store
package import URISyntax

extension ObjectKey {
    package init(_ key: CacheKey) { self.init(sha256Of: key.text) }
}

extension Resource {
    /// The epoch of the name that is requested.
    package var epoch: Epoch { cacheKey.epoch }

    /// The key of the name, without its epoch.
    package var nameKey: ObjectKey { cacheKey.epoch == .first ? key : ObjectKey(cacheKey.name) }

    /// The key of the full list for a delta update; for other resources their own key.
    package var listKey: ObjectKey { cacheKey.skip == nil ? key : ObjectKey(cacheKey.list) }

    /// The URL of a list as other lists name it: without the delivery directives of its players.
    package var listURL: AbsoluteURL {
        live.directives == nil && live.playQuery == nil ? url : url.withoutDirectives
    }

    /// True if more of it is still to be produced, so that its length is unknown.
    package var isGrowing: Bool { live.growth?.stage == .growing }

    /// Brings the length of the stored object in line with the list that names it: sets the length
    /// of a resource listed as a whole, and forgets that of a growing one if the list has ranges
    /// beyond it.
    package func settleLength(of object: StoredObject) {
        guard let growth = live.growth, growth.stage != .ended else { return }
        if growth.stage == .growing {
            if let total = object.total, growth.outgrows(total) { object.forgetTotal() }
        } else if object.total == nil {
            _ = object.learnTotal(growth.end)
        }
    }

    /// True if the same URL always leads to this resource.
    package var isSteady: Bool {
        live.directives == nil && live.growth == nil && live.longestHold == nil
    }
}

extension AbsoluteURL {
    /// Returns the URL with query items appended; nil if the result is not a URL.
    package func adding(_ items: [QueryItem]) -> AbsoluteURL? {
        guard !items.isEmpty else { return self }
        var bytes = self.bytes
        bytes.append(queryRange == nil ? 0x3F : 0x26)
        bytes.append(contentsOf: items.map(\.text).joined(separator: "&").utf8)
        return try? AbsoluteURL(bytes: bytes)
    }

    /// The URL without the delivery directives in its query, which players append to the URL that
    /// they were given; every other byte stays (8216bis 6.2.5.1).
    package var withoutDirectives: AbsoluteURL {
        guard hasQueryItem(startingWith: Self.directive) else { return self }
        return keepingItems { !$0.starts(with: Self.directive) }
    }

    /// The URL without the directives that make an origin hold a reload; every other byte stays.
    package var withoutHolding: AbsoluteURL {
        guard hasQueryItem(startingWith: Self.directive) else { return self }
        return keepingItems { item in !Self.holding.contains { item.starts(with: $0) } }
    }

    private func keepingItems(where isKept: (ArraySlice<UInt8>) -> Bool) -> AbsoluteURL {
        guard let query = queryRange else { return self }
        let kept = bytes[query].split(separator: 0x26, omittingEmptySubsequences: false)
            .filter(isKept)
        var shorter = Array(bytes[..<(query.lowerBound - 1)])
        if !kept.isEmpty { shorter += [0x3F] + Array(kept.joined(separator: [0x26])) }
        return (try? AbsoluteURL(bytes: shorter)) ?? self
    }

    private static let directive = Array("_HLS_".utf8)
    private static let holding = [Array("_HLS_msn=".utf8), Array("_HLS_part=".utf8)]
}
