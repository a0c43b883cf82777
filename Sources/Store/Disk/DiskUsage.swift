// Counts the bytes that objects take on the disk, against a budget.
import Numbers
import Posix
import Synchronization

/// The disk usage of all objects, open or not.
///
/// An object at rest counts `Footprint.bytes`; an object that is being filled counts its
/// reservation. Named objects are counted before their bytes are written, so the sum stays within
/// the budget, or within `ceiling` while objects are evicted for them; the windows of temporary
/// objects are counted once they are written. Sums wrap around: sizes of a damaged index leave them
/// as they came.
final class DiskUsage: Sendable {
    private let limit: Atomic<Int64>
    private let quotaBytes = Atomic<Int64>(.max)
    private let metQuota = Atomic<Bool>(false)
    private let floor: Atomic<Int64>
    private let usedBytes = Atomic<Int64>(0)
    private let pinnedBytes = Atomic<Int64>(0)
    private let unpinnedBytes = Atomic<Int64>(0)
    private let mostBytes: Atomic<Int64>
    private let objects = Atomic<Int>(0)
    private let freedNothing = Atomic<Bool>(false)
    private let refusedBytes = Atomic<Int64>(0)
    private let awaitsReport = Atomic<Bool>(false)
    private let awaitsOrder = Atomic<Bool>(false)
    private let eras = Atomic<Int>(0)
    private let files = Atomic<Int>(0)
    private let hasMadeFile = Atomic<Bool>(true)
    private let fileRefusals = Mutex(FileRefusals())

    init(budget: Int64, minFree: Int64) {
        limit = Atomic(budget)
        floor = Atomic(minFree)
        mostBytes = Atomic(budget.addingSaturated(Self.advance(of: budget)))
    }

    /// The bytes that objects may take: what is configured, or less, where a quota lets them take
    /// less; may change at any time.
    var budget: Int64 {
        get { min(configuredBudget, quotaBytes.load(ordering: .relaxed)) }
        set { limit.store(newValue, ordering: .relaxed) }
    }

    /// The budget without a quota.
    var configuredBudget: Int64 { limit.load(ordering: .relaxed) }

    /// The bytes that a quota of the file system lets objects take; nil while none is known.
    ///
    /// Set by the store thread.
    var quota: Int64? {
        get {
            let bytes = quotaBytes.load(ordering: .relaxed)
            return bytes < .max ? bytes : nil
        }
        set { quotaBytes.store(newValue ?? .max, ordering: .relaxed) }
    }

    /// Records that a quota has refused bytes.
    func noteQuotaMet() { metQuota.store(true, ordering: .relaxed) }

    /// Returns true once after `noteQuotaMet`.
    func takeQuotaMet() -> Bool {
        metQuota.load(ordering: .relaxed) && metQuota.exchange(false, ordering: .relaxed)
    }

    /// The bytes that must stay free on the file system; may change at any time.
    var minFree: Int64 {
        get { floor.load(ordering: .relaxed) }
        set { floor.store(newValue, ordering: .relaxed) }
    }

    /// The bytes that may be granted before the evictions for them are done: the store thread
    /// evicts more in the time in which as much arrives.
    ///
    /// Below a quota it is less than half of what the ceiling of that leaves.
    var advance: Int64 { min(Self.advance(of: budget), quota.map { $0 / 16 } ?? .max) }

    private static func advance(of budget: Int64) -> Int64 { min(64 << 20, budget) }

    /// The most bytes that objects may take while others are evicted for them: `advance` more than
    /// the budget, or, after that was lowered, than what was left of what they took before.
    var ceiling: Int64 { mostBytes.load(ordering: .relaxed) }

    /// Adapts the ceiling to a changed budget or a store that was opened.
    ///
    /// Once the store thread runs, only it changes the ceiling.
    func resetCeiling() { mostBytes.store(nextCeiling, ordering: .relaxed) }

    /// Lowers the ceiling to what objects take now, so that a lowered budget is reached however
    /// much is granted meanwhile; called by the store thread after each step of an eviction.
    func lowerCeiling() { mostBytes.store(min(ceiling, nextCeiling), ordering: .relaxed) }

    private var nextCeiling: Int64 { max(budget, used).addingSaturated(advance) }

    /// The bytes of pinned objects, which are never evicted; set by the store thread.
    var pinned: Int64 {
        get { pinnedBytes.load(ordering: .relaxed) }
        set { pinnedBytes.store(newValue, ordering: .relaxed) }
    }

    /// The bytes of the objects that the store thread knows and may evict once they are idle; set by
    /// it, and behind what is stored at this moment.
    var evictable: Int64 {
        get { unpinnedBytes.load(ordering: .relaxed) }
        set { unpinnedBytes.store(newValue, ordering: .relaxed) }
    }

    /// Eviction keeps this many bytes of the budget free, so that new objects need no advance.
    var headroom: Int64 {
        let budget = budget
        return budget >= 64 << 20 ? min(64 << 20, budget / 16) : 0
    }

    var used: Int64 { usedBytes.load(ordering: .relaxed) }
    var objectCount: Int { objects.load(ordering: .relaxed) }
    var isOverBudget: Bool { used > budget - headroom }

    /// The number of times the store's folder was replaced: bytes charged in an earlier era must
    /// not be released in this one.
    var era: Int { eras.load(ordering: .relaxed) }

    /// True when the last eviction found nothing to free; until less than the budget is used, or a
    /// search ends otherwise.
    var isStuck: Bool {
        get { freedNothing.load(ordering: .relaxed) }
        set { freedNothing.store(newValue, ordering: .relaxed) }
    }

