// Ends crash loops: counts how often the daemon crashed just after a recording, a feed or a
// download was started, so that an item that may be the cause is not restarted forever.
//
// An item is on probation for a minute after it starts or is resumed. If the daemon crashes, one
// crash is counted for each item on probation; a clean stop or surviving the minute resets the
// count. After two crashes in a row the item starts paused, until a user resumes it.
package import DurableState
package import Logging
package import Posix
import Synchronization

/// The crash counts, without I/O.
package struct CrashCounts: Sendable, Equatable {
    /// An item that has run for this long is not the cause of a crash.
    static let probation = Interval.seconds(60 as Int64)
    /// The crashes in a row after which an item starts paused.
    package static let most = 2
    /// The most items that are counted.
    private static let mostItems = 10_000

    private struct Trial: Sendable, Equatable {
        var crashes: Int
        var since: Monotonic
    }

    /// The counts of items that have not started in this run.
    private var former: [String: Int] = [:]
    private var trials: [String: Trial] = [:]

    init() {}

    /// Restores the counts of the previous run: items on probation then get one more crash.
    init(_ records: [CrashRecord]) {
        for record in records.prefix(Self.mostItems) {
            let crashes = record.crashes + (record.isRunning ? 1 : 0)
            former[record.item] = min(Self.most, max(0, crashes))
        }
    }

    /// The records for the next run.
    package var records: [CrashRecord] {
        trials.map { CrashRecord(item: $0.key, crashes: $0.value.crashes, isRunning: true) }
            + former.filter { $0.value > 0 }
            .map { CrashRecord(item: $0.key, crashes: $0.value, isRunning: false) }
    }

    /// Returns the changes to the stored records since `before`.
    package func changes(since before: CrashCounts) -> [StateChange] {
        let kept = Dictionary(before.records.map { ($0.item, $0) }, uniquingKeysWith: { $1 })
        let now = Dictionary(records.map { ($0.item, $0) }, uniquingKeysWith: { $1 })
        return now.values.filter { kept[$0.item] != $0 }.map { StateChange($0) }
            + kept.keys.filter { now[$0] == nil }.map {
                StateChange(removing: CrashRecord.self, key: [.text($0)])
            }
    }

    package var isEmpty: Bool { trials.isEmpty && former.isEmpty }

    /// Returns the number of crashes in a row before this run in which an item was on probation.
    package func crashes(of item: String) -> Int { former[item] ?? 0 }

    /// Starts an item's probation; its crashes stay counted.
    package mutating func begins(_ item: String, at now: Monotonic) {
        guard trials[item] == nil, trials.count < Self.mostItems else { return }
        trials[item] = Trial(crashes: former.removeValue(forKey: item) ?? 0, since: now)
    }

    /// Resets an item that has stopped, or that a user has handled.
    package mutating func forget(_ item: String) {
        former[item] = nil
        trials[item] = nil
    }

    /// Ends the probation of items that have run for long enough, and resets their counts.
    ///
    /// - Returns: true if anything changed.
    package mutating func endProbations(at now: Monotonic) -> Bool {
        let before = trials.count
        trials = trials.filter { now - $0.value.since < Self.probation }
        return trials.count != before
    }
}

/// The crash counts and their records; can be used from any thread.
package final class CrashHistory: Sendable {
    /// The kinds of items.
    package enum Kind: String {
        case download
        case recording
        /// The end of a recording, which crashes of before do not count for: it is other work, and
        /// what its user has stopped is to end.
        case recordingEnd = "recording-end"
        case feed

        /// The item in the log.
        fileprivate var noun: String {
            self == .recordingEnd ? Self.recording.rawValue : rawValue
        }
    }

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
    package func verdict(on kind: Kind, _ id: String) -> String? {
        let crashes = state.withLock { $0.counts.crashes(of: Self.name(kind, id)) }
        guard crashes >= CrashCounts.most else { return nil }
        let reason =
            "the daemon crashed \(crashes) times in a row within a minute of starting it; resume it to try again"
        log.warning(
            "a \(kind.noun) starts paused", metadata: ["id": "\(id)", "reason": "\(reason)"])
        return reason
    }

    package func begins(_ kind: Kind, _ id: String) {
        change { $0.begins(Self.name(kind, id), at: .now()) }
    }

    package func forget(_ kind: Kind, _ id: String) {
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

    private static func name(_ kind: Kind, _ id: String) -> String { "\(kind.rawValue):\(id)" }

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
