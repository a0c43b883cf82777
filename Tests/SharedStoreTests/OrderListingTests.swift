import Numbers
import Posix
import Testing

@testable import SharedStore

/// Which names a listing of all orders shows, of a bucket whose pages have ten names.
@Suite struct OrderListingTests {
    private func id(_ number: Int) throws -> SharedOrderID {
        try #require(SharedOrderID(.download, String(number, radix: 16, width: 8)))
    }

    private func order(_ number: Int) throws -> String {
        let given = WallTime(seconds: 1_700_000_000)
        let order = SharedOrder(try id(number), .run, query: "url=x", given: given, node: "ab")
        return try #require(order).name
    }

    private func claim(_ number: Int, turn: Int = 0) throws -> String {
        SharedOrderNames.claim(try id(number), turn: turn)
    }

    /// A node, and as many orders as it has claimed.
    private func bucket(orders: Int) throws -> [String] {
        [SharedOrderNames.node("ab"), SharedOrderNames.progress(of: "ab")]
            + (try (0..<orders).flatMap { [try order($0), try claim($0)] })
    }

    /// Claims whose orders are gone.
    private func leftovers(_ count: Int) throws -> [String] {
        try (0..<count).map { try claim(0xF000 + $0) }
    }

    private func look(
        _ listing: inout OrderListing, _ bucket: [String]
    ) -> (names: Set<String>, pages: Int) {
        var step = listing.begin()
        var pages = 0
        while case .read(let start, let token) = step {
            pages += 1
            let left = bucket.sorted().filter { $0.hasPrefix(start) && $0 > token ?? "" }
            let page = left.prefix(10).map { (name: $0, tag: "") }
            step = listing.add(page, next: left.count > 10 ? page.last?.name : nil)
        }
        return (Set(listing.end().map(\.name)), pages)
    }

    @Test func `a few names are read in one listing`() throws {
        var listing = OrderListing(most: 100, mostPages: 50)
        let bucket = try bucket(orders: 12) + leftovers(3)
        let found = look(&listing, bucket)
        #expect(found.names == Set(bucket) && found.pages == 3)
    }

    @Test func `claims that are left over hide no order, no node and no claim of an order`()
        throws
    {
        var listing = OrderListing(most: 100, mostPages: 50)
        let live = try bucket(orders: 60)
        let found = look(&listing, live + (try leftovers(300)))
        #expect(found.names == Set(live))
    }

    @Test func `a bucket with many names is read by kinds at once, until it has few`() throws {
        var listing = OrderListing(most: 100, mostPages: 50)
        let (live, old) = (try bucket(orders: 12), try leftovers(100))
        // Ten pages of claims; then two of orders, one each of nodes and progress, 12 of claims.
        #expect(look(&listing, live + old).pages == 10 + 16)
        #expect(look(&listing, live + old).pages == 16)
        #expect(look(&listing, live).pages == 6)
        #expect(look(&listing, live).pages == 3)
    }

    @Test func `names on too many pages are read by kinds at once, until they need few`() throws {
        var listing = OrderListing(most: 100, mostPages: 5)
        let (many, few) = (try bucket(orders: 30), try bucket(orders: 3))
        // Five pages of all names; then three of orders, one each of nodes and progress, three of
        // claims.
        #expect(look(&listing, many).pages == 5 + 8)
        let found = look(&listing, many)
        #expect(found.names == Set(many) && found.pages == 8)
        #expect(look(&listing, few).pages == 4)
        #expect(look(&listing, few).pages == 1)
    }

    @Test func `claims of one order end their own listing alone`() throws {
        var listing = OrderListing(most: 100, mostPages: 50)
        let live = try bucket(orders: 3)
        let found = look(&listing, live + (try (1...500).map { try claim(1, turn: $0) }))
        let isShown = try (0..<3).allSatisfy { found.names.contains(try order($0)) }
        #expect(isShown && found.names.contains(SharedOrderNames.node("ab")))
    }

    @Test func `pages that are repeated, or never end, end the listing`() {
        let first = OrderListing.Step.read(SharedOrderNames.all, from: nil)
        var listing = OrderListing(most: 100, mostPages: 5)
        let steps = [
            listing.begin(), listing.add([], next: "a"), listing.add([], next: "a"),
        ]
        #expect(steps == [first, .read(SharedOrderNames.all, from: "a"), .end])
        var step = listing.begin()
        var pages = 0
        while case .read = step, pages < 100 {
            pages += 1
            step = listing.add([], next: "\(pages)")
        }
        // Five of all names, and five of each kind.
        #expect(step == .end && pages == 25)
    }
}
