// How the names of all orders are read from the bucket, page by page.

/// The listings of `orders1/`.
///
/// Names are those after the prefix of the location. Stores list them in their order, so that
/// claims come before heartbeats and orders, and claims whose orders are gone may be left over.
/// Once a listing of all names is cut short, each kind is listed by itself, with a bound of its
/// own: orders first, and last the claims of these orders. So claims hide no order, and no
/// heartbeat.
package struct OrderListing {
    package typealias Listed = (name: String, tag: String)

    /// What is to be done after a page.
    package enum Step: Equatable {
        /// Read a page of the names that begin with a text; of the first page the token is nil.
        case read(String, from: String?)
        /// All was read.
        case end
    }

    private static let kinds = [
        SharedOrderNames.orders, SharedOrderNames.nodes, SharedOrderNames.progress,
        SharedOrderNames.claims,
    ]

    private let most: Int
    private let mostPages: Int
    private var objects: [Listed] = []
    /// What is still to be listed; the first one is being listed.
    private var starts: [String] = []
    private var isByKind = false
    /// The names that were kept before the kind that is being listed.
    private var former = 0
    /// The pages of that kind.
    private var pages = 0
    /// The pages of all kinds.
    private var allPages = 0
    private var token: String?
    /// The names on all pages, those that were not kept included.
    private var seen = 0
    private var listedOrders: Set<SharedOrderID> = []

    /// - Parameters:
    ///   - most: as soon as so many names of a kind are kept, no further page of it is read.
    ///   - mostPages: the most pages of a kind.
    package init(most: Int = 10_000, mostPages: Int) {
        self.most = most
        self.mostPages = mostPages
    }

    /// Begins a listing, whatever became of the former one.
    ///
    /// - Returns: the reading of the first page.
    package mutating func begin() -> Step {
        starts = isByKind ? Self.kinds : [SharedOrderNames.all]
        (objects, seen, allPages) = ([], 0, 0)
        return beginKind()
    }

    private mutating func beginKind() -> Step {
        guard let start = starts.first else { return .end }
        (former, pages, token) = (objects.count, 0, nil)
        if start == SharedOrderNames.claims { noteListedOrders() }
        return .read(start, from: nil)
    }

    private mutating func noteListedOrders() {
        listedOrders = Set(
            objects.compactMap { object -> SharedOrderID? in
                guard case .order(let id, _, _)? = SharedOrderNames.Meaning(object.name) else {
                    return nil
                }
                return id
            })
    }

    /// Takes a page.
    ///
    /// - Parameters:
    ///   - page: its names.
    ///   - next: the token of the next page; nil if this is the last one.
    /// - Returns: what is to be read next.
    package mutating func add(_ page: [Listed], next: String?) -> Step {
        guard let start = starts.first else { return .end }
        pages += 1
        allPages += 1
        seen += page.count
        let areClaims = start == SharedOrderNames.claims
        objects += page.filter { object in
            object.name.hasPrefix(start) && (!areClaims || isOfListedOrder(object.name))
        }
        // Some gateways repeat a page for ever.
        if let next, next != token {
            if objects.count - former < most, pages < mostPages {
                token = next
                return .read(start, from: next)
            }
            if !isByKind {
                isByKind = true
                return begin()
            }
        }
        starts.removeFirst()
        return beginKind()
    }

    private func isOfListedOrder(_ name: String) -> Bool {
        guard case .claim(let id, _)? = SharedOrderNames.Meaning(name) else { return false }
        return listedOrders.contains(id)
    }

    /// Ends a listing that was read to its end.
    ///
    /// - Returns: the names and tags.
    package mutating func end() -> [Listed] {
        // One listing is enough again once it can show all: it has no more pages than the kinds
        // together, of which each has one at least.
        if seen < most, allPages <= mostPages { isByKind = false }
        defer { (objects, listedOrders) = ([], []) }
        return objects
    }
}
