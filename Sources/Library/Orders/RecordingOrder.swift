// A recording order and its state, saved so that a restart continues it.
package import DurableState
import Numbers
package import Posix
package import Routing
import URISyntax

/// The order and state of one recording.
package struct RecordingOrder: Sendable, Equatable {
    package enum State: String, Sendable {
        /// Its playlists are followed.
        case running
        /// Not restarted after crashes, until a user resumes it.
        case paused
        /// The last segments are fetched and the playlists written.
        case finishing
        /// It plays from the store.
        case done
        /// No playable recording was made.
        case failed

        package var isOver: Bool { self == .done || self == .failed }
    }

    /// Its number, eight hexadecimal digits; after it `-2` for the second part of a recording that
    /// this node takes up again, and so on.
    package let id: String
    /// URL, headers, variants and renditions.
    package var choice: DownloadOrder
    /// The name in listings; nil for the one derived from the URL or the playlist.
    package var name: String?
    package var started: WallTime
    package var until: WallTime
    /// The time of its end; nil before, and for recordings ended by an earlier version.
    ///
    /// Until it is done, it is the time at which it stopped following its lists; of one that an
    /// earlier version was finishing it is nil, or the time of a pause.
    package var ended: WallTime?
    package var state = State.running
    /// The reason for its end, or a current problem; empty without one.
    package var reason = ""
    /// The media playlists; empty until the entry has been read.
    package var lists: [ChosenPlaylist] = []
    /// True if the entry is a multivariant playlist that names the lists; otherwise it is the only
    /// list.
    package var isMultivariant = false
    /// The bytes fetched by earlier runs; once it is over, and as it is saved, by all runs.
    package var bytes: Int64 = 0
    /// The duration of the longest list in seconds; while the recording runs, this and the next two
    /// are as noted last.
    package var seconds = 0.0
    package var segments = 0
    package var lost = 0
    /// True if another node goes on with it, so that what is here is a part with an end of its own.
    package var isLeft = false

    package init(id: String, choice: DownloadOrder, started: WallTime, until: WallTime) {
        self.id = id
        self.choice = choice
        self.started = started
        self.until = until
    }

    /// True if it had stopped following its lists when something was received.
    ///
    /// False in the second of the end, since records have whole seconds.
    package func hadEnded(before received: WallTime) -> Bool {
        ended.map { $0.seconds < received.seconds } ?? false
    }

    /// The work that a crash is counted for.
    package var work: CrashCounts.Kind { state == .finishing ? .recordingEnd : .recording }

    /// The entry that a player would start from.
    package var entry: Entry { choice.entry }

    /// The number by which all nodes know it.
    package var number: String { Self.number(of: id) }

    package static func number(of id: String) -> String { String(id.prefix { $0 != "-" }) }

    /// Returns the id of the next part that a node records, given the ids of all that it has.
    package static func id(
        ofNextPartOf number: String, after known: some Sequence<String>
    ) -> String {
        let parts = known.filter { Self.number(of: $0) == number }.map { id in
            ExternalNumber.integer(id.dropFirst(number.count + 1), in: 2...ExternalNumber.largest)
                ?? 1
        }
        return parts.max().map { "\(number)-\($0.addingSaturated(1))" } ?? number
    }
}

// MARK: Records

extension RecordingOrder {
    /// The recording as a record; numbers are clamped to the ranges that can be read again.
    package var record: RecordingRecord {
        let largest = Int64(ExternalNumber.largest)
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
        record.isLeft = isLeft
        return record
    }

    /// Nil if the record has no valid order or state.
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
        isLeft = record.isLeft
    }
}
