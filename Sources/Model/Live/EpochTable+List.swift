package import DurableState
package import HLS
package import Posix
package import Store

extension EpochTable {
    /// The state of one list; survives restarts.
    package struct List: Sendable, Equatable {
        package var epoch = Epoch.first
        /// Media sequence numbers of the last window; `end` is exclusive.
        package var start = 0
        package var end = 0
        package var targetDuration = Interval.seconds(6)
        /// The start of each segment of the last window by number, in milliseconds since 1970;
        /// after a restart, of one segment only.
        var dates: [Int: Int] = [:]
        var discontinuitySequence = 0
        /// When the last reading was received.
        package var received = Moment(wall: WallTime(nanoseconds: 0))
        /// The initialization sections of the last window, with the names that their link paths
        /// contain.
        var sections: [LiveSection] = []
        /// The keys in force at the end of the last window.
        ///
        /// Not saved: after a restart, each key is revalidated once.
        var keysAtEdge = KeysAtEdge()
        /// The digest of the text with which it has ended; nil while it is live.
        package var ended: UInt64?
        /// True once a longer window was read from it: what its names meant is listed for long.
        ///
        /// Restored only where a name was given again.
        var isExtended = false
        /// The epoch in which names begin that are not known yet; nil as long as none was given again
        /// for another resource, while the list was extended.
        package var namesEpoch: Epoch?
        /// The number after the last segment of the first text of an earlier run that was read; nil
        /// if none was.
        ///
        /// Not saved.
        var storedEnd: Int?
        /// The list before its text was cut in its middle, or its origin began anew; nil while
        /// neither is likely.
        ///
        /// Not saved.
        var whole: Whole?

        /// What is known of a list before a text that may be cut.
        package struct Whole: Sendable, Equatable {
            /// The number after its last segment.
            let end: Int
            /// When its last text was received.
            let received: Moment
        }
    }
}

/// The part of a live list's state that survives restarts. Pure.
extension EpochTable.List {
    /// Forgets all dates but the last one, like a restart.
    mutating func forgetDates() {
        guard dates.count > 1, let last = dates.max(by: { $0.key < $1.key }) else { return }
        dates = [last.key: last.value]
    }

    package func record(of key: ObjectKey) -> LiveListRecord {
        var record = LiveListRecord(
            key: key.bytes, epoch: epoch.number, first: Int64(start), pastLast: Int64(end))
        record.targetDuration = targetDuration.nanoseconds
        record.discontinuity = Int64(discontinuitySequence)
        record.received = received.wall.nanoseconds
        record.dated = dates.max { $0.key < $1.key }.map {
            .init(number: Int64($0.key), date: Int64($0.value))
        }
        record.sections = sections.map { .init(number: Int64($0.number), name: $0.name) }
        record.ended = ended.map { Int64(bitPattern: $0) }
        record.namesEpoch = namesEpoch?.number
        return record
    }

    package init(_ record: LiveListRecord) {
        epoch = Epoch(number: record.epoch)
        start = Int(record.first)
        end = Int(record.pastLast)
        targetDuration = Interval(nanoseconds: record.targetDuration)
        discontinuitySequence = Int(record.discontinuity)
        received = Moment(wall: WallTime(nanoseconds: record.received))
        if let dated = record.dated {
            dates = [
                Int(dated.number): DateTime(milliseconds: Int(dated.date)).milliseconds
            ]
        }
        sections = record.sections.map { LiveSection(number: Int($0.number), name: $0.name) }
        ended = record.ended.map { UInt64(bitPattern: $0) }
        namesEpoch = record.namesEpoch.map { Epoch(number: $0) }
        isExtended = namesEpoch != nil
    }
}
