// The objects whose files are still there, because the disk refused to delete them.
import Synchronization

/// The keys of objects whose files the disk refused to delete, for example while it is read-only.
///
/// The file of a removed object must not be opened again: what was removed as outdated would be
/// served once more. It is deleted when the disk permits it.
///
/// The file of an object that the disk failed to read or write is left: it is not opened until the
/// next attempt at deletions, and its bytes are then compared with their checksums.
///
/// The keys are lost when the daemon ends; what a purge has removed is removed again by the next
/// run, and with doubtful keys the daemon does not end cleanly, so that the next run compares all
/// bytes. Thread-safe; at most as many keys as the store has files.
final class UndeletedFiles: Sendable {
    private struct Keys: Sendable {
        var removed: Set<ObjectKey> = []
        var left: Set<ObjectKey> = []
        /// Those that are or were left, and the bytes that were charged for them then.
        var doubtful: [ObjectKey: Int64] = [:]
    }

    private let keys = Mutex(Keys())
    /// Without such files, which is nearly always, no lock is taken.
    private let count = Atomic<Int>(0)

    private var isEmpty: Bool { count.load(ordering: .acquiring) == 0 }
    /// True if files wait to be deleted or to be opened again.
    var isWaiting: Bool {
        !isEmpty && keys.withLock { !$0.removed.isEmpty || !$0.left.isEmpty }
    }
    /// True if files of removed objects wait to be deleted.
    var hasRemoved: Bool { !isEmpty && keys.withLock { !$0.removed.isEmpty } }
    /// True if the next run must compare bytes with their checksums.
    var hasDoubtful: Bool { !isEmpty && keys.withLock { !$0.doubtful.isEmpty } }
    /// The keys of removed objects.
    var all: [ObjectKey] { isEmpty ? [] : keys.withLock { Array($0.removed) } }

    /// True for a removed object.
    func contains(_ key: ObjectKey) -> Bool {
        !isEmpty && keys.withLock { $0.removed.contains(key) }
    }

    /// True if the file must not be opened yet.
    func isLeft(_ key: ObjectKey) -> Bool { !isEmpty && keys.withLock { $0.left.contains(key) } }

    /// True if the file's bytes must be compared with their checksums.
    func isDoubtful(_ key: ObjectKey) -> Bool { bytes(of: key) != nil }

    /// The bytes charged for an object when its file was left; nil for any other object.
    func bytes(of key: ObjectKey) -> Int64? {
        isEmpty ? nil : keys.withLock { $0.doubtful[key] }
    }

    /// Adds a removed object.
    func insert(_ key: ObjectKey) {
        change { keys in
            keys.left.remove(key)
            keys.doubtful[key] = nil
            keys.removed.insert(key)
        }
    }

    /// Adds an object whose file is left, with the bytes that stay charged for it.
    func leave(_ key: ObjectKey, bytes: Int64) {
        change { keys in
            keys.left.insert(key)
            keys.doubtful[key] = bytes
        }
    }

    /// Lets the files that were left be opened again.
    func readmitLeft() {
        if !isEmpty { change { $0.left = [] } }
    }

    /// Removes a key whose file was deleted or replaced.
    func remove(_ key: ObjectKey) {
        guard !isEmpty else { return }
        change { keys in
            keys.removed.remove(key)
            keys.left.remove(key)
            keys.doubtful[key] = nil
        }
    }

    /// Removes the keys whose files were set aside.
    func removeAll(where isAside: (ObjectKey) -> Bool) {
        guard !isEmpty else { return }
        change { keys in
            keys.removed = keys.removed.filter { !isAside($0) }
            keys.left = keys.left.filter { !isAside($0) }
            keys.doubtful = keys.doubtful.filter { !isAside($0.key) }
        }
    }

    /// Removes all keys, after the folder was replaced.
    func removeAll() { change { $0 = Keys() } }

    private func change(_ body: (inout Keys) -> Void) {
        keys.withLock { keys in
            body(&keys)
            count.store(keys.removed.count + keys.doubtful.count, ordering: .releasing)
        }
    }
}
