// The dependencies for reading stored playlists without a player's request.
package import HLS
package import Model
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

    /// Changes whenever an origin or a parent goes down, and whenever one is up again that was down.
    var healthVersion: Int { health.version &+ parents.health.version }
}
