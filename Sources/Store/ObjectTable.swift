// The objects that are open: a sharded table in front of the folder, and the locks of names.
//
// Two kinds of locks, taken in this order, never two of a kind:
// - a *name lock*, one of 256, is held over the change of a key's name on disk and what the table
//   and the index are told of it, so that no two changes of a key cross and no lookup opens a file
//   that is just being replaced. Disk calls happen under it.
// - a *shard lock*, one of 16, guards the table alone, for nanoseconds. A lookup of an object that
//   is open takes only this one, so no disk call of another key holds it up; one that has to open a
//   file waits, in one case of 256, for the disk call of another key: a rename, an unlink or an
//   open with a read of a page.
import Posix
import Synchronization

/// What players did with an object since it was last told.
struct Use: Sendable {
    /// When it was last asked for.
    var time: WallTime
    /// Bytes that players read of it.
    var bytes: Int64
    /// Whether the index must be told before long: the object was fetched ahead, and is read now.
    var isNews = false

    static func merge(_ one: Use, _ other: Use) -> Use {
        Use(
            time: max(one.time, other.time), bytes: one.bytes + other.bytes,
            isNews: one.isNews || other.isNews)
    }
}

/// One shard.
struct TableShard: Sendable {
    struct Entry: Sendable {
        let key: ObjectKey
        var object: StoredObject
        var lastUse: UInt64
    }

    private var slots: [UInt128: Int] = [:]
    private(set) var entries: [Entry] = []
    private var clock: UInt64 = 0
    /// How each key was used, since the store thread last asked.
    var uses: [ObjectKey: Use] = [:]
    /// Keys whose file the usage knows for certain, while index and folder are being compared; nil
    /// afterwards, when it knows all of them.
    var settled: Set<ObjectKey>? = []
    /// Keys that begin with this byte or a smaller one have been compared.
    var settledThrough = -1
    /// Keys that were looked for lately and have no file: one fetch asks several times.
    private var absent: Set<UInt128> = []

    mutating func note(_ use: Use, of key: ObjectKey) {
        // In place: the key is hashed once.
        if let known = uses.index(forKey: key) {
            uses.values[known] = Use.merge(uses.values[known], use)
        } else {
            uses[key] = use
        }
    }

    /// The open object of a key, marked as used.
    mutating func find(_ key: ObjectKey) -> StoredObject? {
        guard let slot = slots[key.name] else { return nil }
        clock += 1
        entries[slot].lastUse = clock
        return entries[slot].object
    }

    /// The open object of a key, without a mark.
    func look(_ key: ObjectKey) -> StoredObject? { slots[key.name].map { entries[$0].object } }

    /// Notes that a key has no file; its name is locked.
    mutating func noteAbsent(_ key: ObjectKey) {
        if absent.count >= 64 { absent.removeAll(keepingCapacity: true) }
        absent.insert(key.name)
    }

    /// Whether a key is known to have no file.
    func isAbsent(_ key: ObjectKey) -> Bool { !absent.isEmpty && absent.contains(key.name) }

    /// Forgets what has no file: another folder is in the place of the former one.
    mutating func forgetAbsent() { absent = [] }

    func contains(_ name: UInt128) -> Bool { slots[name] != nil }

    /// Puts an object in place of what the key had.
    mutating func put(_ object: StoredObject) -> StoredObject? {
        clock += 1
        if !absent.isEmpty { absent.remove(object.key.name) }
        // Nearly always there is none, and then the name is hashed once.
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

    /// Lets go of the objects whose key is not among those that stay.
    mutating func removeAll(but kept: Set<UInt128>) -> [StoredObject] {
        let gone = entries.map(\.key.name).filter { !kept.contains($0) }
        return gone.compactMap { remove($0) }
    }

    mutating func removeAll() -> [StoredObject] {
        defer {
            slots = [:]
            entries = []
        }
        return entries.map(\.object)
    }

    /// True when nobody but the table holds the object.
    ///
    /// Nobody can come to hold it meanwhile: a new reference is only handed out under this lock, or
    /// copied from one that exists.
    mutating func isIdle(_ name: UInt128) -> Bool {
        guard let slot = slots[name] else { return true }
        return isKnownUniquelyReferenced(&entries[slot].object)
    }

    /// Lets go of the idle objects used longest ago, until at most `limit` are open.
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

    /// True until the file of a key has been compared with its row.
    func isUnsettled(_ key: ObjectKey) -> Bool {
        settled.map { key.firstByte > settledThrough && !$0.contains(key) } ?? false
    }
}

/// All shards.
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

    /// Runs `body` while nobody else changes the key's name on disk.
    func withName<Value: Sendable, Failure: Error>(
        of key: ObjectKey, _ body: () throws(Failure) -> Value
    ) throws(Failure) -> Value {
        try names[key.lockBits].lock.withLock { _ throws(Failure) -> Value in try body() }
    }

    /// Runs `body` while nobody else changes any key's name on disk, and no object is opened.
    ///
    /// Whoever holds one lock of a name waits for no other, so the order of the locks is enough.
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

    /// Runs `body` with a key's shard locked; no disk call belongs in there.
    func withShard<Value: Sendable, Failure: Error>(
        of key: ObjectKey, _ body: (inout TableShard) throws(Failure) -> Value
    ) throws(Failure) -> Value {
        try withShard(of: key.name, body)
    }

    /// As above, by the first half of a key.
    func withShard<Value: Sendable, Failure: Error>(
        of name: UInt128, _ body: (inout TableShard) throws(Failure) -> Value
    ) throws(Failure) -> Value {
        let index = Int(truncatingIfNeeded: name & 0xFFFF) % Self.shardCount
        return try boxes[index].shard.withLock { shard throws(Failure) -> Value in
            try body(&shard)
        }
    }

    /// Runs `body` with one shard after the other locked.
    func withEachShard(_ body: (inout TableShard) -> Void) {
        for box in boxes { box.shard.withLock { body(&$0) } }
    }

    /// Keeps the number of open idle objects in bounds; to be called without a shard locked.
    func trim(around key: ObjectKey) {
        // Descriptors are closed outside the lock, when the result is let go.
        _ = withShard(of: key) { shard in
            shard.entries.count > limitPerShard ? shard.trim(to: limitPerShard) : []
        }
    }

    /// As `trim(around:)`, everywhere.
    func trimAll() {
        for box in boxes {
            _ = box.shard.withLock { $0.trim(to: limitPerShard) }
        }
    }

    /// The number of objects that are open.
    var count: Int {
        var sum = 0
        withEachShard { sum += $0.entries.count }
        return sum
    }
}
