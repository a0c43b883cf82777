package import DurableState
package import Logging
import Numbers
package import Posix
package import SharedStore
import Synchronization

/// Purges and pins that this node has accepted and the shared store does not have yet.
///
/// Can be used from any thread.
package final class NodeChanges: Sendable {
    /// Applies several purges at once, or one other change; `done` gets false if they are to be
    /// tried again.
    package typealias Handler =
        @Sendable (_ changes: [SharedChange], _ done: @escaping @Sendable (Bool) -> Void) -> Void

    /// The name of this run.
    private let node = String(UInt64.random(in: 0...UInt64.max), radix: 16)
    private let state: StateDatabase
    private let log: Logger
    private let unwritten = Atomic<Int>(0)
    /// The latest time of a pin or unpin that was made here or is followed, in nanoseconds; also of
    /// earlier runs.
    private let latestPin = Mutex<Int64>(0)
    /// What an earlier run has not written, until it is taken.
    private let unsent: Mutex<[SharedChange]>

    /// For a daemon, or for a process that changes the folder while none runs: the next start
    /// publishes what it has saved.
    package init(_ state: StateDatabase, log: Logger) {
        self.state = state
        self.log = log
        var latest: Int64 = 0
        var changes: [SharedChange] = []
        for record in state.records(NodeChangeRecord.self) {
            if let time = record.latestPin {
                // No pin could be made after a later one; the next pin replaces this row.
                guard time < SharedChange.latest.nanoseconds else { continue }
                latest = max(latest, time)
            } else if let change = SharedChange(
                name: record.name, text: Array(record.text.utf8))
            {
                if !change.isPurge { latest = max(latest, change.given.nanoseconds) }
                changes.append(change)
            } else {
                state.remove(NodeChangeRecord.self, key: record.key)
            }
        }
        unsent = Mutex(changes)
        unwritten.add(changes.count, ordering: .relaxed)
        latestPin.withLock { $0 = latest }
    }

    /// Returns the changes that an earlier run has not written; nothing the next time.
    func restored() -> [SharedChange] {
        unsent.withLock { changes in
            defer { changes = [] }
            return changes
        }
    }

    /// Notes a change that was made here, or is followed.
    ///
    /// The time of a pin is saved: a command that unpins while no daemon runs knows the pins of
    /// other nodes by it.
    func note(_ change: SharedChange) {
        guard !change.isPurge else { return }
        let time = change.given.nanoseconds
        latestPin.withLock { latest in
            guard time > latest else { return }
            latest = time
            state.put(NodeChangeRecord(latestPin: time))
        }
    }

    /// Returns the time of a pin or unpin that is made now.
    ///
    /// All nodes repeat pins in the order of their times, and again after a restart. So the time is
    /// later than that of every earlier pin, even if another node's clock is ahead.
    private func timeOfPin(at now: WallTime) -> WallTime {
        let before = latestPin.withLock { $0 }
        return max(now, WallTime(nanoseconds: before.addingSaturated(1)))
    }

    /// Saves a change that was carried out here, before it is confirmed; blocks until it is synced.
    ///
    /// If the disk refuses, it is logged, and the change is saved once the disk accepts it.
    ///
    /// - Returns: nil for a request that concerns this node alone.
    @discardableResult
    package func saved(path: String, query: String, now: WallTime) -> SharedChange? {
        // A purge concerns what was stored before its time, so that it keeps the present one.
        let given = path == "/api/purge" ? now : timeOfPin(at: now)
        guard let change = SharedChange(path: path, query: query, given: given, node: node) else {
            return nil
        }
        note(change)
        // More are not restored, and are lost if the store is not back before this run ends.
        guard unwritten.add(1, ordering: .relaxed).newValue <= NodeChangeRecord.most else {
            return change
        }
        let record = NodeChangeRecord(
            name: change.name, text: String(decoding: change.text, as: UTF8.self))
        do {
            try state.keep([record])
        } catch {
            log.error(
                "a purge or pin for the other nodes is not saved yet; a crash would lose it",
                metadata: ["error": "\(error)"])
            state.put(record)
        }
        return change
    }

    /// Notes that the shared store has a change.
    func wrote(_ change: SharedChange) {
        unwritten.subtract(1, ordering: .relaxed)
        state.remove(NodeChangeRecord.self, key: [.text(change.name)])
    }
}
