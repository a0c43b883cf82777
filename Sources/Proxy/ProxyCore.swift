/// Everything that requests share, whichever loop they run on.
import CachePolicy
import HTTP
package import Logging
package import Posix
import Routing
package import Store
import Synchronization
package import Upstream
import URISyntax

/// The shared part of the proxy: immutable, or guarded inside.
package final class ProxyCore: Sendable {
    package let settings: ProxySettings
    package let store: ObjectStore
    package let counters: Counters
    package let log: Logger
    package let sessions: SessionTable
    package let flights: Flights
    /// True when others than the user of this machine can reach the daemon.
    package let isShared: Bool
    let readers: ReaderCounts
    let signer: Signer?
    let router: Router
    /// Bytes of rewritten playlists in memory.
    let rewrittenBytes = Atomic<Int>(0)
    private let ownAuthorities = Mutex<Set<String>>([])

    /// Starts the upstream loop; blocks until it runs.
    package init(
        settings: ProxySettings, store: ObjectStore, upstream: UpstreamConfiguration,
        isShared: Bool, log: Logger
    ) throws {
        self.settings = settings
        self.store = store
        self.log = log
        self.isShared = isShared
        counters = Counters()
        readers = ReaderCounts()
        sessions = SessionTable(store: store)
        signer = settings.token.map(Signer.init(token:))
        router = Router(mounts: settings.mounts)
        flights = try Flights(
            core: FlightCore(
                store: store, settings: settings, counters: counters, readers: readers,
                isShared: isShared),
            configuration: upstream)
    }

    // MARK: Who we are

    /// Tells the proxy the addresses that it listens on; until then no `Host` is ours.
    package func listen(on addresses: [SocketAddress]) {
        var names: Set<String> = []
        for address in addresses {
            var hosts = settings.hostNames.union(["localhost", "127.0.0.1", "[::1]"])
            hosts.insert(address.bytes.count == 16 ? "[\(address.host)]" : address.host)
            for host in hosts {
                names.insert("\(host):\(address.port)")
                if address.port == 80 { names.insert(host) }
            }
        }
        ownAuthorities.withLock { $0 = names }
    }

    /// Whether a Host value is one that this daemon is known by. Others mean that a name was bent
    /// to our address by somebody else (DNS rebinding). A configured name counts with any port,
    /// since another proxy may stand before us.
    func isOwn(host: String) -> Bool {
        let host = HTTP.ASCII.lowercased(host)
        if ownAuthorities.withLock({ $0.contains(host) }) { return true }
        guard !settings.hostNames.isEmpty else { return false }
        let name = host.hasPrefix("[") ? host : String(host.prefix { $0 != ":" })
        return settings.hostNames.contains(name)
    }

    /// Whether a URL leads back to this daemon.
    func isOwn(_ url: AbsoluteURL) -> Bool {
        let host = url.hasIPv6Host && !url.asciiHost.hasPrefix("[") ? "[\(url.asciiHost)]" : url.asciiHost
        return ownAuthorities.withLock { $0.contains("\(host):\(url.port)") }
    }

    // MARK: Links

    /// The key text of a resource: shared by all sessions, except where credentials or delivery
    /// directives make each answer its own.
    func keyText(_ url: AbsoluteURL, session: Session, isPlaylist: Bool) -> String {
        CacheKeyText.text(
            for: url, session: isPlaylist && session.hasCredentials ? session.id.text : nil)
    }

    /// The handle of a URL in a session; long URLs go to the persistent table.
    func handle(for url: AbsoluteURL, session: SessionID) -> Handle {
        guard url.bytes.count > Handle.longestURL else {
            return Handle(session: session, target: .url(url))
        }
        let name = Array(SHA256Digest.of(url.bytes).prefix(16))
        store.saveLongURL(id: name, url: url.text)
        return Handle(session: session, target: .name(name))
    }

    /// The URL of a handle; nil for a short form that the table does not know (any more).
    func url(of handle: Handle) -> AbsoluteURL? {
        switch handle.target {
        case .url(let url): url
        case .name(let name): store.longURL(id: name).flatMap { try? AbsoluteURL($0) }
        }
    }
}
