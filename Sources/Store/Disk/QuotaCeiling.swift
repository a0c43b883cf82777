import Numbers
import Posix

/// The bytes that a quota of the file system lets objects take, learned from refused writes.
///
/// statvfs(3) knows nothing of the quota of a user, a project or a Btrfs subvolume: without this,
/// what is stored would fill it, and nothing would be evicted for anything new.
struct QuotaCeiling {
    /// How long nothing must be refused before more is tried: the quota may have grown, or others
    /// may have left it.
    static let raiseInterval = Interval.seconds(1_800 as Int64)
    /// With less stored, others take the quota, and evictions would not help.
    static let least: Int64 = 4 << 20

    /// The ceiling; nil while no quota is known.
    private(set) var bytes: Int64?
    private var changed = Monotonic(nanoseconds: .min)
    /// What the next raise adds.
    private var step: Int64 = 0

    /// Lowers the ceiling after the file system refused bytes with EDQUOT.
    ///
    /// - Parameters:
    ///   - used: the bytes that objects take.
    ///   - now: the time; what was evicted may count against the quota for 30 seconds more.
    /// - Returns: true if the ceiling has changed.
    mutating func noteRefusal(used: Int64, at now: Monotonic) -> Bool {
        guard bytes == nil || now - changed >= LaggingSpace.longestLag else { return false }
        let known = min(used, bytes ?? .max)
        guard known > Self.least else { return false }
        bytes = max(Self.least, known - known / 8)
        step = known / 16
        changed = now
        return true
    }

    /// Raises the ceiling after a time without refusals, each time by twice as much.
    ///
    /// - Parameters:
    ///   - limit: the configured budget, at which the ceiling is forgotten.
    ///   - now: the time.
    /// - Returns: true if the ceiling has changed.
    mutating func raise(below limit: Int64, at now: Monotonic) -> Bool {
        guard let known = bytes, now - changed >= Self.raiseInterval else { return false }
        let next = known.addingSaturated(step)
        bytes = next < limit ? next : nil
        step = step.multipliedSaturated(by: 2)
        changed = now
        return true
    }
}
