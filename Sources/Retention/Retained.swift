// The facts about stored objects that a retention policy decides by.
//
// Pure: takes names, sizes and times, and returns the name of the next victim. The store calls it
// for the objects on the disk, `sluice-lab simulate` for those of a trace.

/// The role of an object within its title, which determines the order of eviction.
package enum RetentionKind: UInt8, Sendable, CaseIterable {
    /// Playlists, media initialization sections and keys: small, but required for playback.
    case structure
    /// Media segments, parts and whole films.
    case media
    /// Everything else, mainly resources of mounts.
    case other
    /// A media segment or part of a playlist without `EXT-X-ENDLIST`: worth little once it has left
    /// the window.
    case live
}

/// The facts of one object, as given to a policy when the object is stored.
package struct Retained: Sendable, Equatable {
    /// The bytes it takes on the disk; 0 or more.
    package var bytes: Int64
    /// The title it was fetched for; 0 for none.
    package var title: UInt64
    package var kind: RetentionKind
    /// False if it was fetched ahead and nobody has read it yet.
    package var isRead: Bool
    /// The time of the last use, in seconds since 1970.
    package var lastUsed: UInt32
    /// The number of known uses; saturates at 255.
    package var uses: UInt8

    package init(
        bytes: Int64, title: UInt64 = 0, kind: RetentionKind = .media, isRead: Bool = true,
        lastUsed: UInt32, uses: UInt8 = 1
    ) {
        self.bytes = bytes
        self.title = title
        self.kind = kind
        self.isRead = isRead
        self.lastUsed = lastUsed
        self.uses = uses
    }
}
