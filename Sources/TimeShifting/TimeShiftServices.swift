// The dependencies of time shift windows and recordings on the rest of the daemon.
package import Library
package import Logging
package import Model
package import Origin
package import Playlists
package import Store
package import URISyntax

/// The services that the keeper's thread uses.
package struct TimeShiftServices: Sendable {
    package let store: ObjectStore
    package let names: ResourceNames
    package let sessions: SessionTable
    package let playlistMemory: PlaylistMemory
    package let cookies: CookieJars
    package let counters: Counters
    package let flights: Flights
    package let playlists: PlaylistReader
    package let timeShift: TimeShiftTable
    package let timeShiftThread: TimeShiftThread
    package let crashes: CrashHistory
    package let log: Logger
    /// Signs links if the daemon has a token; otherwise nil.
    package let signer: Signer?
    /// The prefix of all paths of the daemon; "" or "/x".
    package let basePath: String
    /// Returns the origin URL that a text names; nil if it names none.
    package let originURL: @Sendable (String) -> AbsoluteURL?

    package init(
        store: ObjectStore, names: ResourceNames, sessions: SessionTable,
        playlistMemory: PlaylistMemory, cookies: CookieJars, counters: Counters, flights: Flights,
        playlists: PlaylistReader, timeShift: TimeShiftTable, timeShiftThread: TimeShiftThread,
        crashes: CrashHistory, log: Logger, signer: Signer?, basePath: String,
        originURL: @escaping @Sendable (String) -> AbsoluteURL?
    ) {
        self.store = store
        self.names = names
        self.sessions = sessions
        self.playlistMemory = playlistMemory
        self.cookies = cookies
        self.counters = counters
        self.flights = flights
        self.playlists = playlists
        self.timeShift = timeShift
        self.timeShiftThread = timeShiftThread
        self.crashes = crashes
        self.log = log
        self.signer = signer
        self.basePath = basePath
        self.originURL = originURL
    }
}
