// The dependencies for reading stored playlists without a player's request.
package import HLS
package import Model
import Routing
package import Store

/// The store of playlists, the naming of their resources, the health of origins and of parents.
package struct PlaylistSources: Sendable {
    package let store: ObjectStore
    package let names: ResourceNames
    package let live: LiveMemory
    package let health: OriginHealth
    package let parents: ParentChoice
    package let memory: PlaylistMemory
    package let revival: Revival
    package let limits: PlaylistLimits

    package init(
        store: ObjectStore, names: ResourceNames, live: LiveMemory, health: OriginHealth,
        parents: ParentChoice, memory: PlaylistMemory, revival: Revival, limits: PlaylistLimits
    ) {
        self.store = store
        self.names = names
        self.live = live
        self.health = health
        self.parents = parents
        self.memory = memory
        self.revival = revival
        self.limits = limits
    }

    /// Returns the index's entries of a session's playlists, those used last first.
    ///
    /// Where a URL does not tell that an entry, or an entry of a channel list, is a playlist, only
    /// its bytes do: it has the role of media files, which are returned too unless they are too
    /// long for a playlist.
    ///
    /// Blocks on the disk.
    ///
    /// - Parameters:
    ///   - session: the session.
    ///   - most: the most entries of each role.
    /// - Returns: the entries; those that are named as playlists come first.
    func storedLists(of session: Session, most: Int) -> [StoreEntry] {
        let longest = Int64(session.limits(ofOrigins: limits).byteCount)
        let rows = store.rows(ofTitle: session.id.number)
            .filter { $0.total.map { $0 <= longest } ?? true }
        return [ResourceRole.playlist, .media].flatMap { role -> ArraySlice<StoreEntry> in
            rows.filter { $0.role == role.letter }.sorted { $0.lastUsed > $1.lastUsed }.prefix(most)
        }
    }

    /// Changes whenever an origin or a parent goes down, and whenever one is up again that was down.
    var healthVersion: Int { health.version &+ parents.health.version }
}
