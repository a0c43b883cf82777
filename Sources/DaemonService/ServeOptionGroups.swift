// The flags of `sluice serve`, in the groups that its help shows.
import ArgumentParser

/// The options for listening.
package struct ListeningOptions: ParsableArguments {
    package init() {}

    @Option(
        help:
            "Address to listen on; several may be given. An IPv4 or IPv6 address; default 127.0.0.1."
    )
    var bind: [String] = []

    @Option(
        help:
            "TCP port. 0...65535, 0 takes a free one, or off, with a tls-port, to listen for TLS only; default 9000."
    )
    var port: String?

    @Option(
        help:
            "TCP port for TLS, with HTTP/2 and HTTP/1.1, on every bound address. 0...65535, 0 takes a free one; default none."
    )
    var tlsPort: String?

    @Option(
        help: ArgumentHelp(
            "File of the certificate for TLS and those that lead to its authority, in PEM form; with a tls-key for each, several may be given.",
            valueName: "FILE"))
    var tlsCert: [String] = []

    @Option(
        help: ArgumentHelp(
            "File of the private key of the tls-cert in the same place, in PEM form, without a passphrase.",
            valueName: "FILE"))
    var tlsKey: [String] = []

    @Option(
        help:
            "Multipath TCP (RFC 8684) with players and origins: off, auto (where the kernel has it, but not to origins on loopback) or on; default auto."
    )
    var mptcp: String?

    @Flag(help: "Listen beyond loopback without a token; default off.")
    var allowRemote = false

    @Option(
        help:
            "Access token that entry URLs must carry; needed for a bind beyond loopback. 8...200 characters."
    )
    var token: String?

    @Option(
        help:
            "A Host name, besides loopback names, that this daemon is known by; several may be given."
    )
    var hostName: [String] = []

    @Flag(
        help:
            "Trust X-Forwarded-Proto, -Host and -Prefix of the proxy before us, and -For in the access log; default off."
    )
    var trustForwarded = false

    @Option(
        help:
            "Path before every URL written into playlists, behind another proxy. /path; default none."
    )
    var basePath: String?

    @Flag(help: "Write absolute URLs into playlists instead of root-relative ones; default off.")
    var absoluteUrls = false

    @Option(
        help: """
            A web origin whose pages may send credentials and reach private origins \
            (scheme://host[:port]); several may be given.
            """
    )
    var corsOrigin: [String] = []
}

/// The options for the cache.
package struct StorageOptions: ParsableArguments {
    package init() {}

    @Option(help: "Folder of the cache. Default $XDG_CACHE_HOME/sluice, else ~/.cache/sluice.")
    var cacheDir: String?

    @Option(
        help:
            "Bytes that the cache may take. 1MB...1000TB with suffix KB, MB, GB, TB; default 10GB.")
    var cacheSize: String?

    @Option(help: "Bytes to leave free on the disk. 0...1000TB with suffix; default 512MB.")
    var minFree: String?

    @Option(
        help: ArgumentHelp(
            "Accepted for the sake of 0.5 and ignored: titles are evicted whole.",
            visibility: .hidden))
    var retention: String?

    @Option(help: "How stored responses are reused: media, rfc, offline or refresh; default media.")
    var policy: String?

    @Option(
        help: ArgumentHelp(
            "Another policy for one origin: a host, or host:port, with * and ?; may be given several times.",
            valueName: "HOST=POLICY"))
    var originPolicy: [String] = []

    @Option(
        help:
            "How URLs of playback are normalised for keys: off, standard (spelling and signatures of known CDNs) or auto (also what was learnt); default standard."
    )
    var keys: String?

    @Option(
        help: ArgumentHelp(
            "A rule for the keys of one origin: sort, unique, drop NAME, keep NAME, tier, fold, host, segment or signatures; may be given several times.",
            valueName: "HOST=RULE"))
    var keyRule: [String] = []
}

