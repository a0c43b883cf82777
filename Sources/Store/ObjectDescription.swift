// What the store is told about an object when it is made.
package import Posix
package import Retention

/// The facts about one representation that are known before its body.
package struct ObjectDescription: Sendable {
    package var key: ObjectKey
    /// The text the object is listed and purged by; kept in the clear in the file's header.
    package var url: String
    /// The caller's classification; the store only keeps it.
    package var role: UInt8
    /// What the player started from, 48 bits; 0 for none.
    ///
    /// Listing, pins and retention go by it.
    package var title: UInt64
    /// What the object is to its title; retention goes by it.
    package var kind: RetentionKind
    /// False for what is fetched ahead of any player's wish; the first read makes it true.
    package var isRead: Bool
    /// The response head in whatever encoding the caller uses; opaque here.
    package var head: [UInt8]
    /// The length of the whole body in bytes, if known.
    package var total: Int64?
    package var created: WallTime
    /// False for what may not be kept: such an object has no name on disk and is never looked up.
    package var isStorable: Bool
    /// True when the whole body will be fetched, so that reserving its blocks pays.
    package var expectsWholeBody: Bool
    /// The whole body where it is there already: `total` bytes, at most `StoredObject.shortLimit`.
    ///
    /// It is written with the header, and the object complete at once, if it gets a name.
    package var body: [UInt8]?

    package init(
        key: ObjectKey, url: String, role: UInt8, head: [UInt8], total: Int64?, created: WallTime,
        isStorable: Bool, expectsWholeBody: Bool = true, title: UInt64 = 0,
        kind: RetentionKind = .media, isRead: Bool = true
    ) {
        self.key = key
        self.url = url
        self.role = role
        self.head = head
        self.total = total
        self.created = created
        self.isStorable = isStorable
        self.expectsWholeBody = expectsWholeBody
        self.title = title
        self.kind = kind
        self.isRead = isRead
    }
}
