// The values of listings, pins and verification.
package import Posix
package import Retention

/// The facts about one object that the index has in a row, as of the last batch of index writes.
package struct StoreEntry: Sendable, Equatable {
    package let key: ObjectKey
    package let url: String
    package let role: UInt8
    /// The title of the session that it was first fetched for; 0 for none.
    package let title: UInt64
    package let kind: RetentionKind
    let isRead: Bool
    /// The bytes on the disk, header included.
    package let bytes: Int64
    package let total: Int64?
    package let isComplete: Bool
    package let created: WallTime
    /// The time of the last use; nil if it is not known, which leaves that of the index unchanged.
    var knownUse: WallTime?

    package var lastUsed: WallTime { knownUse ?? created }
}

/// A pinned title: its objects are never evicted.
package struct Pin: Sendable, Equatable {
    /// The pinned title.
    package let title: UInt64
    /// The entry URL, for display.
    package let url: String
    package let since: WallTime
    /// Objects that belong to the title although they were first fetched for another one.
    package let keys: [ObjectKey]

    package init(title: UInt64, url: String, since: WallTime, keys: [ObjectKey]) {
        self.title = title
        self.url = url
        self.since = since
        self.keys = keys
    }
}

/// The result of a removal.
package struct Removal: Sendable, Equatable {
    package var objects = 0
    package var bytes: Int64 = 0
    /// Those of the objects that a purge removed whose files the disk refused to delete.
    package var undeleted = 0

    package init() {}
}

/// The progress of a verification of every byte.
package struct VerifyProgress: Sendable, Equatable {
    package var objects = 0
    /// Objects in the store when the check began.
    package var objectsToCheck = 0
    package var bytes: Int64 = 0
}

/// The result of a verification of every byte.
package struct VerifyReport: Sendable, Equatable {
    /// Objects whose extents were all read and proved.
    package var intactObjects = 0
    package var checkedBytes: Int64 = 0
    /// Objects that lost some of their bytes; these are fetched again when requested.
    package var repairedObjects = 0
    /// Objects that were deleted because no extent could be proved.
    package var deletedObjects = 0
    package var lostBytes: Int64 = 0
    /// Objects that could not be read at the moment, and were left.
    package var unreadableObjects = 0
    /// True if it was ended before every object was verified.
    package var isStopped = false

    /// True if nothing was lost and every object was readable.
    package var isSound: Bool { lostBytes == 0 && deletedObjects == 0 && unreadableObjects == 0 }
}

/// The result of the check at start; complete once `isDone`.
package struct StartReport: Sendable, Equatable {
    /// False when the last run ended without closing the store: a kill, a crash, a power cut.
    package var wasClosedCleanly = true
    /// True if the index was damaged or missing, and is rebuilt from the objects.
    package var isIndexRebuilt = false
    /// Objects whose index row was correct.
    package var kept = 0
    /// Objects that were missing in the index and were added.
    package var adopted = 0
    /// Rows whose file was gone.
    package var dropped = 0
    /// Files deleted because they failed verification.
    package var damaged = 0
    /// Files deleted that are no stored objects: unpublished ones of an earlier run, and unknown
    /// names.
    package var orphans = 0
}

/// The disk space in use and available, in bytes.
package struct StoreSpace: Sendable, Equatable {
    package var used: Int64
    package var budget: Int64
    package var minFree: Int64
    /// Free bytes on the file system; nil if unknown.
    package var free: Int64?
    package var objects: Int
    package var pinnedTitles: Int
}
