import Posix
@testable import Library
@testable import Model
@testable import Serving
import Testing

/// Orders of purges as their file keeps them.
@Suite struct PurgeOrderTests {
    @Test func `orders are read as they were written`() {
        let time = WallTime(nanoseconds: 1_700_000_000_000_000_000)
        let orders = [
            PurgeOrder(.texts(["https://a.example/x y", "https://a.example/z"]), given: time),
            PurgeOrder(.titles([0, 7, .max]), given: time),
            PurgeOrder(.host("a.example:8080"), given: WallTime(nanoseconds: 0)),
            PurgeOrder(.unusedSince(time), given: time),
        ]
        #expect(PurgeOrder.orders(in: PurgeOrder.text(of: orders)) == orders)
        #expect(PurgeOrder.orders(in: PurgeOrder.text(of: [])) == [])
    }

    @Test(arguments: [
        "", "\n", "SLUICE PURGE 1\n", "SLUICE PURGE 2\nEND\n", "SLUICE PURGE 1\nhost a\nEND\n",
        "SLUICE PURGE 1\ngiven 1\nEND\n", "SLUICE PURGE 1\ngiven -1\nhost a\nEND\n",
        "SLUICE PURGE 1\ngiven 99999999999999999999\nhost a\nEND\n",
        "SLUICE PURGE 1\ngiven 1\ntitle 18446744073709551616\nEND\n",
        "SLUICE PURGE 1\ngiven 1\nhost a\nhost b\nEND\n", "SLUICE PURGE 1\ngiven 1\nhost a\n",
        "SLUICE PURGE 1\ngiven 1\nall\nEND\n",
    ])
    func `what is no whole list of orders is none`(text: String) {
        #expect(PurgeOrder.orders(in: text) == nil)
    }
}