/// The options for origins and mounts.
package struct OriginOptions: ParsableArguments {
    package init() {}

    @Flag(help: "Allow origins on private, loopback and link-local addresses; default off.")
    var allowPrivate = false

    @Option(
        help: "Allow this origin host although its address is private; may be given several times.")
    var allowHost: [String] = []

    @Option(help: "File of certificates to trust in place of the system's, in PEM form.")
    var caFile: String?

    @Option(
        help: ArgumentHelp(
            "A proxy to reach origins through, http, https, socks5 or socks5h://[USER:PASSWORD@]HOST:PORT, or direct; may be given several times, and the first HOST that fits decides.",
            valueName: "HOST=URL"))
    var originProxy: [String] = []

    @Option(
        help: ArgumentHelp(
            "A cache that misses go to before origins: another sluice at http[s]://[:TOKEN@]HOST:PORT, or any other with a template such as http://HOST:PORT/{scheme}/{host}{path}; it sees no headers and cookies of sessions. May be given several times: each object has one of them.",
            valueName: "URL"))
    var parent: [String] = []

    @Option(
        help: ArgumentHelp(
            "The same as parent, for a cache that may see headers and cookies of sessions; may be given several times.",
            valueName: "URL"))
    var trustedParent: [String] = []

    @Option(
        help: ArgumentHelp(
            "File of certificates to trust for one origin in place of all others, in PEM form; may be given several times.",
            valueName: "HOST=FILE"))
    var originCa: [String] = []

    @Option(
        help: ArgumentHelp(
            "Files of a certificate and its key for one origin that asks for them, in PEM form; may be given several times.",
            valueName: "HOST=CERT,KEY"))
    var originCert: [String] = []

    @Option(
        help: ArgumentHelp(
            "The network interface, or the address of this machine, that connections to one origin leave from; may be given several times.",
            valueName: "HOST=NAME"))
    var originInterface: [String] = []

    @Option(
        help: ArgumentHelp(
            "Addresses of a host in place of those that its name has, private ones too; may be given several times.",
            valueName: "HOST:PORT=ADDRESS"))
    var resolve: [String] = []

    @Option(
        help: ArgumentHelp(
            "Public keys of which one origin must have one, sha256//BASE64 with ; between them; may be given several times.",
            valueName: "HOST=PINS"))
    var originPin: [String] = []

    @Option(
        help:
            "Connect to the origins that a playlist names, two at most, before the player asks for their segments: on or off; default on."
    )
    var earlyConnect: String?

    @Option(
        help: ArgumentHelp(
            "Look origins up by DNS over HTTPS (RFC 8484) at this server; default the system's resolver.",
            valueName: "URL"))
    var dohUrl: String?

    @Flag(help: "Send the first bytes to origins with TCP Fast Open (RFC 7413); default off.")
    var tcpFastOpen = false

    @Flag(
        help:
            "Keep TLS sessions with origins over restarts, in a file of the cache folder that only its owner can read; default off."
    )
    var keepTlsTickets = false

    @Option(
        help: ArgumentHelp(
            "Serve an origin under a path, by HTTP's own caching rules; may be given several times.",
            valueName: "PATH=URL"))
    var mount: [String] = []

    @Option(
        help:
            "The kind of cache that mounts are: gateway (shared, and CDN-Cache-Control is meant for it), shared or private; default gateway."
    )
    var mountCache: String?

    @Option(help: "Origin transfers at once. 1...256; default 32.")
    var slots: String?

    @Option(
        help:
            "Transfers beside the slots for playlists, keys, init sections and short ranges. 1...64; default 16."
    )
    var expressSlots: String?

    @Option(help: "Origin transfers at once per host. 0...256, 0 for no limit; default 0.")
    var hostLimit: String?

    @Option(
        help:
            "Seconds that a player waits for a slot before it is answered 503. 1...3600; default 30."
    )
    var slotTimeout: String?

    @Option(help: "Seconds for an origin to accept a connection. 1...300; default 5.")
    var connectTimeout: String?

    @Option(help: "Seconds for an origin to begin its answer. 1...300; default 15.")
    var firstByteTimeout: String?

    @Option(help: "Seconds an origin may send nothing in the middle. 1...300; default 5.")
    var stallTimeout: String?
}

