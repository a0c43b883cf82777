// Ends crash loops: counts how often the daemon crashed just after a recording, a feed or a
// download was started, so that an item that may be the cause is not restarted forever.
//
// An item is on probation for a minute after it starts or is resumed. If the daemon crashes, one
// crash is counted for each item on probation; a clean stop or surviving the minute resets the
// count. After two crashes in a row the item starts paused, until a user resumes it.
package import DurableState
package import Posix

/// The crash counts, without I/O.
package struct CrashCounts: Sendable, Equatable {
    /// The kinds of items.
    package enum Kind: String {
        case download
        case recording
        /// The end of a recording.
        ///
        /// Crashes of the recording do not count for it: it is other work, and a recording that its
        /// user has stopped must end.
        case recordingEnd = "recording-end"
        case feed

        /// The item in the log.
        var noun: String {
            self == .recordingEnd ? Self.recording.rawValue : rawValue
        }
    }

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

    /// Returns the changes that turn the stored records `before` into those for the next run.
    package func changes(since before: [CrashRecord]) -> [StateChange] {
        let kept = Dictionary(before.map { ($0.item, $0) }, uniquingKeysWith: { $1 })
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
