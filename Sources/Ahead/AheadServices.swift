// The dependencies of look-ahead, feeds and downloads on the rest of the daemon.
package import HTTP
package import Library
package import Logging
package import Model
package import Origin
package import Playlists
package import Routing
package import Store
package import URISyntax

/// The services that look-ahead, feeds and downloads use.
package final class AheadServices: Sendable {
    package let store: ObjectStore
    package let names: ResourceNames
    package let sessions: SessionTable
    package let keys: KeyTable
    package let settings: ProxySettings
    package let counters: Counters
    package let flights: Flights
    package let playlists: PlaylistReader
    package let playlistMemory: PlaylistMemory
    package let addresses: OwnAddresses
    package let concurrency: ConcurrencyReport
    package let crashes: CrashHistory
    /// Signs links if the daemon has a token; otherwise nil.
    package let signer: Signer?
    package let log: Logger
    /// Returns the entry of the title that a text names; nil if it names none.
    package let titleStart: StoreAdministration.NamedStart
    /// Resolves a player's reference that is relative to the URL of its request in this session;
    /// nil unless the daemon wrote it for the session.
    package let originURLOfNext: @Sendable (String, RequestHead, SessionID) -> AbsoluteURL?

    package init(
        store: ObjectStore, names: ResourceNames, sessions: SessionTable, keys: KeyTable,
        settings: ProxySettings, counters: Counters, flights: Flights, playlists: PlaylistReader,
        playlistMemory: PlaylistMemory, addresses: OwnAddresses, concurrency: ConcurrencyReport,
        crashes: CrashHistory, signer: Signer?, log: Logger,
        titleStart: @escaping StoreAdministration.NamedStart,
        originURLOfNext: @escaping @Sendable (String, RequestHead, SessionID) -> AbsoluteURL?
    ) {
        self.store = store
        self.names = names
        self.sessions = sessions
        self.keys = keys
        self.settings = settings
        self.counters = counters
        self.flights = flights
        self.playlists = playlists
        self.playlistMemory = playlistMemory
        self.addresses = addresses
        self.concurrency = concurrency
        self.crashes = crashes
        self.signer = signer
        self.log = log
        self.titleStart = titleStart
        self.originURLOfNext = originURLOfNext
    }
}
