// Pairs a list's former children with its current ones, for children whose token has expired.
package import HLS
package import Store
package import URISyntax

/// Pairs the former children of a list with its current ones.
///
/// Children match by key, where rules leave the token out; then by path, where no other child has
/// the same path; then by place in the list: role, media sequence number, part and order.
package struct Succession {
    private struct Place: Hashable {
        let role: ResourceRole
        let sequence: Int
        let part: Int?
        let order: Int
    }

    private var byKey: [ObjectKey: AbsoluteURL] = [:]
    private var byPath: [String: AbsoluteURL?] = [:]
    private var byPlace: [Place: AbsoluteURL] = [:]
    private let key: (AbsoluteURL, ResourceRole) -> ObjectKey

    /// - Parameters:
    ///   - now: the current children of the list.
    ///   - key: makes the key of a child.
    package init(
        _ now: [ResourceReference], key: @escaping (AbsoluteURL, ResourceRole) -> ObjectKey
    ) {
        self.key = key
        for (place, child) in Self.placed(now) {
            byKey[key(child.url, child.role)] = child.url
            byPlace[place] = child.url
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
        Self.placed(former).compactMap { place, child in
            guard let url = successor(of: child.url, child.role) ?? byPlace[place],
                url != child.url
            else { return nil }
            return (child.url, url)
        }
    }
}
