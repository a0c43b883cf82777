/// The objects that are open: a sharded table in front of the folder.
import Posix
import Synchronization

/// What players did with an object since it was last told.
struct Use: Sendable {
    /// When it was last asked for.
    var time: WallTime
    /// Bytes that players read of it.
    var bytes: Int64

    static func merge(_ one: Use, _ other: Use) -> Use {
        Use(time: max(one.time, other.time), bytes: one.bytes + other.bytes)
    }
}

/// One shard.
///
/// Its lock is held over the change of a name on disk as well as the change of the table, so that a
/// lookup never finds one without the other.
struct TableShard: Sendable {
    struct Entry: Sendable {
        let key: ObjectKey
        var object: StoredObject
        var lastUse: UInt64
    }

    private var slots: [ObjectKey: Int] = [:]
    private(set) var entries: [Entry] = []
    private var clock: UInt64 = 0
    /// How each key was used, since the store thread last asked.
    var uses: [ObjectKey: Use] = [:]
    /// Keys whose file the ledger knows for certain, while index and folder are being compared; nil
    /// afterwards, when it knows all of them.
    var settled: Set<ObjectKey>? = []

    mutating func note(_ use: Use, of key: ObjectKey) {
        uses[key] = uses[key].map { Use.merge($0, use) } ?? use
    }

    /// The open object of a key, marked as used.
    mutating func find(_ key: ObjectKey) -> StoredObject? {
        guard let slot = slots[key] else { return nil }
        clock += 1
        entries[slot].lastUse = clock
        return entries[slot].object
    }

    func contains(_ key: ObjectKey) -> Bool { slots[key] != nil }

    /// Puts an object in place of what the key had.
    mutating func put(_ object: StoredObject) -> StoredObject? {
        clock += 1
        if let slot = slots[object.key] {
            let old = entries[slot].object
            entries[slot].object = object
            entries[slot].lastUse = clock
            return old
        }
        slots[object.key] = entries.count
        entries.append(Entry(key: object.key, object: object, lastUse: clock))
        return nil
    }

    mutating func remove(_ key: ObjectKey) -> StoredObject? {
        guard let slot = slots.removeValue(forKey: key) else { return nil }
        let object = entries[slot].object
        let last = entries.removeLast()
        if slot < entries.count {
            entries[slot] = last
            slots[last.key] = slot
        }
        return object
    }

    /// True when nobody but the table holds the object.
    ///
    /// Nobody can come to hold it meanwhile: a new reference is only handed out under this lock, or
    /// copied from one that exists.
    mutating func isIdle(_ key: ObjectKey) -> Bool {
        guard let slot = slots[key] else { return true }
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
            guard let oldest, let object = remove(entries[oldest].key) else { break }
            dropped.append(object)
        }
        return dropped
    }

    /// True until the file of a key has been compared with its row.
    func isUnsettled(_ key: ObjectKey) -> Bool {
        settled.map { !$0.contains(key) } ?? false
    }
}

/// All shards.
final class ObjectTable: Sendable {
    private final class Box: Sendable {
        let shard = Mutex(TableShard())
    }

    private static let shardCount = 16
    private let boxes: [Box] = (0..<shardCount).map { _ in Box() }
    private let limitPerShard: Int

    init(maxOpenObjects: Int) {
        limitPerShard = max(1, maxOpenObjects / Self.shardCount)
    }

    /// Runs `body` with a key's shard locked.
    func withShard<Value: Sendable, Failure: Error>(
        of key: ObjectKey, _ body: (inout TableShard) throws(Failure) -> Value
    ) throws(Failure) -> Value {
        try boxes[key.shardBits % Self.shardCount].shard.withLock {
            shard throws(Failure) -> Value in try body(&shard)
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
