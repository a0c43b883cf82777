// The pins of a store, kept in the state database, so that they survive the loss of the index.
import DurableState
import Posix
import Synchronization

/// The pins in memory and on disk.
///
/// Thread-safe.
final class PinTable: Sendable {
    private let database: StateDatabase
    private let pins: Mutex<[UInt64: Pin]>
    /// Held during a change, so that memory and disk are changed in the same order.
    private let writing = Mutex<Void>(())

    /// Reads the pins; blocks on the disk.
    init(_ database: StateDatabase) {
        self.database = database
        let found = database.records(PinRecord.self).map { Pin($0) }
        pins = Mutex(Dictionary(found.map { ($0.title, $0) }, uniquingKeysWith: { $1 }))
    }

    var all: [Pin] { pins.withLock { $0.values.sorted { $0.since < $1.since } } }

    var count: Int { pins.withLock { $0.count } }

    /// Adds or replaces a pin; blocks until it is on the disk.
    func add(_ pin: Pin) throws(StateFault) {
        try writing.withLock { _ throws(StateFault) in
            try database.keep([pin.record])
            pins.withLock { $0[pin.title] = pin }
        }
    }

    /// Removes a pin and makes other changes in the same commit; blocks until that is on the disk.
    ///
    /// - Returns: false if the title was not pinned.
    func remove(_ title: UInt64, with others: [StateChange]) throws(StateFault) -> Bool {
        try writing.withLock { _ throws(StateFault) in
            let isPinned = pins.withLock { $0[title] != nil }
            let removal = StateChange(
                removing: PinRecord.self, key: [.integer(Int64(bitPattern: title))])
            let changes = (isPinned ? [removal] : []) + others
            guard !changes.isEmpty else { return false }
            try database.keep(changes)
            pins.withLock { $0[title] = nil }
            return isPinned
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
