package import DurableState
package import Logging
import Posix
import Synchronization

/// The crash counts and their records; can be used from any thread.
package final class CrashHistory: Sendable {
    struct State {
        var counts: CrashCounts
        var isOver = false
    }

    let state: Mutex<State>
    private let database: StateDatabase
    private let log: Logger

    /// Blocks on the disk.
    package init(_ database: StateDatabase, log: Logger) {
        self.database = database
        self.log = log
        let kept = database.records(CrashRecord.self)
        let counts = CrashCounts(kept)
        state = Mutex(State(counts: counts))
        // Saves the crashes added above; later changes are computed against the saved records.
        let waiting = counts.records.filter { !kept.contains($0) }
        if !waiting.isEmpty { try? database.keep(waiting.map { StateChange($0) }) }
    }

    /// Returns the reason if an item is to start paused, otherwise nil; logs it.
    package func verdict(on kind: CrashCounts.Kind, _ id: String) -> String? {
        let crashes = state.withLock { $0.counts.crashes(of: Self.name(kind, id)) }
        guard crashes >= CrashCounts.most else { return nil }
        let reason =
            "the daemon crashed \(crashes) times in a row within a minute of starting it; resume it to try again"
        log.warning(
            "a \(kind.noun) starts paused", metadata: ["id": "\(id)", "reason": "\(reason)"])
        return reason
    }

    package func begins(_ kind: CrashCounts.Kind, _ id: String) {
        change { $0.begins(Self.name(kind, id), at: .now()) }
    }

    package func forget(_ kind: CrashCounts.Kind, _ id: String) {
        change { $0.forget(Self.name(kind, id)) }
    }

    /// Ends probations that are over; called periodically.
    package func endProbations() {
        change { _ = $0.endProbations(at: .now()) }
    }

    /// Resets all counts on a clean stop; no later change is saved.
    package func endCleanly() {
        // Under one lock: the item of a thread that waits for it would else be saved as running.
        state.withLock { state in
            change(&state) { $0 = CrashCounts() }
            state.isOver = true
        }
    }

    private static func name(_ kind: CrashCounts.Kind, _ id: String) -> String {
        "\(kind.rawValue):\(id)"
    }

    /// Changes the counts and saves them if they changed, blocking on the disk.
    private func change(_ body: (inout CrashCounts) -> Void) {
        state.withLock { change(&$0, body) }
    }

    private func change(_ state: inout State, _ body: (inout CrashCounts) -> Void) {
        guard !state.isOver else { return }
        let before = state.counts
        body(&state.counts)
        guard state.counts != before else { return }
        // A failed write counts no crash: the item is then restarted as before.
        try? database.keep(state.counts.changes(since: before))
    }
}