    /// The bytes that were last requested in vain; nil once as many were granted.
    var refused: Int64? {
        let bytes = refusedBytes.load(ordering: .relaxed)
        return bytes > 0 ? bytes : nil
    }

    /// A refused request for more, as for a whole film, says no more than this of other requests.
    private static let mostRefused: Int64 = 1 << 20

    /// Records that a request for room was refused.
    func noteRefused(_ bytes: Int64) {
        refusedBytes.store(min(bytes, Self.mostRefused), ordering: .relaxed)
    }

    /// Records that a request for room was granted.
    func noteGranted(_ bytes: Int64) {
        let known = refusedBytes.load(ordering: .relaxed)
        if known > 0, bytes >= known { refusedBytes.store(0, ordering: .relaxed) }
    }

    /// True if enough was freed, and the disk does not report it as free yet.
    var awaitsDisk: Bool {
        get { awaitsReport.load(ordering: .relaxed) }
        set { awaitsReport.store(newValue, ordering: .relaxed) }
    }

    /// True while eviction waits for a comparison of index and folder that takes long.
    var awaitsComparison: Bool {
        get { awaitsOrder.load(ordering: .relaxed) }
        set { awaitsOrder.store(newValue, ordering: .relaxed) }
    }

    /// The number of objects to evict for their files alone, after the disk refused a new one.
    var wantedFiles: Int { files.load(ordering: .relaxed) }

    /// Records that the disk, or a quota, refused to create a file.
    func noteFileRefused(isQuota: Bool = false, at now: Monotonic = .now()) {
        // All under the lock: of two threads that are refused at once, the one that counts as first
        // must also begin the batch.
        fileRefusals.withLock {
            let isFirst = hasMadeFile.exchange(false, ordering: .relaxed)
            let wanted = $0.batch(isFirst: isFirst, isQuota: isQuota, at: now)
            if let wanted { files.store(wanted, ordering: .relaxed) }
        }
    }

    /// Records that the disk created a file.
    func noteFileMade() {
        if !hasMadeFile.load(ordering: .relaxed) { hasMadeFile.store(true, ordering: .relaxed) }
    }

    /// Records that the file of an object was deleted; called by the store thread only.
    func noteFileFreed() {
        let wanted = wantedFiles
        if wanted > 0 { files.store(wanted - 1, ordering: .relaxed) }
    }

    /// Ends the wish for files: nothing can be evicted for it.
    func forgetWantedFiles() { files.store(0, ordering: .relaxed) }

    func charge(_ bytes: Int64) {
        usedBytes.wrappingAdd(bytes, ordering: .relaxed)
    }

    /// Charges bytes that are about to be written.
    ///
    /// - Returns: false, with nothing changed, if they would exceed the budget.
    func tryCharge(_ bytes: Int64) -> Bool { tryCharge(bytes, upTo: budget) }

    /// Charges bytes for which other objects are about to be evicted.
    ///
    /// - Parameters:
    ///   - bytes: how many.
    ///   - own: what the object that grows takes already, for which it cannot be evicted itself.
    ///   - isPinned: true if it will never be evicted. As much must be known to be evictable then:
    ///     the store thread may not know of pinned objects yet that arrive at the same time.
    ///   - isDiskShort: true if the disk lacks the room, whatever the budget has. As much must be
    ///     known to be evictable, too, or the free space that must remain would be used up for good.
    /// - Returns: false, with nothing changed, if they do not fit into the budget beside what is
    ///   pinned, if the last eviction found nothing, or if the ceiling is reached.
    func tryChargeInAdvance(
        _ bytes: Int64, beside own: Int64, isPinned: Bool = false, isDiskShort: Bool = false
    ) -> Bool {
        mayEvict(for: bytes, beside: own, isPinned: isPinned, isDiskShort: isDiskShort)
            && tryCharge(bytes, upTo: ceiling)
    }

    /// True unless it is known that evictions would not make the room; parameters like those of
    /// `tryChargeInAdvance`.
    func mayEvict(
        for bytes: Int64, beside own: Int64 = 0, isPinned: Bool = false, isDiskShort: Bool
    ) -> Bool {
        let fits =
            isPinned
            ? used.addingSaturated(bytes) <= budget.addingSaturated(max(0, evictable))
            : pinned.addingSaturated(own).addingSaturated(bytes) <= budget
        return fits && (!isDiskShort || bytes <= evictable) && !isStuck
    }

    private func tryCharge(_ bytes: Int64, upTo most: Int64) -> Bool {
        var known = used
        while known.addingSaturated(bytes) <= most {
            let (exchanged, now) = usedBytes.weakCompareExchange(
                expected: known, desired: known.addingSaturated(bytes), ordering: .relaxed)
            if exchanged { return true }
            known = now
        }
        return false
    }

    func release(_ bytes: Int64) {
        guard bytes != 0 else { return }
        let (before, after) = usedBytes.wrappingSubtract(bytes, ordering: .relaxed)
        // While there is more than the budget, the next search tells: an advance would be granted for
        // nothing. It tells, too, if nothing was found although there was not: the disk is short then.
        if before > budget, after <= budget { isStuck = false }
    }

    /// Adds to the number of objects when names are added to or removed from the objects folder.
    func countObjects(_ difference: Int) {
        objects.wrappingAdd(difference, ordering: .relaxed)
    }

    /// Resets all counts, for a new, empty folder.
    func startAnew() {
        eras.add(1, ordering: .relaxed)
        usedBytes.store(0, ordering: .relaxed)
        resetCeiling()
        objects.store(0, ordering: .relaxed)
        refusedBytes.store(0, ordering: .relaxed)
        forgetWantedFiles()
        awaitsDisk = false
        awaitsComparison = false
        isStuck = false
    }
}
