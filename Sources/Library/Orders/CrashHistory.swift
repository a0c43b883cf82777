// Ends crash loops: counts how often the daemon died just after a recording, a feed or a download began
// to run, so that one which may be the cause is not taken up for ever.
//
// An item is on probation for a minute from when it begins or is taken up again. What is on probation
// when the daemon dies counts one crash; a clean stop or a minute survived counts none. After two in a
// row the item starts paused, and a person decides.
package import DurableState
package import Logging
package import Posix
import Synchronization

/// The counts; pure.
package struct CrashCounts: Sendable, Equatable {
    /// An item that ran for this long did not bring the daemon down.
    static let probation = Interval.seconds(60 as Int64)
    /// So many crashes in a row are enough.
    package static let most = 2
    /// More items are not counted.
    private static let mostItems = 10_000

    private struct Trial: Sendable, Equatable {
        var crashes: Int
        var since: Monotonic
    }

    /// Of items that have not begun in this run.
    private var former: [String: Int] = [:]
    private var trials: [String: Trial] = [:]

    init() {}

    /// Reads what the former run left: what was on probation then has one crash more.
    init(_ records: [CrashRecord]) {
        for record in records.prefix(Self.mostItems) {
            let crashes = record.crashes + (record.isRunning ? 1 : 0)
            former[record.item] = min(Self.most, max(0, crashes))
        }
    }

    /// For the next run.
    package var records: [CrashRecord] {
        trials.map { CrashRecord(item: $0.key, crashes: $0.value.crashes, isRunning: true) }
            + former.filter { $0.value > 0 }
            .map { CrashRecord(item: $0.key, crashes: $0.value, isRunning: false) }
    }

    /// What has to change where `before` is kept.
    package func changes(since before: CrashCounts) -> [StateChange] {
        let kept = Dictionary(before.records.map { ($0.item, $0) }, uniquingKeysWith: { $1 })
        let now = Dictionary(records.map { ($0.item, $0) }, uniquingKeysWith: { $1 })
        return now.values.filter { kept[$0.item] != $0 }.map { StateChange($0) }
            + kept.keys.filter { now[$0] == nil }.map {
                StateChange(removing: CrashRecord.self, key: [.text($0)])
            }
    }

    package var isEmpty: Bool { trials.isEmpty && former.isEmpty }

    /// Crashes in a row in which an item was on probation, before this run.
    package func crashes(of item: String) -> Int { former[item] ?? 0 }

    /// An item begins to run; it keeps the crashes that are counted against it.
    package mutating func begins(_ item: String, at now: Monotonic) {
        guard trials[item] == nil, trials.count < Self.mostItems else { return }
        trials[item] = Trial(crashes: former.removeValue(forKey: item) ?? 0, since: now)
    }

    /// An item does not run any more, or is judged by a person: nothing is counted against it.
    package mutating func forget(_ item: String) {
        former[item] = nil
        trials[item] = nil
    }

    /// Ends the probation of what has run for long enough, and with it what is counted.
    ///
    /// - Returns: whether anything changed.
    package mutating func settle(at now: Monotonic) -> Bool {
        let before = trials.count
        trials = trials.filter { now - $0.value.since < Self.probation }
        return trials.count != before
    }
}

/// The counts and their records; any thread may use it.
package final class CrashHistory: Sendable {
    /// What is counted.
    package enum Kind: String {
        case download
        case recording
        case feed
    }

    private struct State {
        var counts: CrashCounts
        var isOver = false
    }

    private let state: Mutex<State>
    private let database: StateDatabase
    private let log: Logger

    /// Blocks on the disk.
    package init(_ database: StateDatabase, log: Logger) {
        self.database = database
        self.log = log
        let kept = database.records(CrashRecord.self)
        let counts = CrashCounts(kept)
        state = Mutex(State(counts: counts))
        // What was running then waits now; later changes are told from what is kept.
        let waiting = counts.records.filter { !kept.contains($0) }
        if !waiting.isEmpty { try? database.keep(waiting.map { StateChange($0) }) }
    }

    /// Whether an item is to start paused, and why; logs it.
    package func verdict(on kind: Kind, _ id: String) -> String? {
        let crashes = state.withLock { $0.counts.crashes(of: Self.name(kind, id)) }
        guard crashes >= CrashCounts.most else { return nil }
        let reason =
            "the daemon crashed \(crashes) times in a row within a minute of starting it; resume it to try again"
        log.warning(
            "a \(kind.rawValue) starts paused", metadata: ["id": "\(id)", "reason": "\(reason)"])
        return reason
    }

    package func begins(_ kind: Kind, _ id: String) {
        change { $0.begins(Self.name(kind, id), at: .now()) }
    }

    package func forget(_ kind: Kind, _ id: String) {
        change { $0.forget(Self.name(kind, id)) }
    }

    /// To be called now and then.
    package func settle() {
        change { _ = $0.settle(at: .now()) }
    }

    /// The daemon stops as it was told to: nothing counts.
    package func endCleanly() {
        change { $0 = CrashCounts() }
        state.withLock { $0.isOver = true }
    }

    private static func name(_ kind: Kind, _ id: String) -> String { "\(kind.rawValue):\(id)" }

    /// Changes the counts and writes them where they changed; blocks on the disk then.
    private func change(_ body: (inout CrashCounts) -> Void) {
        state.withLock { state in
            guard !state.isOver else { return }
            let before = state.counts
            body(&state.counts)
            guard state.counts != before else { return }
            // What cannot be written counts no crash: the item is taken up as before.
            try? database.keep(state.counts.changes(since: before))
        }
    }
}
