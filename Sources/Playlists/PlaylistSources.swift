// The dependencies for reading stored playlists without a player's request.
package import HLS
package import Model
package import Store

/// The store of playlists, the naming of their resources and the health of origins.
package struct PlaylistSources: Sendable {
    package let store: ObjectStore
    package let names: ResourceNames
    package let live: LiveMemory
    package let health: OriginHealth
    package let memory: PlaylistMemory
    package let revival: Revival
    package let limits: PlaylistLimits

    package init(
        store: ObjectStore, names: ResourceNames, live: LiveMemory, health: OriginHealth,
        memory: PlaylistMemory, revival: Revival, limits: PlaylistLimits
    ) {
        self.store = store
        self.names = names
        self.live = live
        self.health = health
        self.memory = memory
        self.revival = revival
        self.limits = limits
    }
}
