// The write queue: keeps the last change of each row, and commits them together on the state
// thread.
import Logging
import Posix
import Reactor
import Synchronization

/// The changes that wait for the next commit.
struct PendingChanges: Sendable {
    /// The limits of the queue, reached only while the disk accepts nothing; further changes are
    /// rejected and logged.
    static let mostChanges = 65_536
    static let mostBytes = 128 << 20

    private(set) var changes: [StateSlot: (number: UInt64, change: StateChange)] = [:]
    private var last: UInt64 = 0
    private(set) var bytes = 0
    /// True while a commit is scheduled on the thread.
    var isScheduled = false
    var isFailing = false
    var isClosed = false

    /// Adds a change, replacing an earlier one of the same row.
    ///
    /// - Returns: false if the queue is full.
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

    /// Removes and returns all changes, in the order in which their rows were first changed.
    mutating func takeAll() -> [StateChange] {
        let all = changes.values.sorted { $0.number < $1.number }.map(\.change)
        changes = [:]
        bytes = 0
        return all
    }

    /// Adds changes again that could not be written; newer changes of the same rows win.
    mutating func putBack(_ former: [StateChange]) {
        let newer = takeAll()
        for change in former + newer { _ = add(change) }
    }
}

extension StateDatabase {
    // MARK: Queueing

    /// Queues a record, which replaces the one with the same key; does not wait.
    package func put(_ record: some StateRecord) { enqueue(StateChange(record)) }

    /// Queues changes; does not wait.
    package func put(_ changes: [StateChange]) {
        for change in changes { enqueue(change) }
    }

    /// Queues the removal of the record with this key; does not wait.
    package func remove<Record: StateRecord>(_: Record.Type, key: [StateValue]) {
        enqueue(StateChange(removing: Record.self, key: key))
    }

    /// Queues the removal of an invalid row; that of a pin once the rest of the pin is written.
    func refuse(_ slot: StateSlot) {
        guard slot.table.name == PinRecord.table.name else {
            return enqueue(StateChange(slot: slot, values: nil))
        }
        refusedPins.withLock { _ = $0.insert(slot) }
    }

    /// Queues changes of pins and, behind them, the removal of the invalid rows that they do not
    /// replace.
    ///
    /// An invalid first row tells that the others are not what a former version has left. It stays
    /// until another one is in its place, also if the run ends before.
    package func putPins(_ changes: [StateChange]) {
        put(changes)
        let refused = refusedPins.withLock { slots in
            defer { slots = [] }
            return slots
        }
        for slot in refused.subtracting(changes.map(\.slot)) {
            enqueue(StateChange(slot: slot, values: nil))
        }
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

    /// Rejects and logs a change that could not be read back.
    private func admits(_ change: StateChange) -> Bool {
        guard let values = change.values, !change.slot.table.admits(values) else { return true }
        log.error(
            "state is too long and is not saved",
            metadata: [
                "table": "\(change.slot.table.name)", "bytes": "\(change.size)",
            ])
        return false
    }

    // MARK: Committing

    /// Writes records; blocks until they are synced.
    ///
    /// - Throws: errors of the disk or SQLite; nothing is changed then.
    package func keep(_ records: [any StateRecord]) throws(StateFault) {
        try keep(records.map { StateChange($0) })
    }

    /// Removes the record with this key; blocks until that is synced.
    package func erase<Record: StateRecord>(
        _: Record.Type, key: [StateValue]
    ) throws(StateFault) {
        try keep([StateChange(removing: Record.self, key: key)])
    }

    /// Writes several changes in one commit; blocks until they are synced.
    ///
    /// - Throws: errors of the disk or SQLite; nothing is changed then, and what was queued before
    ///   waits on.
    package func keep(_ changes: [StateChange]) throws(StateFault) {
        for change in changes where !admits(change) {
            throw .unusable("it is longer than any that is read again")
        }
        try commit(with: changes)
        for change in changes { forgetContents(of: change.slot.table.name) }
    }

    /// Writes the queued changes and `more`; blocks until they are synced.
    ///
    /// If the write fails, the queued changes are queued again, and `more` is dropped.
    func commit(with more: [StateChange] = []) throws(StateFault) {
        try committing.withLock { _ throws(StateFault) in
            let (queued, isClosed) = pending.withLock { ($0.takeAll(), $0.isClosed) }
            guard !queued.isEmpty || !more.isEmpty else { return }
            do {
                guard !isClosed else { throw StateFault.unusable("the daemon is stopping") }
                try write(queued + more)
            } catch {
                pending.withLock { $0.putBack(queued) }
                throw StateFault(error) { Self.probe(folder) }
            }
        }
    }

    /// Commits on the state thread; a failed commit is retried every second.
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
                    "state cannot be written; retrying every second",
                    metadata: ["error": "\(error)"])
            }
            loop.schedule(after: .seconds(1 as Int64)) { [weak self] loop in
                self?.commit(on: loop)
            }
        }
    }
}
