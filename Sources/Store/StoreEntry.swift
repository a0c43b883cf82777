// What listings, pins and checks say of the store.
package import Posix
package import Retention

/// What the index knows of one object, as of the last batch of index writes.
package struct StoreEntry: Sendable, Equatable {
    package let key: ObjectKey
    package let url: String
    package let role: UInt8
    package let kind: RetentionKind
    /// What the player started from; 0 for none.
    package let title: UInt64
    /// Bytes on the disk, header included.
    package let bytes: Int64
    package let total: Int64?
    package let isComplete: Bool
    package let created: WallTime
    package let lastUsed: WallTime

    init(_ row: IndexRow) {
        key = row.key
        url = row.url
        role = row.role
        kind = row.kind
        title = row.title
        bytes = row.bytes
        total = row.total
        isComplete = row.isComplete
        created = row.created
        lastUsed = row.lastUsed ?? row.created
    }
}

/// A title that is kept whatever room is needed.
package struct Pin: Sendable, Equatable {
    /// What the player started from.
    package let title: UInt64
    /// The entry URL, for people.
    package let url: String
    package let since: WallTime
    /// Objects that belong to it although they were first fetched for another title.
    package let keys: [ObjectKey]

    package init(title: UInt64, url: String, since: WallTime, keys: [ObjectKey]) {
        self.title = title
        self.url = url
        self.since = since
        self.keys = keys
    }
}

/// What was removed.
package struct Removal: Sendable, Equatable {
    package var objects = 0
    package var bytes: Int64 = 0

    package init() {}
}

/// How far a check of every byte has come.
package struct VerifyProgress: Sendable, Equatable {
    package var objects = 0
    /// Objects in the store when the check began.
    package var objectsToCheck = 0
    package var bytes: Int64 = 0
}

/// What a check of every byte found.
package struct VerifyReport: Sendable, Equatable {
    /// Objects whose every extent was read and proved.
    package var intactObjects = 0
    package var checkedBytes: Int64 = 0
    /// Objects that lost some of their bytes, which are fetched again when they are wanted.
    package var repairedObjects = 0
    /// Objects that were deleted, because nothing of them could be proved.
    package var deletedObjects = 0
    package var lostBytes: Int64 = 0
    /// Objects that could not be read just now, and were left.
    package var unreadableObjects = 0

    /// True when nothing was lost and nothing was left out.
    package var isSound: Bool { lostBytes == 0 && deletedObjects == 0 && unreadableObjects == 0 }
}

/// What the start found in the folder; complete once `isDone`.
package struct StartReport: Sendable, Equatable {
    /// False when the last run ended without closing the store: a kill, a crash, a power cut.
    package var wasClosedCleanly = true
    /// True when the index was damaged or missing, and is built from the objects.
    package var isIndexRebuilt = false
    /// Objects found as the index has them.
    package var kept = 0
    /// Objects that the index did not know, and has now.
    package var adopted = 0
    /// Rows whose file was gone.
    package var dropped = 0
    /// Files deleted because they did not prove what they are.
    package var damaged = 0
    /// Files deleted that were no objects: unpublished ones of a former run, and foreign names.
    package var orphans = 0
    package var isDone = false
}

/// The room on the disk and what is taken of it, in bytes.
package struct StoreSpace: Sendable, Equatable {
    package var used: Int64
    package var budget: Int64
    package var minFree: Int64
    /// Free on the file system; nil when it cannot be asked.
    package var free: Int64?
    package var objects: Int
    package var pinnedTitles: Int
}
