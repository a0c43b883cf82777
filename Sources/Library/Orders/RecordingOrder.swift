// What a person asked to have recorded, and what has become of it: kept, so that a restart goes on with
// it.
package import DurableState
import Numbers
package import Posix
package import Routing
import URISyntax

/// One recording's books.
package struct RecordingOrder: Sendable, Equatable {
    package enum State: String, Sendable {
        /// Its playlists are followed.
        case running
        /// Not taken up again after crashes, until a person resumes it.
        case paused
        /// The last segments are fetched and the playlists written.
        case finishing
        /// It plays from the store.
        case done
        /// Nothing that plays has come of it.
        case failed

        package var isOver: Bool { self == .done || self == .failed }
    }

    /// Eight hexadecimal digits.
    package let id: String
    /// URL, headers, variants and renditions.
    package var choice: DownloadOrder
    /// For listings; nil for what the URL or the playlist tells.
    package var name: String?
    package var started: WallTime
    package var until: WallTime
    /// When it was over; nil while it is not, and for one that an earlier version has ended.
    package var ended: WallTime?
    package var state = State.running
    /// Why it ended, or what is wrong now; empty for nothing.
    package var reason = ""
    /// The media playlists; empty until the entry was read.
    package var lists: [ChosenPlaylist] = []
    /// Whether the entry names the lists, or is the only one itself.
    package var isMultivariant = false
    /// Bytes fetched by former runs, or of all once it is over.
    package var bytes: Int64 = 0
    /// Of the longest list, once it is over.
    package var seconds = 0.0
    package var segments = 0
    package var lost = 0

    package init(id: String, choice: DownloadOrder, started: WallTime, until: WallTime) {
        self.id = id
        self.choice = choice
        self.started = started
        self.until = until
    }

    /// What a player would start from.
    package var entry: Entry { choice.entry }
}

// MARK: Keeping

extension RecordingOrder {
    /// The recording as it is kept; numbers are brought to the nearest that is read again.
    package var record: RecordingRecord {
        let largest = Int64(OutsideNumber.largest)
        func sum(_ number: Int64) -> Int64 { min(max(0, number), largest) }
        func time(_ time: WallTime) -> Int64 { min(max(-largest, time.seconds), largest) }
        var record = RecordingRecord(
            id: id, order: choice.record, started: time(started), until: time(until),
            state: state.rawValue)
        record.name = name
        record.ended = ended.map(time)
        record.reason = reason
        record.isMultivariant = isMultivariant
        record.lists = lists.map { .init(url: $0.url.text, label: $0.label) }
        record.bytes = sum(bytes)
        record.seconds = seconds.isFinite ? min(max(0, seconds), 1e15) : 0
        record.segments = sum(Int64(segments))
        record.lost = sum(Int64(lost))
        return record
    }

    /// Nil where the record says nothing that can be recorded.
    package init?(_ record: RecordingRecord) {
        guard let choice = DownloadOrder(record.order), let state = State(rawValue: record.state)
        else { return nil }
        self.init(
            id: record.id, choice: choice, started: WallTime(seconds: record.started),
            until: WallTime(seconds: record.until))
        self.state = state
        ended = record.ended.map { WallTime(seconds: $0) }
        name = record.name
        reason = record.reason
        isMultivariant = record.isMultivariant
        lists = record.lists.compactMap { list in
            (try? AbsoluteURL(list.url)).map { ChosenPlaylist(url: $0, label: list.label) }
        }
        bytes = record.bytes
        seconds = record.seconds
        segments = Int(record.segments)
        lost = Int(record.lost)
    }
}
