// The flags of `sluice serve`, in the groups that its help shows.
import ArgumentParser

/// The options for listening.
package struct ListeningOptions: ParsableArguments {
    package init() {}

    @Option(
        help:
            "IPv4 or IPv6 address to listen on; repeatable; default 127.0.0.1."
    )
    var bind: [String] = []

    @Option(
        help:
            "TCP port, 0...65535 (0: any free port), or off to listen for TLS only, which needs a tls-port; default 9000."
    )
    var port: String?

    @Option(
        help:
            "TCP port for TLS with HTTP/2 and HTTP/1.1, on every bound address, 0...65535 (0: any free port); default none."
    )
    var tlsPort: String?

    @Option(
        help: ArgumentHelp(
            "PEM file of a server certificate and its chain; repeatable, with one tls-key each.",
            valueName: "FILE"),
        completion: .file())
    var tlsCert: [String] = []

    @Option(
        help: ArgumentHelp(
            "PEM file of the private key of the tls-cert at the same position, without a passphrase.",
            valueName: "FILE"),
        completion: .file())
    var tlsKey: [String] = []

    @Option(
        help:
            "Multipath TCP (RFC 8684) with players and origins: off, auto (where the kernel has it, but not to origins on loopback) or on; default auto.",
        completion: .list(["auto", "off", "on"]))
    var mptcp: String?

    @Flag(help: "Listen beyond loopback without a token; default off.")
    var allowRemote = false

    @Option(
        help:
            "Access token that entry URLs must carry, 8...200 characters; required for a bind beyond loopback."
    )
    var token: String?

    @Option(
        help: ArgumentHelp(
            "File of the keys that all nodes of a cluster share, made by 'sluice cluster key': links carry what a session needs, sealed, so that each node answers them; default none.",
            valueName: "FILE"),
        completion: .file())
    var clusterKey: String?

    @Option(
        help: """
            Host name or IP address under which players reach this daemon, besides loopback names \
            and the addresses in --bind; with --bind 0.0.0.0 or [::], name each one; repeatable.
            """
    )
    var hostName: [String] = []

    @Flag(
        help:
            "Trust X-Forwarded-Proto, -Host and -Prefix of a proxy in front, and X-Forwarded-For for the access log; default off."
    )
    var trustForwarded = false

    @Option(
        help:
            "Path prefix of every URL written into playlists, for use behind another proxy, as in /path; default none."
    )
    var basePath: String?

    @Flag(help: "Write absolute URLs into playlists instead of root-relative ones; default off.")
    var absoluteUrls = false

    @Option(
        help: """
            A web origin whose pages may send credentials and reach private origins \
            (scheme://host[:port]); repeatable.
            """
    )
    var corsOrigin: [String] = []
}

/// The options for the cache.
package struct StorageOptions: ParsableArguments {
    package init() {}

    @Option(
        help:
            "Cache folder; default $XDG_CACHE_HOME/sluice, else ~/.cache/sluice, else /var/cache/sluice.",
        completion: .directory)
    var cacheDir: String?

    @Option(
        help:
            "Maximum size of the cache, 1MB...1000TB with suffix KB, MB, GB or TB; default 10GB.")
    var cacheSize: String?

    @Option(help: "Minimum free space to leave on the disk, 0...1000TB with suffix; default 512MB.")
    var minFree: String?

    @Option(
        help: ArgumentHelp(
            "Remove what nobody has used for this time, except for pinned titles: an integer with suffix m, h, d or w, at least 1h, or off; looked for once an hour; default off.",
            valueName: "TIME"))
    var maxUnused: String?

    @Option(
        help: ArgumentHelp(
            "Accepted for compatibility with 0.5 and ignored: titles are evicted whole.",
            visibility: .hidden))
    var retention: String?

    @Option(
        help: "How stored responses are reused: media, rfc, offline or refresh; default media.",
        completion: .list(["media", "rfc", "offline", "refresh"]))
    var policy: String?

    @Option(
        help: ArgumentHelp(
            "Policy for one origin: host or host:port, with wildcards * and ?; repeatable.",
            valueName: "HOST=POLICY"))
    var originPolicy: [String] = []

    @Option(
        help:
            "How URLs of playback are normalised for keys: off, standard (spelling and signatures of known CDNs) or auto (also learned signatures); default standard.",
        completion: .list(["off", "standard", "auto"]))
    var keys: String?

    @Option(
        help: ArgumentHelp(
            "A rule for the keys of one origin: sort, unique, drop NAME, keep NAME, tier, fold, host, segment or signatures; repeatable.",
            valueName: "HOST=RULE"))
    var keyRule: [String] = []
}

