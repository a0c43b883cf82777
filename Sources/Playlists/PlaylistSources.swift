// What is asked when stored playlists are read without a player's request.
package import HLS
package import Model
package import Store

/// Where stored playlists lie, what their URLs mean, and which origins answer.
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
