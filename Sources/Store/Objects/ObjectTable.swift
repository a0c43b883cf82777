// The open objects: a sharded table in front of the folder, and the locks of names.
//
// There are two kinds of locks, taken in this order; only `withAllNames` holds two of one kind:
// - a *name lock*, one of 256, is held while a key's name on disk changes and while table and
//   index are updated, so that changes of one key are serialised and no lookup opens a file that is
//   being replaced. Disk calls happen under it.
// - a *shard lock*, one of 16, guards the table only, for nanoseconds. A lookup of an open object
//   takes only this one, so no disk call for another key delays it; a lookup that has to open a
//   file waits, in one case of 256, for the disk call of another key: a rename, an unlink or an
//   open with a read of a page.
import Numbers
import Posix
import Synchronization

/// The uses of an object that the store thread has not collected yet.
struct Use: Sendable {
    /// The time of the last request.
    var time: WallTime
    /// The number of bytes that players read.
    var bytes: Int64
    /// True if the index must record it soon: a player is reading an object that was fetched ahead.
    var isNews = false

    static func merge(_ one: Use, _ other: Use) -> Use {
        Use(
            time: max(one.time, other.time), bytes: one.bytes.addingSaturated(other.bytes),
            isNews: one.isNews || other.isNews)
    }
}

/// One shard of the table.
struct TableShard: Sendable {
    struct Entry: Sendable {
        let key: ObjectKey
        var object: StoredObject
        var lastUse: UInt64
    }

    private var slots: [UInt128: Int] = [:]
    private(set) var entries: [Entry] = []
    private var clock: UInt64 = 0
    /// The uses of each key since the store thread last collected them.
    var uses: [ObjectKey: Use] = [:]
    /// Keys whose file is already counted correctly in the disk usage while index and folder are
    /// being compared; nil once all are.
    var reconciled: Set<ObjectKey>? = []
    /// Keys whose first byte is at most this have been compared.
    var reconciledThrough = -1
    /// Keys that were recently found to have no file: one fetch looks up its key several times.
    private var absent: Set<UInt128> = []

    mutating func note(_ use: Use, of key: ObjectKey) {
        // Updates in place, so that the key is hashed once.
        if let known = uses.index(forKey: key) {
            uses.values[known] = Use.merge(uses.values[known], use)
        } else {
            uses[key] = use
        }
    }

    /// Returns the open object of a key and marks it as used.
    mutating func find(_ key: ObjectKey) -> StoredObject? {
        guard let slot = slots[key.name] else { return nil }
        clock += 1
        entries[slot].lastUse = clock
        return entries[slot].object
    }

    /// Returns the open object of a key without marking it as used.
    func look(_ key: ObjectKey) -> StoredObject? { slots[key.name].map { entries[$0].object } }

    /// Records that a key has no file; the caller holds the key's name lock.
    mutating func noteAbsent(_ key: ObjectKey) {
        if absent.count >= 64 { absent.removeAll(keepingCapacity: true) }
        absent.insert(key.name)
    }

    /// True if a key is known to have no file.
    func isAbsent(_ key: ObjectKey) -> Bool { !absent.isEmpty && absent.contains(key.name) }

    /// Clears the keys without files, after the folder was replaced.
    mutating func forgetAbsent() { absent = [] }

    /// Inserts an object and returns the one that the key had before.
    mutating func put(_ object: StoredObject) -> StoredObject? {
        clock += 1
        if !absent.isEmpty { absent.remove(object.key.name) }
        // Nearly always the key is new; then it is hashed only once.
        if let slot = slots.updateValue(entries.count, forKey: object.key.name) {
            slots[object.key.name] = slot
            let old = entries[slot].object
            entries[slot].object = object
            entries[slot].lastUse = clock
            return old
        }
        entries.append(Entry(key: object.key, object: object, lastUse: clock))
        return nil
    }

    mutating func remove(_ name: UInt128) -> StoredObject? {
        guard let slot = slots.removeValue(forKey: name) else { return nil }
        let object = entries[slot].object
        let last = entries.removeLast()
        if slot < entries.count {
            entries[slot] = last
            slots[last.key.name] = slot
        }
        return object
    }

    /// Removes and returns the objects of some keys, all by default.
    mutating func removeAll(
        where isGone: (ObjectKey) -> Bool = { _ in true }
    ) -> [StoredObject] {
        entries.map(\.key).filter(isGone).compactMap { remove($0.name) }
    }

    /// True if only the table holds the object.
    ///
    /// No other thread can get a reference meanwhile: references are handed out only under this
    /// lock, or copied from an existing one.
    mutating func isIdle(_ name: UInt128) -> Bool {
        guard let slot = slots[name] else { return true }
        return isKnownUniquelyReferenced(&entries[slot].object)
    }