/// The options for look-ahead and downloads.
package struct AheadOptions: ParsableArguments {
    package init() {}

    @Option(
        help:
            "How far to fetch ahead of players: off, auto (as far as the line's speed makes it worth while; off with --host-limit 1) or 1 to 600 seconds; default auto."
    )
    var lookAhead: String?

    @Option(
        help: ArgumentHelp(
            "Another look-ahead for one origin: a host, or host:port, with * and ?; may be given several times.",
            valueName: "HOST=MODE"))
    var originLookAhead: [String] = []

    @Option(
        help:
            "Bytes that a transfer may run ahead of its nearest reader. 1MB...1000TB with suffix; default 32MB."
    )
    var readAhead: String?

    @Option(
        help:
            "Segments to keep from the start of each title; what comes behind them is passed through. 1...1000000; default all."
    )
    var keepHead: String?

    @Option(
        help: ArgumentHelp(
            "Another number of segments to keep for one origin; may be given several times.",
            valueName: "HOST=SEGMENTS"))
    var originKeepHead: [String] = []

    @Option(
        help:
            "Where players find what comes behind the kept head of a title: stream (here, passed through) or origin (playlists name the origin itself); default stream."
    )
    var beyondHead: String?

    @Option(
        help:
            "What decides how many transfers run ahead of players, in downloads and look-ahead: fixed:N, table or probe, never over 32; default probe."
    )
    var concurrency: String?

    @Option(
        help:
            "Bytes a second that all downloads together may take. 1KB...1000TB with suffix; default no limit."
    )
    var downloadRate: String?

    @Option(
        help:
            "Bytes that downloads may take from midnight to midnight. 0...1000TB with suffix; default no limit."
    )
    var downloadBudget: String?

    @Option(
        help: ArgumentHelp(
            "Hours of the day in which nothing is downloaded, as in 18:00-23:30; default none.",
            valueName: "HH:MM-HH:MM"))
    var quietHours: String?
}

/// The options for players.
package struct PlayerOptions: ParsableArguments {
    package init() {}

    @Option(
        help:
            "How fast stored media is sent: off (as fast as players take it), line (as fast as the line to its origin was seen to be, so that adaptive players do not take the store for the line) or bytes per second, 10KB...1TB; default off."
    )
    var pace: String?

    @Option(help: "Connections of players at once. 1...1000000; default 20000.")
    var maxConnections: String?

    @Option(help: "Server threads. 1...64; default one per core, at most 4.")
    var loops: String?

    @Option(help: "Seconds for a player to send a whole request head. 1...300; default 10.")
    var headTimeout: String?

    @Option(help: "Seconds an idle player connection is kept. 1...3600; default 75.")
    var idleTimeout: String?

    @Option(
        help: "Seconds a player may take nothing in the middle of a body. 1...3600; default 60.")
    var writeTimeout: String?

    @Option(help: "Seconds that running responses get to finish on SIGTERM. 0...3600; default 10.")
    var drainTimeout: String?
}

/// The options for logs, console and configuration.
package struct LogOptions: ParsableArguments {
    package init() {}

    @Option(help: "trace, debug, info, notice, warning, error or critical; default notice.")
    var logLevel: String?

    @Option(
        help:
            "text, or json for one object a line with time, level, message and metadata; default text."
    )
    var logFormat: String?

    @Option(
        help:
            "File that each request is written to as a line, reopened on SIGHUP; - for standard output."
    )
    var accessLog: String?

    @Option(
        help: ArgumentHelp(
            "hls.js as an ES module, which the console plays with in browsers that do not play HLS themselves; default share/sluice/hls.mjs below the prefix, then where make setup puts it.",
            valueName: "FILE"))
    var consolePlayer: String?

    @Option(help: "JSON file with any of these settings, by their names without dashes before.")
    var config: String?
}
