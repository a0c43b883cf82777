// A pin on the disk: a long one has several rows, so that a change of it writes little.
import DurableState
import Posix

/// The rows of a pin.
///
/// The first has the number of its title. The upper 16 bits of the others' numbers, which titles do
/// not use, tell which part of the keys they hold.
struct PinRows: Equatable, Sendable {
    /// The most keys of a row, 64 KiB of them.
    static let mostKeys = 2_048
    /// The bits of a title's number.
    private static let bits: UInt64 = 48
    private static let titles: UInt64 = 0xFFFF_FFFF_FFFF

    /// One more than the highest part on the disk.
    let count: Int
    /// False if some part has fewer or more keys than it would be written with, as after damage or
    /// a former version.
    var isRegular: Bool

    /// The rows that a number of keys is written as.
    init(keys: Int) {
        count = max(1, (keys + Self.mostKeys - 1) / Self.mostKeys)
        isRegular = true
    }

    /// Those that were read of one title, in the order of their numbers.
    fileprivate init(_ rows: [PinRecord]) {
        let parts = rows.last.map { Int($0.title >> Self.bits) + 1 } ?? 0
        let lengths = rows.map { $0.keys.count / PinRecord.keyLength }
        let areFull = lengths.dropLast().allSatisfy { $0 == Self.mostKeys }
        isRegular = parts == rows.count && areFull && (lengths.last ?? 0) <= Self.mostKeys
        count = parts
    }

    /// The number of a part's row.
    private static func number(_ part: Int, of title: UInt64) -> UInt64 {
        title | UInt64(part) << bits
    }

    /// A pin as it was read.
    struct Found {
        let pin: Pin
        let rows: PinRows
        /// False if the row with the number of the title is missing.
        let hasFirst: Bool
        /// The numbers of its rows.
        let numbers: [UInt64]
    }

    /// Joins rows to pins, in any order.
    static func pins(in records: [PinRecord]) -> [Found] {
        Dictionary(grouping: records, by: { $0.title & titles }).map { title, parts in
            let parts = parts.sorted { $0.title < $1.title }
            let pin = Pin(
                title: title, url: parts.first?.url ?? "",
                since: WallTime(seconds: parts.first?.since ?? 0), keys: parts.flatMap(keys(of:)))
            return Found(
                pin: pin, rows: PinRows(parts), hasFirst: parts.first?.title == title,
                numbers: parts.map(\.title))
        }
    }

    private static func keys(of record: PinRecord) -> [ObjectKey] {
        stride(from: 0, to: record.keys.count, by: PinRecord.keyLength).compactMap {
            ObjectKey(bytes: Array(record.keys[$0...].prefix(PinRecord.keyLength)))
        }
    }

    /// Writes the parts of a pin from one on, and removes those of before that it has no more.
    static func changes(
        to pin: Pin, from first: Int = 0, former: PinRows? = nil
    ) -> [StateChange] {
        let count = PinRows(keys: pin.keys.count).count
        let written = (first..<max(first, count)).map { part in
            let keys = pin.keys.dropFirst(part * mostKeys).prefix(mostKeys)
            return StateChange(
                PinRecord(
                    title: number(part, of: pin.title), url: part == 0 ? pin.url : "",
                    since: pin.since.seconds, keys: keys.flatMap(\.bytes)))
        }
        return written + removals(of: pin.title, count..<max(count, former?.count ?? 0))
    }

    /// Removes some parts of a title's pin.
    static func removals(of title: UInt64, _ parts: Range<Int>) -> [StateChange] {
        parts.map { part in
            let number = number(part, of: title)
            return StateChange(
                removing: PinRecord.self, key: [.integer(Int64(bitPattern: number))])
        }
    }
}

extension Pin {
    /// Returns the pin with the keys that another pin of the same title has beside those of this
    /// one; nil if that one lacks some, or has another URL.
    func grown(to other: Pin) -> Pin? {
        let known = Set(keys)
        guard url == other.url, known.isSubset(of: Set(other.keys)) else { return nil }
        return Pin(
            title: title, url: url, since: since,
            keys: keys + other.keys.filter { !known.contains($0) })
    }
}
