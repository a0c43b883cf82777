import DurableState
import Posix
@testable import Library
import Testing

/// The stored form of orders to purge.
@Suite struct PurgeOrderTests {
    @Test func `orders are restored as they were written`() {
        let time = WallTime(nanoseconds: 1_700_000_000_000_000_000)
        let orders = [
            PurgeOrder(.texts(["https://a.example/x y", "https://a.example/z"]), given: time),
            PurgeOrder(.titles([0, 7, .max]), given: time),
            PurgeOrder(.host("a.example:8080"), given: WallTime(nanoseconds: 0)),
            PurgeOrder(.unusedSince(time), given: time),
        ]
        for (number, order) in orders.enumerated() {
            let record = order.record(number)
            #expect(record.isValid)
            #expect(PurgeRecord(StateRow(record.values)).flatMap { PurgeOrder($0) } == order)
        }
    }

    @Test func `a record without targets is not an order`() {
        for kind in [PurgeRecord.Kind.host, .unusedSince] {
            for items in [[], ["x"], ["99999999999999999999"]] where kind != .host || items.isEmpty
            {
                let record = PurgeRecord(number: 0, given: 0, kind: kind, items: items)
                #expect(PurgeOrder(record) == nil)
            }
        }
    }
}
