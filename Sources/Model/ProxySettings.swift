// Settings of the proxy layer that every request may consult; fixed at start.
package import CachePolicy
package import HLS
import HTTP
package import Lookahead
package import Posix
package import Routing
package import Upstream
import URISyntax

/// One table: unit, default and range stand with each setting.
package struct ProxySettings: Sendable {
    /// Keys, and policies by origin.
    package var keys = KeySettings()
    /// Policy of playback URLs; mounts have `rfc` unless this is `offline` or `refresh`.
    package var policy: Policy {
        get { keys.policy }
        set { keys.policy = newValue }
    }
    package var mounts: [Mount] = []
    /// Where requests are logged: a path, `-` for standard output; nil for nowhere.
    package var accessLog: String?
    /// The file of hls.js for the console; nil looks beside the program.
    package var consolePlayer: String?
    /// The kind of cache that mounts are.
    ///
    /// Default `gateway`, whoever can reach the daemon: a mount stands in for its origin, and what an
    /// origin says of caches in front of it is said to us (RFC 9111 section 1, RFC 9213).
    package var mountKind = CacheKind.gateway
    /// Names, besides loopback ones, that a `Host` field may carry; lower case, without port.
    package var hostNames: Set<String> = []
    /// Access token; nil when none is needed.
    package var token: String?
    /// Origins (scheme://host[:port]) that may send credentials with cross-origin requests.
    package var credentialedOrigins: Set<String> = []
    /// Whether origins may have private addresses, as `AddressPolicy` has it.
    package var allowsPrivate = false
    /// Hosts that may have private addresses; lower case.
    package var privateHosts: Set<String> = []
    /// True writes absolute URLs into playlists, from the request's Host.
    package var writesAbsoluteURLs = false
    /// A path before every URL written into playlists, for use behind another proxy; "" or "/x".
    package var basePath = ""
    /// True trusts X-Forwarded-Proto, -Host and -Prefix.
    package var trustsForwarded = false
    package var playlistLimits = PlaylistLimits.standard
    /// A reader joins a flight whose watermark is at most this many bytes behind; farther ahead it
    /// gets a flight of its own.
    ///
    /// Default 1 MiB: about a second of a fast line's round trips.
    package var joinDistance: Int64 = 1 << 20
    /// A transfer runs ahead of its nearest reader by at most about this many bytes.
    ///
    /// Default 32 MB: more than any segment, and minutes of a film.
    package var readAhead: Int64 = 32_000_000
    /// A transfer held back for so long is ended; its reader asks for the rest when it is there.
    ///
    /// Default 10 s: origins close connections that take nothing for a minute.
    package var readAheadPatience = Interval.seconds(10)
    /// An abandoned transfer with no more than this many bytes left is finished.
    ///
    /// Default 256 KiB.
    package var finishRemainder: Int64 = 256 << 10
    /// An abandoned transfer that is half done is finished if no more than this many bytes are left.
    ///
    /// Default 8 MiB: half of a large segment, not half of a film.
    package var finishHalf: Int64 = 8 << 20
    /// Time an abandoned transfer is left running in case the player comes back.
    ///
    /// Default 300 ms.
    package var abandonGrace = Interval.milliseconds(300)
    /// Time within which a failing origin is asked again before the player is told.
    ///
    /// Default 7 s:
    /// players give up at eight to ten.
    package var patience = Interval.seconds(7)
    /// Time from the first request to an origin within which there must be an answer for players:
    /// the head of a medium, all of a playlist or a key.
    ///
    /// Default 30 s: four times what players wait.
    package var answerLimit = Interval.seconds(30)
    /// Requests sent again in a row without one byte of progress.
    ///
    /// Default 4, 0...20.
    package var retries = 4
    /// Rewritten playlists held in memory, in bytes over all.
    ///
    /// Default 8 MiB.
    package var rewrittenBytes = 8 << 20

    /// What decides how many transfers run ahead of players; default `probe`.
    package var concurrency = ConcurrencyPlan.probe

    /// How far to run ahead of players where no origin's settings say otherwise.
    package var lookAhead = LookaheadMode.off
    package var lookAheadLimits = LookaheadLimits()
    /// Segments that are kept from the start of a title; nil for all.
    package var keepHead: Int?
    /// True has players ask origins themselves for what comes behind the kept head of a title.
    package var leavesRestToOrigins = false
    /// True opens connections to the origins that a playlist names before the player asks for them.
    package var connectsEarly = true
    /// Transfers at once to one host, as the upstream client has it; 0 for no limit.
    package var hostLimit = 0

    /// How fast stored media is sent to players.
    package var pace = Pace.off

    /// Timeouts of origin transfers.
    package var timeouts = TransferTimeouts()

    package init() {}
}

extension ProxySettings {
    /// Whether anything may be fetched ahead of any player.
    ///
    /// - Parameter keys: the settings of origins that are in force.
    /// - Returns: false where the mode is off everywhere.
    package func mayLookAhead(_ keys: KeySettings) -> Bool {
        lookAhead != .off || keys.origins.all.contains { $0.lookAhead.map { $0 != "off" } ?? false }
    }
}

extension ProxySettings {
    /// Whether any origin may have a private address.
    package var reachesPrivate: Bool { allowsPrivate || !privateHosts.isEmpty }

    /// Whether an origin may have a private address.
    package func mayBePrivate(_ host: String) -> Bool {
        allowsPrivate || privateHosts.contains(ASCII.lowercased(host))
    }
}
