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
        private(set) var namings: [ObjectKey: Int] = [:]
        /// The rows of each pin on the disk.
        private(set) var rows: [UInt64: PinRows] = [:]
        /// The file of the database that they are in.
        var file: FileIdentity?

        /// Notes which file is written to now: one that has replaced another may lack rows.
        mutating func note(_ file: FileIdentity?) {
            guard file != self.file else { return }
            self.file = file
            for title in rows.keys { rows[title]?.isRegular = false }
        }

        /// Replaces or removes a pin; returns the keys that it named before and none names now.
        @discardableResult
        mutating func set(_ pin: Pin?, _ rows: PinRows?, for title: UInt64) -> [ObjectKey] {
            self.rows[title] = rows
            let former = pins[title]?.keys ?? []
            for key in former {
                let count = namings[key, default: 1] - 1
                namings[key] = count > 0 ? count : nil
            }
            pins[title] = pin
            for key in pin?.keys ?? [] { namings[key, default: 0] += 1 }
            return former.filter { namings[$0] == nil }
        }

        /// Replaces a pin by one that has more keys behind the same ones.
        mutating func extend(to pin: Pin) {
            let known = pins[pin.title]?.keys.count ?? 0
            pins[pin.title] = pin
            rows[pin.title] = PinRows(keys: pin.keys.count)
            for key in pin.keys.dropFirst(known) { namings[key, default: 0] += 1 }
        }

        /// How many pins name an object.
        func count(naming key: ObjectKey) -> Int { namings[key, default: 0] }
    }

    /// Held during a change, so that memory and disk are changed in the same order.
    private let writing = Mutex<Void>(())

    /// Reads the pins; blocks on the disk.
    ///
    /// A former version takes each row for a pin, and removes only the first one of a pin with it:
    /// the others are no pin then, unless the first one may have been lost.
    init(_ database: StateDatabase) {
        self.database = database
        var table = Table(file: database.file)
        let found = PinRows.pins(in: database.records(PinRecord.self))
        var changes: [StateChange] = []
        let areLost = found.contains { !$0.hasFirst } && database.mayLackRows
        for item in found {
            guard item.hasFirst || areLost else {
                for number in item.numbers {
                    database.remove(PinRecord.self, key: [.integer(Int64(bitPattern: number))])
                }
                continue
            }
            table.set(item.pin, item.rows, for: item.pin.title)
            // The next run is not to take them for what a former version has left.
            if !item.hasFirst { changes += PinRows.changes(to: item.pin, former: item.rows) }
        }
        database.putPins(changes)
        self.table = Mutex(table)
    }

    var all: [Pin] {
        // Sorted outside of the lock, for which eviction waits.
        table.withLock { Array($0.pins.values) }.sorted { $0.since < $1.since }
    }

    var count: Int { table.withLock { $0.pins.count } }

    /// The pin of a title; nil if it is not pinned.
    func pin(of title: UInt64) -> Pin? { table.withLock { $0.pins[title] } }

    /// True if an object belongs to a pinned title, or a pin names it.
    func holds(_ key: ObjectKey, ofTitle title: UInt64) -> Bool {
        table.withLock { (title != 0 && $0.pins[title] != nil) || $0.count(naming: key) > 0 }
    }

    /// How many pins name an object.
    func count(naming key: ObjectKey) -> Int { table.withLock { $0.count(naming: key) } }

    /// Adds or replaces a pin; blocks until it is on the disk.
    ///
    /// Of a long one that only gets more keys, the end is written; it keeps its place among the
    /// others.
    ///
    /// - Returns: the keys that the pin named before, and that none names now.
    func add(_ pin: Pin) throws(StateFault) -> [ObjectKey] {
        try writing.withLock { _ throws(StateFault) -> [ObjectKey] in
            let file = database.file
            let (former, rows) = table.withLock { table -> (Pin?, PinRows?) in
                table.note(file)
                return (table.pins[pin.title], table.rows[pin.title])
            }
            if let former, let rows, rows.isRegular, rows.count > 1,
                let grown = former.grown(to: pin)
            {
                let first = former.keys.count / PinRows.mostKeys
                try database.keep(PinRows.changes(to: grown, from: first))
                if database.file == file {
                    table.withLock { $0.extend(to: grown) }
                    return []
                }
                // The write found damage, and the rows before the end may be lost.
            }
            try database.keep(PinRows.changes(to: pin, former: rows))
            return table.withLock {
                $0.set(pin, PinRows(keys: pin.keys.count), for: pin.title)
            }
        }
    }

    /// Removes a pin and makes other changes in the same commit; blocks until that is on the disk.
    ///
    /// - Returns: the keys that it named, and that none names now; nil if the title was not pinned.
    func remove(
        _ title: UInt64, with others: [StateChange]
    ) throws(StateFault) -> [ObjectKey]? {
        try writing.withLock { _ throws(StateFault) -> [ObjectKey]? in
            let rows = table.withLock { $0.rows[title] }
            let changes = PinRows.removals(of: title, 0..<(rows?.count ?? 0)) + others
            guard !changes.isEmpty else { return nil }
            try database.keep(changes)
            let unnamed = table.withLock { $0.set(nil, nil, for: title) }
            return rows == nil ? nil : unnamed
        }
    }
}
