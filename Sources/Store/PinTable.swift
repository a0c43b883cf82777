// The pins of a store, kept in the state database, so that they survive the loss of the index.
import DurableState
import Posix
import Synchronization

/// The pins in memory and on disk.
///
/// Thread-safe.
final class PinTable: Sendable {
    private let database: StateDatabase
    private let table: Mutex<Table>
    /// The pins by title, and how many of them name each object.
    private struct Table {
        private(set) var pins: [UInt64: Pin] = [:]
        private var namings: [ObjectKey: Int] = [:]

        /// Replaces or removes a pin; returns the keys that it named before and none names now.
        @discardableResult
        mutating func set(_ pin: Pin?, for title: UInt64) -> [ObjectKey] {
            let former = pins[title]?.keys ?? []
            for key in former {
                let count = namings[key, default: 1] - 1
                namings[key] = count > 0 ? count : nil
            }
            pins[title] = pin
            for key in pin?.keys ?? [] { namings[key, default: 0] += 1 }
            return former.filter { namings[$0] == nil }
        }

        func names(_ key: ObjectKey) -> Bool { namings[key] != nil }
    }

    /// Held during a change, so that memory and disk are changed in the same order.
    private let writing = Mutex<Void>(())

    /// Reads the pins; blocks on the disk.
    init(_ database: StateDatabase) {
        self.database = database
        let found = database.records(PinRecord.self).map { Pin($0) }
        var table = Table()
        for pin in found { table.set(pin, for: pin.title) }
        self.table = Mutex(table)
    }

    var all: [Pin] { table.withLock { $0.pins.values.sorted { $0.since < $1.since } } }

    var count: Int { table.withLock { $0.pins.count } }

    /// The pin of a title; nil if it is not pinned.
    func pin(of title: UInt64) -> Pin? { table.withLock { $0.pins[title] } }

    /// True if an object belongs to a pinned title, or a pin names it.
    func holds(_ key: ObjectKey, ofTitle title: UInt64) -> Bool {
        table.withLock { (title != 0 && $0.pins[title] != nil) || $0.names(key) }
    }

    /// Adds or replaces a pin; blocks until it is on the disk.
    ///
    /// - Returns: the keys that the pin named before, and that none names now.
    func add(_ pin: Pin) throws(StateFault) -> [ObjectKey] {
        try writing.withLock { _ throws(StateFault) -> [ObjectKey] in
            try database.keep([pin.record])
            return table.withLock { $0.set(pin, for: pin.title) }
        }
    }

    /// Removes a pin and makes other changes in the same commit; blocks until that is on the disk.
    ///
    /// - Returns: the keys that it named, and that none names now; nil if the title was not pinned.
    func remove(
        _ title: UInt64, with others: [StateChange]
    ) throws(StateFault) -> [ObjectKey]? {
        try writing.withLock { _ throws(StateFault) -> [ObjectKey]? in
            let isPinned = table.withLock { $0.pins[title] != nil }
            let removal = StateChange(
                removing: PinRecord.self, key: [.integer(Int64(bitPattern: title))])
            let changes = (isPinned ? [removal] : []) + others
            guard !changes.isEmpty else { return nil }
            try database.keep(changes)
            let unnamed = table.withLock { $0.set(nil, for: title) }
            return isPinned ? unnamed : nil
        }
    }
}

extension Pin {
    var record: PinRecord {
        PinRecord(title: title, url: url, since: since.seconds, keys: keys.flatMap(\.bytes))
    }

    init(_ record: PinRecord) {
        let keys = stride(from: 0, to: record.keys.count, by: PinRecord.keyLength).compactMap {
            ObjectKey(bytes: Array(record.keys[$0...].prefix(PinRecord.keyLength)))
        }
        self.init(
            title: record.title, url: record.url, since: WallTime(seconds: record.since),
            keys: keys)
    }
}
