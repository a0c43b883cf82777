package import DurableState
import Glibc
package import Logging
import Posix
import Synchronization

/// The crash counts and their records; can be used from any thread.
///
/// The file `running` in the cache folder tells a crash from a clean stop: it is created with the
/// first record, and a clean stop removes it. On a full disk a file can be removed, while records
/// cannot be changed.
package final class CrashHistory: Sendable {
    struct State {
        var counts: CrashCounts
        /// The records in the database.
        var saved: [CrashRecord]
        var isOver = false
    }

    let state: Mutex<State>
    private let database: StateDatabase
    private let log: Logger
    private var runningPath: String { database.folder + "/running" }

    /// Blocks on the disk.
    package init(_ database: StateDatabase, log: Logger) {
        self.database = database
        self.log = log
        let saved = database.records(CrashRecord.self)
        let wasStopped = access(database.folder + "/running", F_OK) != 0 && errno == ENOENT
        let counts = wasStopped ? CrashCounts() : CrashCounts(saved)
        state = Mutex(State(counts: counts, saved: saved))
        // Saves the crashes added above.
        state.withLock { _ = save(&$0) }
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
            try? removeFile(runningPath)
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
        guard save(&state), !state.saved.isEmpty else { return }
        _ = try? openFile(runningPath, flags: O_RDWR | O_CREAT)
    }

    /// Writes what differs from the database, also after failed writes; blocks on the disk.
    ///
    /// - Returns: false if the write failed.
    private func save(_ state: inout State) -> Bool {
        let changes = state.counts.changes(since: state.saved)
        guard !changes.isEmpty else { return true }
        do throws(StateFault) {
            try database.keep(changes)
        } catch {
            return false
        }
        state.saved = state.counts.records
        return true
    }
}
