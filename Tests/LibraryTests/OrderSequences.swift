// Downloads and recordings of generated playlists and stored records: plans, records, restarts.
//
// Each function returns a violation, or nil; a broken invariant ends the process.
// `Fixtures/fuzz/drivers/orders.swift` uses this file too, together with the sources it tests.
import DurableState
import HLS
import Posix
import Routing
import URISyntax

#if canImport(Model)
import FuzzSupport
@testable import Library
#endif

enum OrderSequences {
    /// Runs everything on the versions that `bytes` encode.
    static func fault(_ readings: FuzzedReadings) -> String? {
        guard let base = try? AbsoluteURL("http://origin.test/live/index.m3u8") else { return nil }
        var readings = readings
        return planFault(base, &readings) ?? partsFault(base, &readings)
            ?? orderFault(base, &readings) ?? recordFault(&readings)
    }

    // MARK: Plans of downloads

    private static func planFault(
        _ base: AbsoluteURL, _ readings: inout FuzzedReadings
    ) -> String? {
        var plan = DownloadPlan()
        for list in readings.mediaPlaylists() {
            guard let found = try? Playlist(list, base: base).media else { continue }
            let from = readings.happens(oneIn: 3) ? DownloadOrder.time(readings.edge()) : nil
            let to = readings.happens(oneIn: 3) ? DownloadOrder.time(readings.edge()) : nil
            let bandwidth = readings.happens(oneIn: 3) ? nil : max(0, readings.number())
            plan.add(found, label: "l", bandwidth: bandwidth, from: from, to: to)
        }
        let count = plan.pieces.count
        plan.sort()
        if plan.pieces.count != count { return "sorting loses pieces" }
        if let bytes = plan.expectedTotal(knowing: [0: Int64(clamping: readings.number())]),
            !(0...Int64(1) << 53).contains(bytes)
        {
            return "it has \(bytes) bytes"
        }
        if !plan.seconds.isFinite || plan.seconds < 0 { return "it plays \(plan.seconds) s" }
        var known: Set<[String]> = []
        var start = 0.0
        for piece in plan.pieces {
            if piece.start < start || !piece.seconds.isFinite { return "pieces are out of order" }
            start = piece.start
            if let range = piece.range, range.lowerBound < 0 { return "a range begins below 0" }
            let identity = [piece.url.text, piece.range.map { "\($0)" } ?? ""]
            if !known.insert(identity).inserted { return "\(identity) is fetched twice" }
        }
        return nil
    }

    private static func partsFault(
        _ url: AbsoluteURL, _ readings: inout FuzzedReadings
    ) -> String? {
        var plan = DownloadPlan()
        plan.addFirstPart(of: url)
        let total = Int64(clamping: readings.number())
        plan.addParts(of: url, total: total)
        if plan.pieces.count > Int(DownloadPlan.mostParts) + 2 { return "there are too many parts" }
        var end: Int64 = 0
        for piece in plan.pieces {
            guard let range = piece.range, range.lowerBound == end else {
                return "parts leave a hole"
            }
            end = range.upperBound
        }
        return end == max(0, total) ? nil : "parts end at \(end) of \(total)"
    }

    // MARK: Orders

    /// Chooses renditions, stores an order and restores it as the next run does.
    private static func orderFault(
        _ base: AbsoluteURL, _ readings: inout FuzzedReadings
    ) -> String? {
        var choice = DownloadOrder(url: base)
        for name in ["variant", "audio", "subtitles", "from", "to", "rate"] {
            let values = [
                "best", "worst", "all", "none", "default", "en", "en,de", "360,720",
                readings.edge(),
            ]
            _ = choice.set(name, values[readings.choose(values.count)])
        }
        // If one of two settings is rejected because of the other, the order is not given.
        if let from = choice.from, let to = choice.to, to <= from { choice.to = nil }
        let started = WallTime(seconds: Int64(readings.choose(100)))
        let times = [started, WallTime(nanoseconds: .max), WallTime(nanoseconds: .min)]
        var order = RecordingOrder(
            id: "12345678", choice: choice, started: started, until: times[readings.choose(3)])
        order.state = [.running, .paused, .finishing, .done, .failed][readings.choose(5)]
        order.reason = ["", "no room", "two\nlines", readings.edge()][readings.choose(4)]
        order.name = [nil, "News", "END", "a b"][readings.choose(4)]
        order.bytes = Int64(clamping: readings.number())
        order.seconds = Double(readings.number())
        order.segments = readings.number()
        order.lost = readings.number()
        if let list = try? Playlist(readings.multivariantPlaylist(), base: base).multivariant,
            let lists = try? DownloadChoice(choice, list).playlists()
        {
            order.lists = lists
            order.isMultivariant = true
        }
        let record = order.record
        guard record.isValid, let read = RecordingOrder(RecordingRecord(StateRow(record.values)))
        else { return "a recording's record is not read again" }
        if read.choice != order.choice { return "\(read.choice) was \(order.choice)" }
        if read.state != order.state || read.lists.map(\.url) != order.lists.map(\.url) {
            return "a recording's record changes when it is read"
        }
        return RecordingOrder(read.record)?.record == read.record
            ? nil : "records that are read twice differ"
    }

    /// Parses a record that is damaged, or written by hand.
    private static func recordFault(_ readings: inout FuzzedReadings) -> String? {
        var order = OrderRecord(url: readings.happens(oneIn: 8) ? readings.edge() : "http://h/a")
        order.headers = ["", "A:b\n", "A\n", readings.edge()][readings.choose(4)]
        order.variant = [nil, "best", readings.edge()][readings.choose(3)]
        order.rate = Int64(clamping: readings.number())
        order.from = Double(readings.number())
        order.to = Double(readings.number())
        var record = RecordingRecord(
            id: "1", order: order, started: Int64(clamping: readings.number()),
            until: Int64(clamping: readings.number()), state: "running")
        record.lists = [
            .init(url: "http://h/b", label: "l"), .init(url: readings.edge(), label: ""),
        ]
        record.bytes = Int64(clamping: readings.number())
        record.seconds = Double(readings.number())
        record.segments = Int64(clamping: readings.number())
        record.lost = Int64(clamping: readings.number())
        guard record.isValid, let read = RecordingOrder(record) else { return nil }
        if read.bytes < 0 || read.segments < 0 || read.seconds < 0 { return "a sum is negative" }
        return RecordingOrder(read.record)?.record == read.record
            ? nil : "records that are read twice differ"
    }
}
