// Ends crash loops: counts how often the daemon died just after a recording, a feed or a download began
// to run, so that one which may be the cause is not taken up for ever.
//
// An item is on probation for a minute from when it begins or is taken up again. What is on probation
// when the daemon dies counts one crash; a clean stop or a minute survived counts none. After two in a
// row the item starts paused, and a person decides.
import HTTP
package import Logging
import Numbers
package import Posix
import Synchronization

/// The counts; pure.
package struct CrashCounts: Sendable, Equatable {
    /// An item that ran for this long did not bring the daemon down.
    package static let probation = Interval.seconds(60 as Int64)
    /// So many crashes in a row are enough.
    package static let most = 2
    /// A file that names more items is damaged.
    private static let mostItems = 10_000
    private static let firstLine = "SLUICE PROBATION 1"

    private struct Trial: Sendable, Equatable {
        var crashes: Int
        var since: Monotonic
    }

    /// Of items that have not begun in this run.
    private var former: [String: Int] = [:]
    private var trials: [String: Trial] = [:]

    package init() {}

    /// Reads what the former run left: what was on probation then has one crash more.
    ///
    /// A text that makes no sense counts nothing.
    package init(_ text: String) {
        let lines = text.split(separator: "\n")
        guard lines.first.map(String.init) == Self.firstLine, lines.last == "END" else { return }
        for line in lines.dropFirst().dropLast().prefix(Self.mostItems) {
            let words = line.split(separator: " ")
            guard words.count == 3,
                let crashes = OutsideNumber.integer(words[1], in: 0...Self.most)
            else { continue }
            former[String(words[0])] = min(Self.most, crashes + (words[2] == "running" ? 1 : 0))
        }
    }

    /// For the next run.
    package var text: String {
        var lines = [Self.firstLine]
        lines += trials.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value.crashes) running" }
        lines += former.sorted { $0.key < $1.key }.filter { $0.value > 0 }
            .map { "\($0.key) \($0.value) waiting" }
        return (lines + ["END"]).joined(separator: "\n") + "\n"
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

/// The counts and their file; any thread may use it.
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
    private let folder: String
    private let log: Logger

    /// Blocks on the disk.
    package init(folder: String, log: Logger) {
        self.folder = folder
        self.log = log
        let bytes = StateFile.read(folder + "/probation", atMost: 1 << 20, log) ?? []
        state = Mutex(State(counts: CrashCounts(String(decoding: bytes, as: UTF8.self))))
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
            let path = folder + "/probation"
            guard !state.counts.isEmpty else {
                try? removeFile(path)
                return
            }
            // What cannot be written counts no crash: the item is taken up as before.
            try? replaceFile(path, with: Array(state.counts.text.utf8), in: folder)
        }
    }
}
