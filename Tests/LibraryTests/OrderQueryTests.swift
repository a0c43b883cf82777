import Posix
import Testing
import URISyntax

@testable import Library

/// Orders on their way to another node.
@Suite struct OrderQueryTests {
    @Test(arguments: [
        "url=http%3A%2F%2Fa.example%2Fx.m3u8%3Ft%3D1%26u%3D2",
        "url=http%3A%2F%2Fa.example%2Fx.m3u8&variant=720&audio=all&subtitles=none",
        "url=http%3A%2F%2Fa.example%2Fx&variant=worst&audio=pt-BR&from=1:30&to=90.5&rate=1000",
        "url=http%3A%2F%2Fa.example%2Fx.m3u8&from=0.25&to=9999999&variant=all",
        "url=http%3A%2F%2Fa.example%2Fx&h_X-Pass=a%20b%26c%3D%C3%BC&h_Referer=http%3A%2F%2Fb",
    ])
    func `an order for a download is the same on another node`(_ query: String) throws {
        let order = try DownloadOrder(query: query) { try? AbsoluteURL($0) }
        #expect(DownloadOrder(sharedQuery: order.query) == order)
        #expect(order.query.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F })
        #expect(order.holdsSecrets == query.contains("h_"))
    }

    @Test func `what an order chooses has neither its URL nor headers nor the rate`() throws {
        let query = "url=http%3A%2F%2Fa.example%2Fx&variant=720&audio=en&to=90&rate=1000&h_X=secret"
        let order = try DownloadOrder(query: query) { try? AbsoluteURL($0) }
        #expect(order.choice == "variant=720p&audio=en&to=90.0")
    }

    @Test func `repeated arguments of an order add to a list`() throws {
        let query =
            "url=http%3A%2F%2Fa.example%2Fx&audio=en&variant=720,360&audio=de,fr&variant=480"
        let order = try DownloadOrder(query: query) { try? AbsoluteURL($0) }
        #expect(
            order.choice
                == "variant=720p&variant=360p&variant=480p&audio=en&audio=de&audio=fr")
        #expect(DownloadOrder(sharedQuery: order.query) == order)
        #expect(throws: AdministrationRefusal.self) {
            try DownloadOrder(query: query + "&audio=none") { try? AbsoluteURL($0) }
        }
    }

    @Test func `an order for a recording is the same on another node`() throws {
        let query = "url=http%3A%2F%2Fa.example%2Fl.m3u8&for=2h&name=Evening%20news&variant=480p"
        let order = try RecordingOrder(query: query, now: WallTime(seconds: 1_700_000_000)) {
            try? AbsoluteURL($0)
        }
        let other = RecordingOrder(id: order.id, sharedQuery: order.query)
        #expect(other == order)
    }

    @Test(
        arguments: [
            ([], "12345678"), (["1234567a", "1234567a-2"], "12345678"),
            (["12345678"], "12345678-2"),
            (["12345678-9", "12345678", "12345678-10"], "12345678-11"),
            (["12345678-x", "12345678-"], "12345678-2"),
        ] as [([String], String)])
    func `each part of a recording has an id of its own`(_ known: [String], _ id: String) {
        #expect(RecordingOrder.id(ofNextPartOf: "12345678", after: known) == id)
        #expect(RecordingOrder.number(of: id) == "12345678")
    }

    @Test(arguments: [
        "", "url=http%3A%2F%2Fa%2F", "url=x&started=1&until=2",
        "url=http%3A%2F%2Fa%2F&started=5&until=2", "url=http%3A%2F%2Fa%2F&started=5&until=99999999",
        "url=http%3A%2F%2Fa%2F&started=-5&until=2",
    ])
    func `no other text is a recording`(_ query: String) {
        #expect(RecordingOrder(id: "12345678", sharedQuery: query) == nil)
    }
}
