// The caller's description of a new object.
package import Posix
package import Retention

/// The facts about one representation that are known before its body.
package struct ObjectDescription: Sendable {
    package var key: ObjectKey
    /// The URL by which the object is listed and purged; stored as plain text in the file's header.
    package var url: String
    /// The caller's classification; the store only records it.
    package var role: UInt8
    /// The title of the session that the object was first fetched for, 48 bits; 0 for none.
    ///
    /// Used for listing, pins and retention.
    package var title: UInt64
    /// The object's role within its title, used by retention.
    package var kind: RetentionKind
    /// False if the object was fetched ahead and no player has read it; the first read sets it.
    package var isRead: Bool
    /// The response head in an encoding that the caller chooses; opaque to the store.
    package var head: [UInt8]
    /// The length of the whole body in bytes, if known.
    package var total: Int64?
    package var created: WallTime
    /// False if the response must not be stored: the object has no name on disk and is never looked
    /// up.
    package var isStorable: Bool
    /// True if the whole body will be fetched, so that reserving its blocks pays.
    package var expectsWholeBody: Bool
    /// The whole body if it is known already: `total` bytes, at most `StoredObject.shortLimit`.
    ///
    /// It is written together with the header; a named object is then complete when it is created.
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
