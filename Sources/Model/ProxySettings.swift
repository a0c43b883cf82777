// Settings of the proxy layer that every request may consult; fixed at start.
package import CachePolicy
package import Endless
package import HLS
import HTTP
package import Lookahead
package import Posix
package import Routing
package import Upstream
package import URISyntax

/// The settings of the proxy layer: each comment states unit, default and range.
package struct ProxySettings: Sendable {
    /// Keys, and policies by origin.
    package var keys = KeySettings()
    /// Policy of playback URLs; mounts have `rfc` unless this is `offline` or `refresh`.
    package var policy: Policy {
        get { keys.policy }
        set { keys.policy = newValue }
    }
    package var mounts: [Mount] = []
    /// The caches that misses go to before origins.
    package var parents = Parents()
    /// The object store that nodes share as their second level; nil for none.
    package var sharedStore: SharedStoreSettings?
    /// Where requests are logged: a path, `-` for standard output; nil for nowhere.
    package var accessLog: String?
    /// The path of hls.js for the console; nil looks next to the executable.
    package var consolePlayer: String?
    /// The kind of cache that Sluice is for mounts.
    ///
    /// Default `gateway`, whoever can reach the daemon: a mount acts for its origin, so cache
    /// directives for gateways apply to it (RFC 9111 section 1, RFC 9213).
    package var mountKind = CacheKind.gateway
    /// Names, besides loopback ones, that a `Host` field may carry; lower case, without port.
    package var hostNames: Set<String> = []
    /// Access token; nil when none is needed.
    package var token: String?
    /// The keys that all nodes of a cluster share, the one that seals first; empty for none.
    package var clusterKeys: [ClusterKey] = []
    /// Origins (scheme://host[:port]) that may send credentials with cross-origin requests.
    package var credentialedOrigins: Set<String> = []
    /// Whether origins may have private addresses, in the sense of `AddressPolicy`.
    package var allowsPrivate = false
    /// Hosts that may have private addresses; lower case.
    package var privateHosts: Set<String> = []
    /// Hosts that are shown a client certificate: for pages of other sites they count as private.
    package var certificateHosts: [KeyGlob] = []
    /// If true, playlists contain absolute URLs, made from the request's Host.
    package var writesAbsoluteURLs = false
    /// A path prepended to every URL in playlists, for use behind another proxy; "" or "/x".
    package var basePath = ""

    /// True for a path that may stand before the path of a URL: no host, query or fragment, and
    /// nothing that a URL must encode.
    package static func isBasePath(_ text: String) -> Bool {
        text.hasPrefix("/") && !text.hasPrefix("//")
            && text.utf8.allSatisfy { PercentCoding.Allowed.path.contains($0) }
    }

    /// If true, X-Forwarded-Proto, -Host and -Prefix are trusted.
    package var trustsForwarded = false
    package var playlistLimits = PlaylistLimits.standard
    /// A reader joins a flight whose watermark is at most this many bytes behind; farther ahead it
    /// gets a flight of its own.
    ///
    /// Default 1 MiB: about a second of a fast line's round trips.
    package var joinDistance: Int64 = 1 << 20
    /// A transfer is at most about this many bytes ahead of its nearest reader.
    ///
    /// Default 32 MB: more than any segment, and minutes of a film.
    package var readAhead: Int64 = 32_000_000
    /// A transfer that was paused for this long is cancelled; its reader requests the rest when it
    /// gets there.
    ///
    /// Default 10 s: origins close connections that receive nothing for a minute.
    package var readAheadPatience = Interval.seconds(10)
    /// An abandoned transfer with no more than this many bytes left is finished.
    ///
    /// Default 256 KiB.
    package var finishRemainder: Int64 = 256 << 10
    /// An abandoned transfer that is half done is finished if at most this many bytes are left.
    ///
    /// Default 8 MiB: half of a large segment, not half of a film.
    package var finishHalf: Int64 = 8 << 20
    /// Time that an abandoned transfer continues in case the player returns.
    ///
    /// Default 300 ms.
    package var abandonGrace = Interval.milliseconds(300)
    /// How much is kept of a live stream that is one endless body; nil fetches such a stream for
    /// each viewer from the first byte that is kept, like a file.
    ///
    /// Default 30 s, at most 64 MB.
    package var liveWindow: EdgeWindow.Limits? = EdgeWindow.Limits()
    /// Time during which a failing origin is retried before the player gets an error.
    ///
    /// Default 7 s: players give up after eight to ten.
    package var patience = Interval.seconds(7)
    /// Time from the first request to an origin until the response that players need: the head for
    /// media, all of a playlist or a key.
    ///
    /// Default 30 s: four times what players wait.
    package var answerLimit = Interval.seconds(30)
    /// Consecutive retries without one byte of progress.
    ///
    /// Default 4, 0...20.
    package var retries = 4
    /// Total memory for rewritten playlists, in bytes.
    ///
    /// Default 8 MiB.
    package var rewrittenBytes = 8 << 20

    /// What decides how many transfers look-ahead runs; default `probe`.
    package var concurrency = ConcurrencyPlan.probe

    /// How far look-ahead runs for origins without a setting of their own.
    package var lookAhead = LookaheadMode.off
    package var lookAheadLimits = LookaheadLimits()
    /// Segments that are stored from the start of a title; nil for all.
    package var keepHead: Int?
    /// If true, players fetch what follows the stored head of a title from the origins themselves.
    package var leavesRestToOrigins = false
    /// If true, connections to the origins that a playlist names are opened before players request
    /// anything from them.
    package var connectsEarly = true
    /// Concurrent transfers to one host, enforced by the upstream client; 0 for no limit.
    package var hostLimit = 0
    /// The same for single hosts, in place of `hostLimit`.
    package var hostLimits = HostLimits()

    /// How fast stored media is sent to players.
    package var pace = Pace.off

    /// Timeouts of origin transfers.
    package var timeouts = TransferTimeouts()

    package init() {}
}

