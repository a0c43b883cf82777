// The records of downloads in the state database, from run to run.
//
// Stored pieces are not recorded: the store knows them.
import DurableState
import Library
import Numbers
import Posix
import Routing
package import Store

/// One download as read from its record.
struct SavedDownload {
    let order: DownloadOrder
    let state: Download.State
    let name: String
    let summary: Download.Summary
    let isPinnedBefore: Bool
    let carriedOut: WallTime?
    let lastRefresh: Download.LastRefresh?
    let formerKeys: Set<ObjectKey>

    /// Nil if the record's order is invalid.
    init?(_ record: DownloadRecord) {
        guard let order = DownloadOrder(record.order) else { return nil }
        self.order = order
        // A title may be called like a value of its URL, which is no secret then.
        name = record.hasCleanName ? record.name : TitleName.saved(record.name, of: order.url)
        isPinnedBefore = record.isPinnedBefore
        carriedOut = record.carriedOut.map { WallTime(nanoseconds: $0) }
        let failure = record.state == "complete" ? record.reason : nil
        lastRefresh = record.refreshed.map {
            Download.LastRefresh(ended: WallTime(seconds: $0), failure: failure)
        }
        let (keys, length) = (record.formerKeys, PinRecord.keyLength)
        formerKeys = Set(
            stride(from: 0, to: keys.count, by: length).compactMap { start in
                ObjectKey(bytes: Array(keys[start...].prefix(length)))
            })
        switch record.state {
        case "paused": state = .paused(reason: record.reason)
        case "complete": state = .complete
        case "failed": state = .failed(record.reason ?? "")
        // In any other state it begins by checking what is stored.
        default: state = .queued
        }
        summary = Download.Summary(
            pieces: Int(record.pieces), done: Int(record.done), bytes: record.bytes,
            seconds: record.seconds, labels: record.labels)
    }
}

extension Download {
    /// The record to save.
    var record: DownloadRecord { record(in: state) }

    /// The record to save before it changes to `state`.
    func record(in state: State) -> DownloadRecord {
        var record = DownloadRecord(id: id.number, order: order.record)
        (record.name, record.hasCleanName) = (name, true)
        record.isPinnedBefore = isPinnedBefore
        record.carriedOut = carriedOut?.nanoseconds
        record.refreshed = lastRefresh.map { max(0, $0.ended.seconds) }
        record.formerKeys = formerKeys.prefix(DownloadRecord.mostFormerKeys).flatMap(\.bytes)
        switch state {
        case .paused(let reason): (record.state, record.reason) = ("paused", reason)
        case .complete: (record.state, record.reason) = ("complete", lastRefresh?.failure)
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

/// What complete downloads of an earlier run have lost.
package enum DownloadLosses {
    static let reason = "parts of it were removed from the cache; resume it to fetch them again"

    /// Saves the complete downloads among these titles that have lost anything as failed; blocks on
    /// the disk.
    ///
    /// For a process that removes objects while no daemon runs: a daemon looks for parts of complete
    /// downloads only if the store tells of losses (`ObjectStore.followLosses`).
    package static func note(removedFrom titles: Set<UInt64>, of store: ObjectStore) {
        let lacking = store.pinnedRests(of: titles).filter { !$0.value.isWhole }
        for var record in store.state.records(DownloadRecord.self)
        where record.state == "complete" && titles.contains(record.id) {
            if let rest = lacking[record.id] {
                record.done = rest.share(of: record.pieces)
                record.bytes = rest.share(of: record.bytes)
            } else if store.pin(of: record.id) == nil, store.mark(ofTitle: record.id) == nil {
                (record.done, record.bytes) = (0, 0)
            } else {
                continue
            }
            record.state = "failed"
            record.reason = reason
            store.state.put(record)
        }
    }
}

extension PinnedRest {
    /// Returns the share of a figure that falls to the pinned objects that are still stored.
    func share(of figure: Int64) -> Int64 {
        all > 0 ? Int64(saturating: Double(figure) * Double(held) / Double(all)) : 0
    }
}
