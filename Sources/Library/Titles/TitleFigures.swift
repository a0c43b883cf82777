// Figures of long titles that a listing has read, for the next listing.
import Model
import Posix
import Routing
import Store
import Synchronization

/// Keeps the figures of titles whose lists are long, so that a listing does not parse every stored
/// list again.
final class TitleFigures: Sendable {
    /// What decides about the figures of a title, as far as it is quickly read.
    struct Mark: Equatable {
        let own: TitleMark
        /// The time at which it was pinned; nil if it is not.
        let pinned: WallTime?
        let entry: String?
        /// Purges and clears that have ended.
        let removals: Int
        /// The version of the key rules.
        let rules: UInt64
    }

    private struct Known {
        let title: Title
        let mark: Mark
        /// The rows of the index that were read, for a title that needs what others bring; nil for
        /// any other.
        let rowBatches: Int?
        let readAt: Monotonic
    }

    private struct State {
        var known: [SessionID: Known] = [:]
        var variants = 0

        mutating func remove(_ id: SessionID) {
            guard let former = known.removeValue(forKey: id) else { return }
            variants -= TitleFigures.cost(of: former.title)
        }
    }

    /// Titles that need fewer resources are read each time: that takes milliseconds.
    static let fewResources = 1_000
    /// The most variants of all titles together; one takes some hundred bytes.
    static let mostVariants = 16_384
    /// What other titles bring or lose may be this late in the figures of a title that shares it.
    static let delay = Interval.seconds(60 as Int64)

    private let state = Mutex(State())

    /// The number of titles that are kept.
    var count: Int { state.withLock { $0.known.count } }

    /// The figures of a title, if they are kept and may still be told.
    ///
    /// - Parameters:
    ///   - id: its number.
    ///   - mark: its present mark.
    ///   - rowBatches: the present state of the index.
    ///   - now: the time.
    /// - Returns: the figures; nil if they are to be read.
    func title(_ id: SessionID, _ mark: Mark, _ rowBatches: Int, at now: Monotonic) -> Title? {
        guard let known = state.withLock({ $0.known[id] }), known.mark == mark else { return nil }
        guard let read = known.rowBatches, read != rowBatches else { return known.title }
        return now - known.readAt < Self.delay ? known.title : nil
    }

    /// Keeps the figures of a title, without the keys of what other titles brought.
    ///
    /// - Parameters:
    ///   - title: the title.
    ///   - mark: its mark before it was read.
    ///   - rowBatches: the state of the index before it was read; nil if no other title matters.
    ///   - now: the time before it was read.
    func keep(_ title: Title, _ mark: Mark, _ rowBatches: Int?, at now: Monotonic) {
        var kept = title
        kept.sharedKeys = []
        let known = Known(title: kept, mark: mark, rowBatches: rowBatches, readAt: now)
        state.withLock { state in
            state.remove(title.id)
            let cost = Self.cost(of: title)
            while state.variants + cost > Self.mostVariants, let other = state.known.keys.first {
                state.remove(other)
            }
            state.known[title.id] = known
            state.variants += cost
        }
    }

    private static func cost(of title: Title) -> Int { max(1, title.variants.count) }
}
