// The removed objects whose files are still there, because the disk refused to delete them.
import Synchronization

/// The keys of removed objects whose files the disk refused to delete, for example while it is
/// read-only.
///
/// Such a file must not be opened again: what was removed as outdated would be served once more.
/// It is deleted when the disk permits it. The keys are lost when the daemon ends.
///
/// Thread-safe; at most as many keys as the store has files.
final class UndeletedFiles: Sendable {
    private let keys = Mutex<Set<ObjectKey>>([])
    /// Without undeleted files, which is nearly always, no lock is taken.
    private let count = Atomic<Int>(0)

    var isEmpty: Bool { count.load(ordering: .acquiring) == 0 }
    var all: [ObjectKey] { isEmpty ? [] : keys.withLock { Array($0) } }

    func contains(_ key: ObjectKey) -> Bool { !isEmpty && keys.withLock { $0.contains(key) } }

    func insert(_ key: ObjectKey) { change { $0.insert(key) } }

    /// Removes a key whose file was deleted or replaced.
    func remove(_ key: ObjectKey) {
        if !isEmpty { change { $0.remove(key) } }
    }

    /// Removes all keys, after the folder was replaced.
    func removeAll() { change { $0 = [] } }

    private func change(_ body: (inout Set<ObjectKey>) -> Void) {
        keys.withLock { keys in
            body(&keys)
            count.store(keys.count, ordering: .releasing)
        }
    }
}
