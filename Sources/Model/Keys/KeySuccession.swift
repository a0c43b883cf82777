// Pairs what a playlist named before with what it names now, for children whose token has died.
package import HLS
package import Store
package import URISyntax

/// Pairs what a list named before with what it names now.
///
/// By key, where rules leave the token out; by path, where no other child has it; by place in the
/// list: role, media sequence number, part and order.
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
    ///   - now: what the list names now.
    ///   - key: gives the key of a child.
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

    /// What stands for a URL now, wherever it stood before.
    package func successor(of url: AbsoluteURL, _ role: ResourceRole) -> AbsoluteURL? {
        byKey[key(url, role)] ?? byPath[url.path].flatMap { $0 }
    }

    /// The former children of a list that are found elsewhere now, and where.
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
