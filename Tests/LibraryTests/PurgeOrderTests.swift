import DurableState
import Logging
import Model
import Posix
import Store
import Testing

@testable import Library

/// The stored form of orders to purge.
@Suite struct PurgeOrderTests {
    @Test func `orders are restored as they were written`() throws {
        let time = WallTime(nanoseconds: 1_700_000_000_000_000_000)
        let orders = [
            PurgeOrder(.texts(["https://a.example/x y", "https://a.example/z"]), given: time),
            PurgeOrder(.titles([0, 7, .max]), given: time),
            PurgeOrder(
                .host(try #require(PurgeHost("a.example:8080"))), given: WallTime(nanoseconds: 0)),
            PurgeOrder(
                .prefixes([
                    try #require(PurgePrefix("http://a.example/s")),
                    try #require(PurgePrefix("http://b.example/s")),
                ]), given: time),
            PurgeOrder(.unusedSince(time), given: time),
            PurgeOrder(
                .objects([ObjectKey(sha256Of: "a"), ObjectKey(sha256Of: "b")]), given: time),
        ]
        for (number, order) in orders.enumerated() {
            let record = order.record(number)
            #expect(record.isValid)
            #expect(PurgeRecord(StateRow(record.values)).flatMap { PurgeOrder($0) } == order)
        }
    }

    @Test func `a repeated order takes one record, of its latest time`() throws {
        let folder = try makeTemporaryFolder("purge-orders")
        defer { removeTree(folder) }
        let database = try StateDatabase(folder: folder, log: Logger(label: "purge-order-tests"))
        defer { database.close() }
        let orders = PurgeOrders(database: database)
        let host = try #require(PurgeHost("a.example"))
        for seconds in [7, 9, 8] as [Int64] {
            try orders.add([PurgeOrder(.host(host), given: WallTime(seconds: seconds))])
        }
        try orders.add([
            PurgeOrder(.titles([7]), given: WallTime(seconds: 1)),
            PurgeOrder(.titles([7]), given: WallTime(seconds: 0)),
        ])
        #expect(
            orders.all() == [
                PurgeOrder(.host(host), given: WallTime(seconds: 9)),
                PurgeOrder(.titles([7]), given: WallTime(seconds: 1)),
            ])
    }

    @Test func `an order that was carried out is saved again when it is repeated`() throws {
        let folder = try makeTemporaryFolder("purge-orders")
        defer { removeTree(folder) }
        let database = try StateDatabase(folder: folder, log: Logger(label: "purge-order-tests"))
        defer { database.close() }
        let orders = PurgeOrders(database: database)
        let given = WallTime(seconds: 9)
        let (first, second) = (
            PurgeOrder(.titles([7]), given: given), PurgeOrder(.titles([8]), given: given)
        )
        try orders.add([first, second])
        try orders.replaceAll(byObjects: [], except: [second.subject])
        #expect(orders.all() == [second])
        try orders.add([first, second])
        #expect(orders.all() == [second, first])
    }

    @Test func `objects whose files are left take one record for thousands`() throws {
        let folder = try makeTemporaryFolder("purge-orders")
        defer { removeTree(folder) }
        let database = try StateDatabase(folder: folder, log: Logger(label: "purge-order-tests"))
        defer { database.close() }
        let orders = PurgeOrders(database: database)
        let keys = (0..<10_001).map { ObjectKey(sha256Of: "\($0)") }
        try orders.add([PurgeOrder(.titles([7]))])
        for count in [10_001, 10_000, 0] {
            try orders.replaceAll(byObjects: Array(keys.prefix(count)))
            let kept = orders.all()
            #expect(kept.count == (count + 9_999) / 10_000)
            let found = kept.reduce(into: Set<ObjectKey>()) { found, order in
                if case .objects(let some) = order.subject { found.formUnion(some) }
            }
            #expect(found == Set(keys.prefix(count)))
        }
    }

    @Test func `a record without targets is not an order`() {
        for kind in [PurgeRecord.Kind.host, .prefix, .unusedSince] {
            for items in [[], ["x"], ["99999999999999999999"]] where kind != .host || items.isEmpty
            {
                let record = PurgeRecord(number: 0, given: 0, kind: kind, items: items)
                #expect(PurgeOrder(record) == nil)
            }
        }
    }

    @Test(arguments: [
        (
            "a.example",
            [
                "http://a.example/x", "https://a.example/", "http://a.example:81/",
                "https://a.example:80/",
            ]
        ),
        ("A.EXAMPLE:80", ["http://a.example/x", "https://a.example:80/"]),
        ("a.example:443", ["https://a.example/"]),
        ("http://a.example", ["http://a.example/x"]),
        ("https://a.example:80/", ["https://a.example:80/"]),
        ("::1", ["http://[::1]/", "http://[::1]:8080/"]), ("[::1]:8080", ["http://[::1]:8080/"]),
        ("bücher.example", ["http://xn--bcher-kva.example/"]), ("b.example", []),
    ])
    func `a purge by host matches a host, or one of its origins`(
        text: String, matched: [String]
    ) throws {
        let host = try #require(PurgeHost(text))
        #expect(PurgeHost(host.text) == host)
        let urls = [
            "http://a.example/x", "https://a.example/", "http://a.example:81/",
            "https://a.example:80/", "http://[::1]/", "http://[::1]:8080/",
            "http://xn--bcher-kva.example/", "http://a.example.org/", "http://c.a.example/",
        ]
        #expect(urls.filter { host.matches($0) } == matched)
    }

    @Test(arguments: [
        "", "*", "*.example", "127.0.0.1:99999", "127.0.0.1:", "a.example/x", "http://a.example/x",
        "u@a.example", "a b", "http://", "ftp://a.example", "a.example#f", "a.example?q",
    ])
    func `what no stored URL can match is not a host to purge`(text: String) {
        #expect(PurgeHost(text) == nil)
    }
}