/// The options for origins and mounts.
package struct OriginOptions: ParsableArguments {
    package init() {}

    @Flag(
        help: """
            Allow origins on private, loopback and link-local addresses, but not metadata services \
            of clouds; default off.
            """
    )
    var allowPrivate = false

    @Option(
        help: "Allow this origin host even if its address is private; repeatable.")
    var allowHost: [String] = []

    @Option(
        help: ArgumentHelp(
            "Origin that may be fetched from, as host or host:port with wildcards * and ?: all others are refused; repeatable; default all.",
            valueName: "HOST"))
    var onlyOrigin: [String] = []

    @Option(
        help: "PEM file of certificates to trust instead of the system's.",
        completion: .file())
    var caFile: String?

    @Option(
        help: ArgumentHelp(
            "Proxy for matching origins: http, https, socks5 or socks5h://[USER:PASSWORD@]HOST:PORT, or direct; repeatable, the first matching HOST applies.",
            valueName: "HOST=URL"))
    var originProxy: [String] = []

    @Option(
        help: ArgumentHelp(
            "Cache to send misses to instead of origins: another sluice at http[s]://[:TOKEN@]HOST:PORT, or any other by a template such as http://HOST:PORT/{scheme}/{host}{path}; requests with headers or cookies of a session bypass it. Repeatable: each object has one parent.",
            valueName: "URL"))
    var parent: [String] = []

    @Option(
        help: ArgumentHelp(
            "Like parent, for a cache that may see headers and cookies of sessions; repeatable.",
            valueName: "URL"))
    var trustedParent: [String] = []

    @Option(
        help: ArgumentHelp(
            "PEM file of certificates to trust for one origin instead of all others; repeatable.",
            valueName: "HOST=FILE"))
    var originCa: [String] = []

    @Option(
        help: ArgumentHelp(
            "PEM files of the client certificate and key for one origin; repeatable.",
            valueName: "HOST=CERT,KEY"))
    var originCert: [String] = []

    @Option(
        help: ArgumentHelp(
            "Network interface or local address for connections to one origin; repeatable.",
            valueName: "HOST=NAME"))
    var originInterface: [String] = []

    @Option(
        help: ArgumentHelp(
            "Addresses to use for a host instead of looking up its name, private ones included; repeatable.",
            valueName: "HOST:PORT=ADDRESS"))
    var resolve: [String] = []

    @Option(
        help: ArgumentHelp(
            "Accepted public keys of one origin, as sha256//BASE64, separated by semicolons; repeatable.",
            valueName: "HOST=PINS"))
    var originPin: [String] = []

    @Option(
        help:
            "Connect to at most two origins named by a playlist before the player requests their segments: on or off; default on.",
        completion: .list(["on", "off"]))
    var earlyConnect: String?

    @Option(
        help: ArgumentHelp(
            "Server for DNS over HTTPS (RFC 8484) to look up origins; default the system's resolver.",
            valueName: "URL"))
    var dohUrl: String?

    @Flag(help: "Use TCP Fast Open (RFC 7413) to origins; default off.")
    var tcpFastOpen = false

    @Flag(
        help:
            "Mark packets to origins by differentiated services code point: AF31 for what players wait for, LE for downloads; default off."
    )
    var dscp = false

    @Option(
        help:
            "Keep the queue of the line to origins short: off, players (while players use the daemon) or always (downloads also without players); default off.",
        completion: .list(["off", "players", "always"]))
    var yield: String?

    @Flag(
        help:
            "Keep TLS sessions with origins across restarts, in a file of the cache folder readable by its owner only; default off."
    )
    var keepTlsTickets = false

    @Option(
        help: ArgumentHelp(
            "Serve an origin under a path, cached by the rules of RFC 9111; repeatable.",
            valueName: "PATH=URL"))
    var mount: [String] = []

    @Option(
        help: ArgumentHelp(
            "Header field that a mount sends to its own origin with every request, such as /demo/='X-Api-Key: ...'; repeatable.",
            valueName: "PATH=FIELD"))
    var mountHeader: [String] = []

    @Option(
        help:
            "Kind of cache for mounts: gateway (shared, obeys CDN-Cache-Control), shared or private; default gateway.",
        completion: .list(["gateway", "shared", "private"]))
    var mountCache: String?

    @Option(help: "Maximum concurrent origin transfers, 1...256; default 32.")
    var slots: String?

    @Option(
        help:
            "Additional concurrent transfers for playlists, keys, init sections and short ranges, 1...64; default 16."
    )
    var expressSlots: String?

    @Option(help: "Maximum concurrent transfers per origin host, 0...256 (0: no limit); default 0.")
    var hostLimit: String?

    @Option(
        help: ArgumentHelp(
            "Maximum concurrent transfers to one host, 1...256, in place of host-limit; redirected ones count too: host or host:port, with wildcards * and ?; repeatable.",
            valueName: "HOST=N"))
    var originLimit: [String] = []

    @Option(
        help:
            "Seconds that a request waits for a slot before it is answered with 503, 1...3600; default 30."
    )
    var slotTimeout: String?

    @Option(
        help:
            "Seconds to look up an origin's name and connect to it, TLS handshake included, 1...300; default 5."
    )
    var connectTimeout: String?

    @Option(
        help:
            "Seconds for an origin to begin its response (a player's first attempt has 4 unless the origin is known to be slow), 1...300; default 15."
    )
    var firstByteTimeout: String?

    @Option(
        help:
            "Seconds without a byte before an origin transfer is considered stalled, 1...300; default 5."
    )
    var stallTimeout: String?
}

