// The objects that the disk refused to evict.
import Glibc
import Posix

/// Bars objects whose files cannot be deleted from being selected for eviction, so that others are.
///
/// Such a file belongs to another user, is marked as immutable, or is in a damaged folder; as the
/// least valuable object it would be the next victim for ever. In each interval a few are tried
/// again; once one of those is deleted, the disk is taken for mended, and all may be selected.
struct RefusedVictims {
    private let interval: Interval
    private var names: Set<UInt128> = []
    /// The names to be tried in this round, and those of the next one.
    private var round: [UInt128] = []
    private var nextRound: [UInt128] = []
    /// The names that are being tried again.
    private var onTrial: Set<UInt128> = []
    /// The number of refusals since the last deletion.
    private var inRow = 0
    private var nextTrial = Monotonic(nanoseconds: .min)
    /// A search ends after so many refusals in a row: the whole disk may be broken, and slow.
    static let mostInRow = 16
    /// Fewer than `mostInRow`, so that those alone never end a search.
    static let trials = 8

    init(interval: Interval) { self.interval = interval }

    /// True if an object must not be selected.
    func contains(_ name: UInt128) -> Bool { names.contains(name) }

    /// True if a refusal is worth a line in the log: not if it is expected, or one of many.
    func isNews(_ name: UInt128) -> Bool { inRow == 0 && !onTrial.contains(name) }

    /// Lets a few objects be selected again, once per interval.
    mutating func retry(at time: Monotonic) {
        guard !names.isEmpty, time >= nextTrial else { return }
        nextTrial = time + interval
        onTrial = []
        while onTrial.count < Self.trials, !names.isEmpty {
            if round.isEmpty { swap(&round, &nextRound) }
            guard let name = round.popLast() else { return }
            names.remove(name)
            onTrial.insert(name)
        }
    }

    /// Notes that the disk refused to delete an object's file.
    ///
    /// - Returns: true if the search for victims must end.
    mutating func noteRefusal(
        of name: UInt128, _ error: SystemError, at time: Monotonic
    ) -> Bool {
        // Refused for every file: a read-only disk, or a full one that must write to delete.
        if error.code == EROFS || error.isLackOfRoom { return true }
        if names.isEmpty { nextTrial = time + interval }
        if names.insert(name).inserted { nextRound.append(name) }
        onTrial.remove(name)
        inRow += 1
        guard inRow >= Self.mostInRow else { return false }
        inRow = 0
        return true
    }

    /// Notes that an object was evicted.
    mutating func noteDeletion(of name: UInt128) {
        inRow = 0
        if onTrial.contains(name) { self = RefusedVictims(interval: interval) }
    }
}
