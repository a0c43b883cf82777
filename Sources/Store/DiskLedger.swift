/// Counts the bytes that objects take on the disk, against a budget.
import Synchronization

/// The bytes an object's file takes.
enum Footprint {
    /// Header pages and present bytes, in whole blocks of 4 KiB.
    static func bytes(header: Int64, present: Int64) -> Int64 {
        header + (present + 4095) / 4096 * 4096
    }
}

/// The sum over all objects, in memory or not.
///
/// An object at rest counts `Footprint.bytes`; one with reserved blocks counts those.
final class DiskLedger: Sendable {
    let budget: Int64
    private let usedBytes = Atomic<Int64>(0)
    private let objects = Atomic<Int>(0)
    private let freedNothing = Atomic<Bool>(false)

    init(budget: Int64) {
        self.budget = budget
    }

    var used: Int64 { usedBytes.load(ordering: .relaxed) }
    var objectCount: Int { objects.load(ordering: .relaxed) }
    var isOverBudget: Bool { used > budget }

    /// True when the last eviction found nothing to free.
    var isStuck: Bool {
        get { freedNothing.load(ordering: .relaxed) }
        set { freedNothing.store(newValue, ordering: .relaxed) }
    }

    func charge(_ bytes: Int64) {
        usedBytes.add(bytes, ordering: .relaxed)
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
}
