import Testing

@testable import DurableState

/// Conversion between records and rows.
@Suite struct RecordTests {
    func expectSame<Record: StateRecord>(
        _ record: Record, sourceLocation: SourceLocation = #_sourceLocation
    ) {
        #expect(Record.table.admits(record.values), sourceLocation: sourceLocation)
        #expect(Record(StateRow(record.values)) == record, sourceLocation: sourceLocation)
        #expect(
            Record.table.columns.count == record.values.count, sourceLocation: sourceLocation)
    }

    @Test func `a record is restored as it was written`() {
        expectSame(session(0xFFFF_FFFF_FFFF))
        expectSame(SessionRecord(id: 0, window: 3_600, recording: "0011aabb", fields: ""))
        expectSame(
            SessionRecord(
                id: 1, window: nil, recording: nil, fields: "", height: 1, bandwidth: 1 << 31))
        expectSame(KeyVetoRecord(origin: "http://a", scope: "media", reason: "length"))
        for paths in [[], [0, .max, 7]] as [[UInt32]] {
            expectSame(
                KeyFindingRecord(
                    origin: "http://a", name: "t", pairs: .max, paths: paths, isVetoed: true))
        }
        expectSame(FeedRecord(name: "home", body: [0x7B, 0x7D]))
        expectSame(NodeOrderRecord(item: "download-1", given: 7, wish: "run", query: "url=a"))
        expectSame(
            NodeChangeRecord(
                name: "v1/rules/0000000000000000001-ab", text: "sluice change 1\n/api/pin?url=a\n"))
        expectSame(NodeChangeRecord(latestPin: .max))
        #expect(NodeChangeRecord(latestPin: .max).latestPin == .max)
        for variables in [[:], ["a": "1\nb=2", "c=d": "\r", "e": "\u{301}"]] {
            expectSame(VariablesRecord(session: 7, list: "http://h/m", variables: variables))
        }
        var list = LiveListRecord(
            key: [UInt8](repeating: 9, count: 32), epoch: .max, first: 0, pastLast: 9)
        expectSame(list)
        list.ended = .min
        list.namesEpoch = .max
        expectSame(list)
        list.dated = .init(number: 8, date: .min)
        list.sections = [.init(number: 3, name: 5), .init(number: 8, name: .max)]
        expectSame(list)
    }

    @Test func `values out of range are rejected`() {
        let table = LiveListRecord.table
        var list = LiveListRecord(
            key: [UInt8](repeating: 9, count: 32), epoch: 0, first: 0, pastLast: 9)
        list.targetDuration = -1
        #expect(!table.admits(list.values))
        list.targetDuration = .max
        #expect(!table.admits(list.values))
        let valid = session(1).values
        for (index, value) in [
            (0, .integer(-1)), (0, .text("1")), (0, .null), (1, .integer(0)), (1, .real(1)),
            (2, .bytes([1])), (3, .text(String(repeating: "x", count: 17 << 20))), (3, .null),
            (4, .integer(0)), (4, .integer(1 << 31 + 1)), (5, .integer(-1)), (5, .text("1")),
        ] as [(Int, StateValue)] {
            var values = valid
            values[index] = value
            #expect(!SessionRecord.table.admits(values), "\(index)")
        }
        #expect(!SessionRecord.table.admits([]))
    }

    @Test(arguments: ["1", "1 -2", "a b", "1 4294967296", "99999999999999999999 1"])
    func `malformed sections give no list`(text: String) {
        var values = LiveListRecord(
            key: [UInt8](repeating: 9, count: 32), epoch: 0, first: 0, pastLast: 9
        ).values
        values[9] = .text(text)
        #expect(LiveListRecord(StateRow(values)) == nil)
    }

    @Test func `a truncated row gives no record and no trap`() {
        #expect(LiveListRecord(StateRow([])) == nil)
        #expect(KeyFindingRecord(StateRow([.null, .null, .null, .bytes([1])])) == nil)
        _ = SessionRecord(StateRow([]))
    }
}

extension RecordTests {
    private var order: OrderRecord {
        var order = OrderRecord(url: "https://cdn.example.com/a.m3u8?x=ü")
        order.headers = "Cookie:a=b\nX:\n"
        order.variant = "720"
        order.subtitles = "pt-BR"
        order.to = 90.5
        order.rate = 1_000
        return order
    }

    @Test func `pins, downloads and recordings are restored as they were written`() {
        expectSame(PinRecord(title: .max, url: "\t\n", since: -1, keys: []))
        expectSame(
            PinRecord(title: 0, url: "", since: 7, keys: [UInt8](repeating: 3, count: 64)))
        #expect(PinRecord(StateRow([.integer(1), .text(""), .integer(1), .bytes([1])])) == nil)
        var download = DownloadRecord(id: 0xFFFF_FFFF_FFFF, order: order)
        expectSame(download)
        download.reason = "no room"
        (download.pieces, download.done, download.bytes, download.seconds) = (9, 8, 7, 0.25)
        download.labels = ["720p", "Deutsch"]
        download.isPinnedBefore = true
        download.carriedOut = .max
        download.hasCleanName = true
        download.refreshed = 1_795_000_000
        download.formerKeys = [UInt8](repeating: 3, count: 64)
        expectSame(download)
        expectSame(DownloadDayRecord(day: "2026-11-23", bytes: 5))
        var recording = RecordingRecord(
            id: "00aa11bb", order: order, started: 1, until: 2, state: "running")
        expectSame(recording)
        (recording.name, recording.ended, recording.isMultivariant) = ("News", 3, true)
        recording.lists = [
            .init(url: "http://h/a", label: "720p 2 Mbit/s"), .init(url: "b", label: ""),
        ]
        recording.isLeft = true
        expectSame(recording)
    }

    @Test func `impossible numbers of a download are rejected`() {
        var download = DownloadRecord(id: 1, order: order)
        download.bytes = .max
        #expect(!download.isValid)
        download.bytes = 0
        for seconds in [-1, .nan, .infinity, 1e16] {
            download.seconds = seconds
            #expect(!download.isValid)
        }
    }
}
