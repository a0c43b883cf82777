import Posix
import Testing

@testable import SharedStore

@Suite struct SharedOrderTests {
    private let id: SharedOrderID

    init() throws { id = try #require(SharedOrderID(.download, "0123456789ab")) }
    private let time = WallTime(nanoseconds: 1_700_000_000_000_000_000)

    @Test func `an order is what it was after the way through the bucket`() throws {
        let order = try #require(
            SharedOrder(id, .pause, query: "url=http%3A%2F%2Fa", given: time, node: "ab"))
        #expect(order.name == "orders1/order/download-0123456789ab-1700000000000000000-ab")
        #expect(SharedOrder(name: order.name, text: order.text) == order)
    }

    @Test(arguments: [
        "sluice order 2\nrun\nurl=a\n", "sluice order 1\nwalk\nurl=a\n", "sluice order 1\nrun\n",
        "sluice order 1\nrun\nurl=a\nmore\n", "sluice order 1\nrun\nurl=a b\n", "",
    ])
    func `no other text is an order`(_ text: String) {
        let name = "orders1/order/download-0123456789ab-1700000000000000000-ab"
        #expect(SharedOrder(name: name, text: Array(text.utf8)) == nil)
    }

    @Test(arguments: [
        "orders1/order/download-0123456789ab-1700000000000000000", "orders1/node/",
        "orders1/node/xyz",
        "orders1/order/title-0123456789ab-1700000000000000000-ab", "orders1/claim/download-ab-1",
        "orders1/order/download-0123456789ab-9999999999999999999-ab", "orders2/node/ab",
        "orders1/claim/download-ab-00000x", "orders1/claim/download-AB-000001", "v1/node/ab",
        "orders1/node/00112233445566778", "orders1/order/download--1700000000000000000-ab",
    ])
    func `no other name means anything`(_ name: String) {
        #expect(SharedOrderNames.Meaning(name) == nil)
    }

    @Test func `progress comes back, and lines that say nothing are skipped`() {
        let one = SharedOrderProgress(
            id: id, state: "running", percent: 400, bytes: -3, name: "Big\nBuck Bunny")
        let text = SharedOrderProgress.text([one]) + Array("download-1 run 5\nx\n".utf8)
        let read = SharedOrderProgress.parse(text)
        #expect(read?.count == 1)
        #expect(read?.first?.name == "Big Buck Bunny")
        #expect(read?.first?.percent == 100 && read?.first?.bytes == 0)
        #expect(SharedOrderProgress.parse(Array("other\n".utf8)) == nil)
    }

    @Test func `a heartbeat comes back, with a name that is safe to show`() {
        let beat = SharedHeartbeat(name: "a\u{1B}[1m b:9001", count: 7)
        #expect(SharedHeartbeat(text: beat.text) == beat)
        #expect(beat.name == "a_[1m_b:9001")
        #expect(SharedHeartbeat(text: Array("sluice node 1\nx\n-1\n".utf8)) == nil)
    }
}
