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
    /// Makes some purges at once, or one other change; `done` tells whether they were accepted, or will
    /// never be.
    package typealias Handler =
        @Sendable (_ changes: [SharedChange], _ done: @escaping @Sendable (Bool) -> Void) -> Void

    /// The name of this run.
    private let node = String(UInt64.random(in: 0...UInt64.max), radix: 16)
    private let state: StateDatabase
    private let log: Logger
    private let unwritten = Atomic<Int>(0)
    /// The latest time of a pin or unpin that was made here or is followed, in nanoseconds.
    private let latestPin = Atomic<Int64>(0)

    /// For a daemon, or for a process that changes the folder while none runs: the next start
    /// publishes what it has saved.
    package init(_ state: StateDatabase, log: Logger) {
        self.state = state
        self.log = log
    }

    /// Returns the changes that an earlier run has not written.
    func restored() -> [SharedChange] {
        let changes = state.records(NodeChangeRecord.self).compactMap { record in
            let change = SharedChange(name: record.name, text: Array(record.text.utf8))
            if change == nil { state.remove(NodeChangeRecord.self, key: record.key) }
            return change
        }
        unwritten.add(changes.count, ordering: .relaxed)
        return changes
    }

    /// Notes a change that was made here, or is followed.
    func note(_ change: SharedChange) {
        guard !change.isPurge else { return }
        latestPin.max(change.given.nanoseconds, ordering: .relaxed)
    }

    /// The time of a pin or unpin that is made now.
    ///
    /// All nodes repeat these in the order of their times, and again after a restart: one that
    /// follows another is later, also by the clock of a node that is ahead.
    private func timeOfPin(at now: WallTime) -> WallTime {
        let before = latestPin.load(ordering: .relaxed)
        return max(now, WallTime(nanoseconds: before.addingSaturated(1)))
    }

    /// Saves a change that was carried out here, before it is confirmed; blocks until it is synced.
    ///
    /// If the disk refuses, it is logged, and the change is saved once the disk accepts it.
    ///
    /// - Returns: nil for a request that concerns this node alone.
    @discardableResult
    package func saved(path: String, query: String, now: WallTime) -> SharedChange? {
        // A purge concerns what was stored before its time, and keeps it.
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
