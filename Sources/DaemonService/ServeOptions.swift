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

    /// As `read`, but throws `ConfigurationError`, and not for what a running daemon does not need:
    /// see `DaemonConfiguration.faultOfStart`.
    package func load() throws -> DaemonConfiguration {
        try loadConfiguration(scalars: scalars, lists: lists, file: config, isReread: true)
    }

    /// The path of the configuration file.
    package var config: String? { logs.config }

    // MARK: Names

    /// The options that take one value, by name.
    private static let scalarOptions: [String: any KeyPath<ServeOptions, String?> & Sendable] = [
        "port": \.listening.port,
        "tls-port": \.listening.tlsPort,
        "cache-dir": \.storage.cacheDir,
        "cache-size": \.storage.cacheSize,
        "min-free": \.storage.minFree,
        "max-unused": \.storage.maxUnused,
        "retention": \.storage.retention,
        "read-ahead": \.ahead.readAhead,
        "slots": \.origins.slots,
        "concurrency": \.ahead.concurrency,
        "download-rate": \.ahead.downloadRate,
        "download-budget": \.ahead.downloadBudget,
        "quiet-hours": \.ahead.quietHours,
        "express-slots": \.origins.expressSlots,
        "slot-timeout": \.origins.slotTimeout,
        "host-limit": \.origins.hostLimit,
        "look-ahead": \.ahead.lookAhead,
        "keep-head": \.ahead.keepHead,
        "beyond-head": \.ahead.beyondHead,
        "pace": \.players.pace,
        "live-window": \.players.liveWindow,
        "live-window-size": \.players.liveWindowSize,
        "policy": \.storage.policy,
        "token": \.listening.token,
        "cluster-key": \.listening.clusterKey,
        "base-path": \.listening.basePath,
        "loops": \.players.loops,
        "max-connections": \.players.maxConnections,
        "connect-timeout": \.origins.connectTimeout,
        "first-byte-timeout": \.origins.firstByteTimeout,
        "stall-timeout": \.origins.stallTimeout,
        "head-timeout": \.players.headTimeout,
        "idle-timeout": \.players.idleTimeout,
        "write-timeout": \.players.writeTimeout,
        "drain-timeout": \.players.drainTimeout,
        "drain-delay": \.players.drainDelay,
        "ca-file": \.origins.caFile,
        "early-connect": \.origins.earlyConnect,
        "doh-url": \.origins.dohUrl,
        "mptcp": \.listening.mptcp,
        "shared-store": \.shared.sharedStore,
        "shared-store-head-start": \.shared.sharedStoreHeadStart,
        "shared-store-poll": \.shared.sharedStorePoll,
        "yield": \.origins.yield,
        "log-level": \.logs.logLevel,
        "log-format": \.logs.logFormat,
        "keys": \.storage.keys,
        "access-log": \.logs.accessLog,
        "console-player": \.logs.consolePlayer,
        "title-pictures": \.logs.titlePictures,
        "mount-cache": \.origins.mountCache,
    ]

    /// The options that take no value, by name.
    private static let switches: [String: any KeyPath<ServeOptions, Bool> & Sendable] = [
        "shared-store-keys": \.shared.sharedStoreKeys,
        "tcp-fast-open": \.origins.tcpFastOpen,
        "dscp": \.origins.dscp,
        "keep-tls-tickets": \.origins.keepTlsTickets,
        "allow-private": \.origins.allowPrivate,
        "allow-remote": \.listening.allowRemote,
        "absolute-urls": \.listening.absoluteUrls,
        "trust-forwarded": \.listening.trustForwarded,
    ]

    /// The options that may be given several times, by name.
    private static let listOptions: [String: any KeyPath<ServeOptions, [String]> & Sendable] = [
        "bind": \.listening.bind,
        "allow-host": \.origins.allowHost,
        "only-origin": \.origins.onlyOrigin,
        "mount": \.origins.mount,
        "mount-header": \.origins.mountHeader,
        "host-name": \.listening.hostName,
        "tls-cert": \.listening.tlsCert,
        "tls-key": \.listening.tlsKey,
        "cors-origin": \.listening.corsOrigin,
        "origin-policy": \.storage.originPolicy,
        "key-rule": \.storage.keyRule,
        "origin-proxy": \.origins.originProxy,
        "origin-ca": \.origins.originCa,
        "origin-cert": \.origins.originCert,
        "origin-pin": \.origins.originPin,
        "origin-interface": \.origins.originInterface,
        "origin-limit": \.origins.originLimit,
        "resolve": \.origins.resolve,
        "parent": \.origins.parent,
        "trusted-parent": \.origins.trustedParent,
        "origin-look-ahead": \.ahead.originLookAhead,
        "origin-keep-head": \.ahead.originKeepHead,
    ]

    /// The scalars given as flags, by name.
    package var scalars: [String: String] {
        let values = Self.scalarOptions.compactMapValues { self[keyPath: $0] }
        let isOn = Self.switches.filter { self[keyPath: $0.value] }
        return values.merging(isOn.mapValues { _ in "true" }) { value, _ in value }
    }

    /// The lists given as flags, by name.
    package var lists: [String: [String]] {
        Self.listOptions.mapValues { self[keyPath: $0] }.filter { !$0.value.isEmpty }
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
    static let switchNames = Set(switches.keys)

    /// The names whose values are lists.
    static let listNames = Set(listOptions.keys)

    /// Lists whose values may hold a password.
    static let secretLists: Set<String> = [
        "origin-proxy", "parent", "trusted-parent", "mount-header",
    ]

    /// The names whose settings follow a configuration that is read again.
    static let reloadedNames: Set<String> = [
        "mount", "mount-header", "policy", "origin-policy", "keys", "key-rule", "origins",
        "origin-look-ahead", "origin-keep-head", "tls-cert", "tls-key", "cluster-key",
        "cache-size", "min-free", "max-unused", "download-rate", "download-budget", "quiet-hours",
        "drain-timeout", "drain-delay", "log-level", "only-origin",
    ]

    /// Settings of former versions: still accepted, so that a daemon starts after an upgrade, but
    /// ignored with a warning.
    static let formerNames: Set<String> = ["retention"]

    /// Every name that a configuration file may hold.
    static let names = Set(scalarOptions.keys).union(switches.keys).union(listOptions.keys)
        .union(["origins"]).subtracting(formerNames)
}
