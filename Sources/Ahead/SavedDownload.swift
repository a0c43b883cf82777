// What is remembered of downloads from run to run, as records of the state database.
//
// Which parts have come is not in it: the store knows that.
import DurableState
import Library
import Routing

/// One download as its record says it.
struct SavedDownload {
    let id: SessionID
    let order: DownloadOrder
    let state: Download.State
    let pauseReason: String?
    let name: String
    let summary: Download.Summary

    /// Nil where the record's order is none.
    init?(_ record: DownloadRecord) {
        guard let order = DownloadOrder(record.order) else { return nil }
        self.order = order
        id = SessionID(record.id)
        name = record.name
        switch record.state {
        case "paused": state = .paused
        case "complete": state = .complete
        case "failed": state = .failed(record.reason ?? "")
        // Whatever it was doing, it begins with a look at what is there.
        default: state = .queued
        }
        pauseReason = state == .paused ? record.reason : nil
        summary = Download.Summary(
            pieces: Int(record.pieces), done: Int(record.done), bytes: record.bytes,
            seconds: record.seconds, labels: record.labels)
    }
}

extension Download {
    /// What is kept of it.
    var record: DownloadRecord {
        var record = DownloadRecord(id: id.number, order: order.record)
        record.name = name
        switch state {
        case .paused: (record.state, record.reason) = ("paused", pauseReason)
        case .complete: record.state = "complete"
        case .failed(let reason): (record.state, record.reason) = ("failed", reason)
        default: record.state = "running"
        }
        record.pieces = Int64(kept.pieces)
        record.done = Int64(kept.done)
        record.bytes = kept.bytes
        record.seconds = kept.seconds
        record.labels = kept.labels
        return record
    }
}

/// Bytes that were downloaded on a day.
struct DownloadDay: Equatable {
    var day: String
    var bytes: Int64

    /// Begins at nothing on another day.
    mutating func turn(to today: String) {
        if day != today { self = DownloadDay(day: today, bytes: 0) }
    }
}