/// The options for look-ahead and downloads.
package struct AheadOptions: ParsableArguments {
    package init() {}

    @Option(
        help:
            "How far to prefetch ahead of players: off, auto (depends on the speed of the line; off with --host-limit 1, and with --cluster-key for live streams, or for all without --shared-store) or 1 to 600 seconds; default auto.",
        completion: .list(["auto", "off"]))
    var lookAhead: String?

    @Option(
        help: ArgumentHelp(
            "Look-ahead for one origin: host or host:port, with wildcards * and ?; repeatable.",
            valueName: "HOST=MODE"))
    var originLookAhead: [String] = []

    @Option(
        help:
            "Maximum bytes that a transfer may be ahead of its nearest reader, 1MB...1000TB with suffix; default 32MB."
    )
    var readAhead: String?

    @Option(
        help:
            "Number of segments to store from the start of each title, 1...1000000; later ones are passed through; default all."
    )
    var keepHead: String?

    @Option(
        help: ArgumentHelp(
            "Number of segments to store for one origin; repeatable.",
            valueName: "HOST=SEGMENTS"))
    var originKeepHead: [String] = []

    @Option(
        help:
            "Where players get segments after those of keep-head: stream (through the daemon) or origin (playlists link to the origin); default stream.",
        completion: .list(["stream", "origin"]))
    var beyondHead: String?

    @Option(
        help:
            "How to choose the number of concurrent transfers of downloads and look-ahead: fixed:N, table or probe, at most 32; default probe.",
        completion: .list(["probe", "table"]))
    var concurrency: String?

    @Option(
        help:
            "Maximum total rate of downloads in bytes per second, 1KB...1000TB with suffix; default no limit."
    )
    var downloadRate: String?

    @Option(
        help:
            "Maximum bytes of downloads per calendar day, 0...1000TB with suffix; default no limit."
    )
    var downloadBudget: String?

    @Option(
        help: ArgumentHelp(
            "Time of day without downloads, as in 18:00-23:30; default none.",
            valueName: "HH:MM-HH:MM"))
    var quietHours: String?
}

/// The options for logs, console and configuration.
package struct LogOptions: ParsableArguments {
    package init() {}

    @Option(
        help: "trace, debug, info, notice, warning, error or critical; default notice.",
        completion: .list(["trace", "debug", "info", "notice", "warning", "error", "critical"]))
    var logLevel: String?

    @Option(
        help:
            "text, or json (one object per line with time, level, message and metadata); default text.",
        completion: .list(["text", "json"]))
    var logFormat: String?

    @Option(
        help:
            "File for one line per request, reopened on SIGHUP; - for standard output.",
        completion: .file())
    var accessLog: String?

    @Option(
        help: ArgumentHelp(
            "hls.js as an ES module, for playback on the console in browsers without native HLS; default share/sluice/hls.mjs below the prefix, then where make setup puts it.",
            valueName: "FILE"),
        completion: .file())
    var consolePlayer: String?

    @Option(
        help:
            "Pictures of titles in the console, extracted from stored video by ffmpeg: off, or on if its decoders can be trusted with bytes of the origins; default off.",
        completion: .list(["off", "on"]))
    var titlePictures: String?

    @Option(
        help: "JSON file with any of these settings, named without leading dashes.",
        completion: .file())
    var config: String?
}
