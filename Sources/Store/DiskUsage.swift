// Counts the bytes that objects take on the disk, against a budget.
import Synchronization

/// The bytes an object's file takes.
enum Footprint {
    private static let block: Int64 = 4096

    /// Header pages and a body of so many bytes in one piece, in whole blocks of 4 KiB.
    static func bytes(header: Int64, present: Int64) -> Int64 {
        header + (present + block - 1) / block * block
    }

    /// Header pages and the blocks that spans lie in.
    static func bytes(header: Int64, spans: SpanSet) -> Int64 {
        header + spans.totalBytes(inBlocksOf: block)
    }
}

/// The sum over all objects, in memory or not.
///
/// An object at rest counts `Footprint.bytes`; one that is being filled counts what is reserved for
/// it. Named objects are counted before their bytes are written, so the sum stays within the budget;
/// the windows of temporary ones are counted when they are there.
final class DiskUsage: Sendable {
    let budget: Int64
    /// Eviction keeps this much of the budget free, so that new objects need not wait for it.
    let headroom: Int64
    private let usedBytes = Atomic<Int64>(0)
    private let objects = Atomic<Int>(0)
    private let freedNothing = Atomic<Bool>(false)
    private let eras = Atomic<Int>(0)

    init(budget: Int64) {
        self.budget = budget
        headroom = budget >= 64 << 20 ? min(64 << 20, budget / 16) : 0
    }

    var used: Int64 { usedBytes.load(ordering: .relaxed) }
    var objectCount: Int { objects.load(ordering: .relaxed) }
    var isOverBudget: Bool { used > budget - headroom }

    /// Counts the folders that the store has had: what an object took in a former one is no matter
    /// of this one.
    var era: Int { eras.load(ordering: .relaxed) }

    /// True when the last eviction found nothing to free.
    var isStuck: Bool {
        get { freedNothing.load(ordering: .relaxed) }
        set { freedNothing.store(newValue, ordering: .relaxed) }
    }

    func charge(_ bytes: Int64) {
        usedBytes.add(bytes, ordering: .relaxed)
    }

    /// Counts bytes that are going to be written.
    ///
    /// - Returns: false, with nothing changed, where they would pass the budget.
    func tryCharge(_ bytes: Int64) -> Bool {
        var known = used
        while known + bytes <= budget {
            let (exchanged, now) = usedBytes.weakCompareExchange(
                expected: known, desired: known + bytes, ordering: .relaxed)
            if exchanged { return true }
            known = now
        }
        return false
    }

    func release(_ bytes: Int64) {
        guard bytes != 0 else { return }
        usedBytes.subtract(bytes, ordering: .relaxed)
        isStuck = false
    }

    /// Counts names that appear or go under the folder of objects.
    func countObjects(_ difference: Int) {
        objects.add(difference, ordering: .relaxed)
    }

    /// Begins at nothing, for a folder that is new.
    func startAnew() {
        eras.add(1, ordering: .relaxed)
        usedBytes.store(0, ordering: .relaxed)
        objects.store(0, ordering: .relaxed)
        isStuck = false
    }
}
