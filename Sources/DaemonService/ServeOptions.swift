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

    /// The scalars given as flags, by name.
    package var scalars: [String: String] {
        var values: [String: String] = [:]
        for (name, option) in Self.options(of: groups) {
            if let option = option as? Option<String?> { values[name] = option.wrappedValue }
            if let flag = option as? Flag<Bool>, flag.wrappedValue { values[name] = "true" }
        }
        return values
    }

    /// The lists given as flags, by name.
    package var lists: [String: [String]] {
        var values: [String: [String]] = [:]
        for (name, option) in Self.options(of: groups) {
            guard let list = option as? Option<[String]>, !list.wrappedValue.isEmpty else {
                continue
            }
            values[name] = list.wrappedValue
        }
        return values
    }

    private var groups: [any ParsableArguments] {
        [listening, storage, origins, shared, ahead, players, logs]
    }

    /// The options of groups that are settings, in the property wrappers that declare them.
    ///
    /// Their names are made as ArgumentParser makes those of flags: `_tlsPort` becomes `tls-port`.
    private static func options(
        of groups: [any ParsableArguments]
    ) -> [(name: String, option: Any)] {
        groups.flatMap { Mirror(reflecting: $0).children }.compactMap {
            label, option -> (name: String, option: Any)? in
            guard let label, label != "_config" else { return nil }
            let name = label.dropFirst().map { $0.isUppercase ? "-\($0.lowercased())" : "\($0)" }
            return (name.joined(), option)
        }
    }

    private static func declaredNames(where isWanted: (Any) -> Bool) -> Set<String> {
        let groups: [any ParsableArguments] = [
            ListeningOptions(), StorageOptions(), OriginOptions(), SharedStoreOptions(),
            AheadOptions(), PlayerOptions(), LogOptions(),
        ]
        return Set(options(of: groups).filter { isWanted($0.option) }.map(\.name))
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
    static let switchNames = declaredNames { $0 is Flag<Bool> }

    /// The names whose values are lists.
    static let listNames = declaredNames { $0 is Option<[String]> }

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
    static let names = declaredNames { _ in true }.union(["origins"])
        .subtracting(formerNames)
}
