import ArgumentParser

/// The daemon's options as flags, for every command that takes them but `serve`.
///
/// `serve` holds the groups itself: a debug build of ArgumentParser checks a group five times for each
/// group around it, which would add 0.2 s to each of the thousands of daemons that the tests start.
///
/// Every option is also an environment variable (SLUICE_ and the name in capitals, - as _) and a
/// key of the JSON file, in falling order of precedence.
package struct ServeOptions: ParsableArguments {
    @OptionGroup(title: "Listening") var listening: ListeningOptions
    @OptionGroup(title: "Cache") var storage: StorageOptions
    @OptionGroup(title: "Origins and mounts") var origins: OriginOptions
    @OptionGroup(title: "Shared store") var shared: SharedStoreOptions
    @OptionGroup(title: "Look-ahead and downloads") var ahead: AheadOptions
    @OptionGroup(title: "Players") var players: PlayerOptions
    @OptionGroup(title: "Logs, console and configuration") var logs: LogOptions

    package init() {}

    /// The options of groups that a command holds itself.
    package init(
        listening: ListeningOptions, storage: StorageOptions, origins: OriginOptions,
        shared: SharedStoreOptions, ahead: AheadOptions, players: PlayerOptions, logs: LogOptions
    ) {
        self.listening = listening
        self.storage = storage
        self.origins = origins
        self.shared = shared
        self.ahead = ahead
        self.players = players
        self.logs = logs
    }

    /// Reads all settings by these options, or says what is wrong and ends.
    package func read() throws -> DaemonConfiguration {
        try readConfiguration(scalars: scalars, lists: lists, file: config)
    }

    /// As `read`, but throws `ConfigurationError`.
    package func load() throws -> DaemonConfiguration {
        try loadConfiguration(scalars: scalars, lists: lists, file: config)
    }

    /// The path of the configuration file.
    package var config: String? { logs.config }

    /// The scalars given as flags, by name.
    package var scalars: [String: String] {
        let given: [(String, String?)] = [
            ("port", listening.port), ("tls-port", listening.tlsPort),
            ("cache-dir", storage.cacheDir),
            ("cache-size", storage.cacheSize),
            ("min-free", storage.minFree), ("retention", storage.retention),
            ("read-ahead", ahead.readAhead),
            ("slots", origins.slots), ("concurrency", ahead.concurrency),
            ("download-rate", ahead.downloadRate),
            ("download-budget", ahead.downloadBudget), ("quiet-hours", ahead.quietHours),
            ("express-slots", origins.expressSlots),
            ("slot-timeout", origins.slotTimeout),
            ("host-limit", origins.hostLimit),
            ("look-ahead", ahead.lookAhead), ("keep-head", ahead.keepHead),
            ("beyond-head", ahead.beyondHead),
            ("pace", players.pace), ("live-window", players.liveWindow),
            ("live-window-size", players.liveWindowSize),
            ("policy", storage.policy), ("token", listening.token),
            ("cluster-key", listening.clusterKey),
            ("base-path", listening.basePath), ("loops", players.loops),
            ("max-connections", players.maxConnections),
            ("connect-timeout", origins.connectTimeout),
            ("first-byte-timeout", origins.firstByteTimeout),
            ("stall-timeout", origins.stallTimeout),
            ("head-timeout", players.headTimeout), ("idle-timeout", players.idleTimeout),
            ("write-timeout", players.writeTimeout), ("drain-timeout", players.drainTimeout),
            ("drain-delay", players.drainDelay),
            ("ca-file", origins.caFile), ("early-connect", origins.earlyConnect),
            ("doh-url", origins.dohUrl), ("mptcp", listening.mptcp),
            ("shared-store", shared.sharedStore),
            ("shared-store-head-start", shared.sharedStoreHeadStart),
            ("shared-store-poll", shared.sharedStorePoll),
            ("shared-store-keys", shared.sharedStoreKeys ? "true" : nil),
            ("tcp-fast-open", origins.tcpFastOpen ? "true" : nil),
            ("dscp", origins.dscp ? "true" : nil), ("yield", origins.yield),
            ("keep-tls-tickets", origins.keepTlsTickets ? "true" : nil),
            ("log-level", logs.logLevel), ("log-format", logs.logFormat),
            ("keys", storage.keys), ("access-log", logs.accessLog),
            ("console-player", logs.consolePlayer), ("title-pictures", logs.titlePictures),
            ("mount-cache", origins.mountCache),
            ("allow-private", origins.allowPrivate ? "true" : nil),
            ("allow-remote", listening.allowRemote ? "true" : nil),
            ("absolute-urls", listening.absoluteUrls ? "true" : nil),
            ("trust-forwarded", listening.trustForwarded ? "true" : nil),
        ]
        return given.reduce(into: [:]) { $0[$1.0] = $1.1 }
    }

    /// The lists given as flags, by name.
    package var lists: [String: [String]] {
        [
            "bind": listening.bind, "allow-host": origins.allowHost, "mount": origins.mount,
            "host-name": listening.hostName, "tls-cert": listening.tlsCert,
            "tls-key": listening.tlsKey,
            "cors-origin": listening.corsOrigin, "origin-policy": storage.originPolicy,
            "key-rule": storage.keyRule, "origin-proxy": origins.originProxy,
            "origin-ca": origins.originCa, "origin-cert": origins.originCert,
            "origin-pin": origins.originPin, "origin-interface": origins.originInterface,
            "resolve": origins.resolve, "parent": origins.parent,
            "trusted-parent": origins.trustedParent,
            "origin-look-ahead": ahead.originLookAhead, "origin-keep-head": ahead.originKeepHead,
        ].filter { !$0.value.isEmpty }
    }

    /// The options as they were given, for another process that is to have them.
    package var arguments: [String] {
        let single = scalars.sorted { $0.key < $1.key }.flatMap { name, value in
            Self.switchNames.contains(name) ? ["--\(name)"] : ["--\(name)", value]
        }
        let several = lists.sorted { $0.key < $1.key }.flatMap { name, values in
            values.flatMap { ["--\(name)", $0] }
        }
        return single + several + (config.map { ["--config", $0] } ?? [])
    }

    /// The names whose flags take no value.
    static let switchNames: Set<String> = [
        "tcp-fast-open", "dscp", "keep-tls-tickets", "allow-private", "allow-remote",
        "absolute-urls", "trust-forwarded", "shared-store-keys",
    ]

    /// The names whose values are lists.
    static let listNames: Set<String> = [
        "bind", "allow-host", "mount", "host-name", "cors-origin", "origin-policy", "key-rule",
        "origin-look-ahead", "origin-keep-head", "tls-cert", "tls-key", "origin-proxy", "origin-ca",
        "origin-cert", "origin-pin", "origin-interface", "resolve", "parent", "trusted-parent",
    ]

    /// Lists whose values may hold a password.
    static let secretLists: Set<String> = ["origin-proxy", "parent", "trusted-parent"]

    /// The names whose settings follow a configuration that is read again.
    static let reloadedNames: Set<String> = [
        "mount", "policy", "origin-policy", "keys", "key-rule", "origins", "origin-look-ahead",
        "origin-keep-head", "tls-cert", "tls-key", "cluster-key", "cache-size", "min-free",
        "download-rate", "download-budget", "quiet-hours", "drain-timeout", "drain-delay",
        "log-level",
    ]

    /// Settings of former versions: still accepted, so that a daemon starts after an upgrade, but
    /// ignored with a warning.
    static let formerNames: Set<String> = ["retention"]

    /// Every name that a configuration file may hold.
    static let names: Set<String> = [
        "bind", "port", "cache-dir", "cache-size", "min-free", "read-ahead", "slots",
        "express-slots", "concurrency", "download-rate", "download-budget", "quiet-hours",
        "host-limit", "slot-timeout",
        "policy", "allow-private", "allow-host", "mount", "host-name", "token", "allow-remote",
        "cors-origin", "base-path", "absolute-urls", "trust-forwarded", "loops", "max-connections",
        "connect-timeout", "first-byte-timeout", "stall-timeout", "head-timeout", "idle-timeout",
        "write-timeout", "drain-timeout", "drain-delay", "ca-file", "log-level", "log-format",
        "keys",
        "key-rule",
        "origin-policy", "access-log", "console-player", "title-pictures", "origins", "mount-cache",
        "look-ahead",
        "origin-look-ahead",
        "keep-head", "origin-keep-head", "beyond-head", "pace", "live-window", "live-window-size",
        "tls-port", "tls-cert", "tls-key",
        "origin-proxy", "origin-ca", "origin-cert", "origin-pin", "origin-interface", "resolve",
        "early-connect", "doh-url", "tcp-fast-open", "dscp", "yield",
        "keep-tls-tickets", "mptcp", "parent",
        "trusted-parent", "cluster-key",
        "shared-store", "shared-store-head-start",
        "shared-store-poll", "shared-store-keys",
    ]
}
