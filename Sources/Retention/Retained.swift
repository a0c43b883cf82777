// What is kept and in which order it may go: the facts that a retention policy decides by.
//
// Pure: names, sizes and times come in, the name of the next victim comes out. The store calls it
// with what is on the disk, `sluice-lab simulate` with what a trace says.

/// What an object is to its title; the order of losses starts here.
package enum RetentionKind: UInt8, Sendable, CaseIterable {
    /// Playlists, media initialization sections and keys: small, and without them nothing plays.
    case structure
    /// Media segments, parts and whole films.
    case media
    /// Whatever else passed through, mounts' resources above all.
    case other
    /// A media segment or part of a playlist without `EXT-X-ENDLIST`: worth little once it has
    /// left the window.
    case live
}

/// The facts of one object, as a policy is told them when the object is kept.
package struct Retained: Sendable, Equatable {
    /// What it takes on the disk, in bytes; 0 or more.
    package var bytes: Int64
    /// The title it was fetched for; 0 for none.
    package var title: UInt64
    package var kind: RetentionKind
    /// False for what was fetched ahead and nobody has read yet.
    package var isRead: Bool
    /// When it was last used, in seconds since 1970.
    package var lastUsed: UInt32
    /// How often it was used, as far as known; it stays at 255.
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