    /// Removes the least recently used idle objects until at most `limit` are open.
    mutating func trim(to limit: Int) -> [StoredObject] {
        var dropped: [StoredObject] = []
        while entries.count > limit {
            var oldest: Int?
            // By index: a copy of an entry would be a second reference to its object.
            for slot in entries.indices
            where entries[slot].lastUse < oldest.map({ entries[$0].lastUse }) ?? .max {
                if isKnownUniquelyReferenced(&entries[slot].object) { oldest = slot }
            }
            guard let oldest, let object = remove(entries[oldest].key.name) else { break }
            dropped.append(object)
        }
        return dropped
    }

    /// Removes all idle objects.
    mutating func removeIdle() -> [StoredObject] {
        var idle: [UInt128] = []
        for slot in entries.indices where isKnownUniquelyReferenced(&entries[slot].object) {
            idle.append(entries[slot].key.name)
        }
        return idle.compactMap { remove($0) }
    }

    /// True until the file of a key has been compared with its row.
    func isUnreconciled(_ key: ObjectKey) -> Bool {
        reconciled.map { key.firstByte > reconciledThrough && !$0.contains(key) } ?? false
    }
}

/// The table of open objects: all shards and name locks.
final class ObjectTable: Sendable {
    private final class Box: Sendable {
        let shard = Mutex(TableShard())
    }

    private final class NameLock: Sendable {
        let lock = Mutex<Void>(())
    }

    private static let shardCount = 16
    private let boxes: [Box] = (0..<shardCount).map { _ in Box() }
    private let names: [NameLock] = (0..<256).map { _ in NameLock() }
    private let limitPerShard: Int

    init(maxOpenObjects: Int) {
        limitPerShard = max(1, maxOpenObjects / Self.shardCount)
    }

    /// Runs `body` while no other thread changes the key's name on disk.
    func withName<Value: Sendable, Failure: Error>(
        of key: ObjectKey, _ body: () throws(Failure) -> Value
    ) throws(Failure) -> Value {
        try names[key.lockBits].lock.withLock { _ throws(Failure) -> Value in try body() }
    }

    /// Runs `body` while no other thread changes any key's name on disk or opens an object.
    ///
    /// A thread that holds one name lock never waits for another, so taking them in order cannot
    /// deadlock.
    func withAllNames<Value: Sendable, Failure: Error>(
        _ body: () throws(Failure) -> Value
    ) throws(Failure) -> Value {
        try withNames(from: 0, body)
    }

    private func withNames<Value: Sendable, Failure: Error>(
        from index: Int, _ body: () throws(Failure) -> Value
    ) throws(Failure) -> Value {
        guard index < names.count else { return try body() }
        return try names[index].lock.withLock { _ throws(Failure) -> Value in
            try withNames(from: index + 1, body)
        }
    }

    /// Runs `body` with a key's shard locked; `body` must make no disk calls.
    func withShard<Value: Sendable, Failure: Error>(
        of key: ObjectKey, _ body: (inout TableShard) throws(Failure) -> Value
    ) throws(Failure) -> Value {
        try withShard(of: key.name, body)
    }

    /// Runs `body` with the shard locked that has the name, the first half of a key.
    func withShard<Value: Sendable, Failure: Error>(
        of name: UInt128, _ body: (inout TableShard) throws(Failure) -> Value
    ) throws(Failure) -> Value {
        let index = Int(truncatingIfNeeded: name & 0xFFFF) % Self.shardCount
        return try boxes[index].shard.withLock { shard throws(Failure) -> Value in
            try body(&shard)
        }
    }

    /// Returns the open object of a key without marking it as used.
    func look(_ key: ObjectKey) -> StoredObject? { withShard(of: key) { $0.look(key) } }

    /// True until the file of a key has been compared with its row.
    func isUnreconciled(_ key: ObjectKey) -> Bool { withShard(of: key) { $0.isUnreconciled(key) } }

    /// Runs `body` once per shard, each locked in turn.
    func withEachShard(_ body: (inout TableShard) -> Void) {
        for box in boxes { box.shard.withLock { body(&$0) } }
    }

    /// Closes idle objects of the key's shard beyond its limit; the caller must hold no shard lock.
    func trim(around key: ObjectKey) {
        // Descriptors are closed outside the lock, when the result is released.
        _ = withShard(of: key) { shard in
            shard.entries.count > limitPerShard ? shard.trim(to: limitPerShard) : []
        }
    }

    /// Closes idle objects beyond the limit in every shard.
    func trimAll() {
        for box in boxes {
            _ = box.shard.withLock { $0.trim(to: limitPerShard) }
        }
    }

    /// Closes all idle objects.
    func closeIdle() {
        for box in boxes { _ = box.shard.withLock { $0.removeIdle() } }
    }

    /// The number of objects that are open.
    var count: Int {
        var sum = 0
        withEachShard { sum += $0.entries.count }
        return sum
    }
}
