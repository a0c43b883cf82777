package import DurableState
import HLS
import Posix
package import Store

/// The part of a live list's state that survives restarts. Pure.
extension EpochTable.List {
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
    }
}