extension ProxySettings {
    /// Returns the most concurrent transfers to the host of an origin; 0 for no limit.
    package func hostLimit(of origin: Origin) -> Int {
        let own = hostLimits.limit(of: origin)
        return own > 0 ? own : hostLimit
    }

    /// Returns how far look-ahead goes at origins without a setting of their own.
    ///
    /// Mode auto means not at all with a limit of one connection to a host, as for accounts for one
    /// viewer. In a cluster other nodes than that of the list answer for its segments: they find
    /// what was fetched here only in the shared store, which keeps no live streams, and nothing of
    /// sessions with headers or cookies, which make a list private.
    package func lookAhead(isLive: Bool, isPrivate: Bool) -> LookaheadMode {
        guard lookAhead == .auto else { return lookAhead }
        if hostLimit == 1 { return .off }
        let isOneOfMany = !clusterKeys.isEmpty
        return isOneOfMany && (isLive || isPrivate || sharedStore == nil) ? .off : .auto
    }

    /// True if look-ahead is enabled for any origin.
    package func mayLookAhead(_ keys: KeySettings) -> Bool {
        lookAhead != .off || keys.origins.all.contains { $0.lookAhead.map { $0 != "off" } ?? false }
    }

    /// True if any origin may have a private address, or is shown a client certificate.
    package var reachesPrivate: Bool {
        allowsPrivate || !privateHosts.isEmpty || !certificateHosts.isEmpty
    }

    /// True if an origin may have a private address, or is shown a client certificate: a page
    /// cannot reach by itself what it has.
    package func mayBePrivate(_ host: String) -> Bool {
        if allowsPrivate { return true }
        var name = ASCII.lowercased(host)
        // A name with a final dot is the same host, and a proxy accepts either spelling.
        if name.hasSuffix(".") { name.removeLast() }
        if privateHosts.contains(name) { return true }
        guard !certificateHosts.isEmpty else { return false }
        // As routes to origins match them, whatever the spelling of an address.
        let canonical = OriginNames.canonical(name)
        return certificateHosts.contains { $0.matches(canonical) }
    }

    /// True if a stored response may come from a private address.
    ///
    /// `finalURL` is the URL that responded, after redirects; one that cannot be read may be any.
    package func mayBePrivate(finalURL: String) -> Bool {
        guard reachesPrivate else { return false }
        return (try? AbsoluteURL(finalURL)).map { mayBePrivate($0.asciiHost) } ?? true
    }
}
