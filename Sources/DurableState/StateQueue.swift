// Writing without waiting: changes are queued, the last one of each row counts, and the thread of the
// state commits them together.
import Logging
import Posix
import Reactor
import Synchronization

/// The place of a row.
struct StateSlot: Hashable, Sendable {
    let table: StateTable
    let key: [StateValue]

    static func == (one: Self, other: Self) -> Bool {
        one.table.name == other.table.name && one.key == other.key
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(table.name)
        hasher.combine(key)
    }
}

/// A row as it is to be; nil removes it.
package struct StateChange: Sendable {
    let slot: StateSlot
    let values: [StateValue]?

    init(slot: StateSlot, values: [StateValue]?) {
        self.slot = slot
        self.values = values
    }

    /// Keeps a record, in the place of the one with the same key.
    package init<Record: StateRecord>(_ record: Record) {
        let values = record.values
        self.init(
            slot: StateSlot(table: Record.table, key: Record.table.key(of: values)), values: values)
    }

    /// Removes the record with this key.
    package init<Record: StateRecord>(removing _: Record.Type, key: [StateValue]) {
        self.init(slot: StateSlot(table: Record.table, key: key), values: nil)
    }

    var size: Int { (values ?? slot.key).reduce(64) { $0 + $1.size } }
}

/// What waits for the next commit.
struct PendingChanges: Sendable {
    /// The disk takes nothing then: what comes is refused, which the log tells.
    static let mostChanges = 65_536
    static let mostBytes = 128 << 20

    private(set) var changes: [StateSlot: (number: UInt64, change: StateChange)] = [:]
    private var last: UInt64 = 0
    private(set) var bytes = 0
    /// Whether the thread is about to commit.
    var isScheduled = false
    var isFailing = false
    var isClosed = false

    /// - Returns: false where there is no room.
    mutating func add(_ change: StateChange) -> Bool {
        let size = change.size
        let former = changes[change.slot]
        let bytes = bytes - (former?.change.size ?? 0) + size
        guard former != nil || changes.count < Self.mostChanges, bytes <= Self.mostBytes else {
            return false
        }
        self.bytes = bytes
        last += 1
        changes[change.slot] = (former?.number ?? last, change)
        return true
    }

    /// All of them, in the order in which their rows were first changed.
    mutating func takeAll() -> [StateChange] {
        let all = changes.values.sorted { $0.number < $1.number }.map(\.change)
        changes = [:]
        bytes = 0
        return all
    }

    /// Takes back what could not be written, where nothing newer came meanwhile.
    mutating func putBack(_ former: [StateChange]) {
        let newer = takeAll()
        for change in former + newer { _ = add(change) }
    }

    mutating func remove(_ slots: [StateSlot]) {
        for slot in slots {
            guard let removed = changes.removeValue(forKey: slot) else { continue }
            bytes -= removed.change.size
        }
    }
}

extension StateDatabase {
    // MARK: Queueing

    /// Keeps a record, in the place of the one with the same key; does not wait.
    package func put(_ record: some StateRecord) { enqueue(StateChange(record)) }

    /// Removes the record with this key; does not wait.
    package func remove<Record: StateRecord>(_: Record.Type, key: [StateValue]) {
        enqueue(StateChange(removing: Record.self, key: key))
    }

    func enqueue(_ change: StateChange) {
        guard admits(change) else { return }
        let (isTaken, mustWake) = pending.withLock { pending -> (Bool, Bool) in
            guard !pending.isClosed else { return (true, false) }
            guard pending.add(change) else { return (false, false) }
            defer { pending.isScheduled = true }
            return (true, !pending.isScheduled)
        }
        forgetContents(of: change.slot.table.name)
        if !isTaken {
            log.error(
                """
                state is lost: too much of it waits for the disk, which takes nothing; make room or \
                look after the disk
                """, metadata: ["table": "\(change.slot.table.name)"])
        }
        if mustWake { thread.handle.enqueue { [weak self] loop in self?.commit(on: loop) } }
    }

    /// What could not be read again is not written.
    private func admits(_ change: StateChange) -> Bool {
        guard let values = change.values, !change.slot.table.admits(values) else { return true }
        log.error(
            "state is not kept, since it is longer than any that is read again",
            metadata: [
                "table": "\(change.slot.table.name)", "bytes": "\(change.size)",
            ])
        return false
    }

    // MARK: Committing

    /// Keeps records and removes others; blocks until that is on the disk.
    ///
    /// Throws what the disk or SQLite says; then nothing is changed.
    package func keep(_ records: [any StateRecord]) throws(StateFault) {
        try keep(records.map { StateChange($0) })
    }

    /// Removes the record with this key; blocks until that is on the disk.
    package func erase<Record: StateRecord>(
        _: Record.Type, key: [StateValue]
    ) throws(StateFault) {
        try keep([StateChange(removing: Record.self, key: key)])
    }

    /// Makes several changes at once; blocks until they are on the disk.
    ///
    /// - Throws: what the disk or SQLite says; then nothing is changed.
    package func keep(_ changes: [StateChange]) throws(StateFault) {
        for change in changes where !admits(change) {
            throw .unusable("it is longer than any that is read again")
        }
        let isTaken = pending.withLock { pending in
            !pending.isClosed && changes.allSatisfy { pending.add($0) }
        }
        do throws(StateFault) {
            guard isTaken else { throw .unusable("too much waits for the disk") }
            try commit()
        } catch {
            pending.withLock { $0.remove(changes.map(\.slot)) }
            throw error
        }
        for change in changes { forgetContents(of: change.slot.table.name) }
    }

    /// Writes what is queued; blocks until it is on the disk.
    func commit() throws(StateFault) {
        try committing.withLock { _ throws(StateFault) in
            let batch = pending.withLock { $0.takeAll() }
            guard !batch.isEmpty else { return }
            do {
                try write(batch)
            } catch {
                pending.withLock { $0.putBack(batch) }
                throw StateFault(error)
            }
        }
    }

    /// On the thread of the state; what the disk refuses is tried again each second.
    private func commit(on loop: EventLoop) {
        pending.withLock { $0.isScheduled = false }
        do {
            try commit()
            pending.withLock { $0.isFailing = false }
        } catch {
            let isNews = pending.withLock { pending in
                defer { (pending.isFailing, pending.isScheduled) = (true, true) }
                return !pending.isFailing
            }
            if isNews {
                log.error(
                    "state cannot be written, and is tried again each second",
                    metadata: ["error": "\(error)"])
            }
            loop.schedule(after: .seconds(1 as Int64)) { [weak self] loop in
                self?.commit(on: loop)
            }
        }
    }
}
