import CommandSupport
import DaemonService
import ArgumentParser
import CachePolicy
import Logging
import Posix
import Library
import Model
import Serving
import Reactor
import Store
import Synchronization

/// `sluice serve`; `sluice check` and `sluice config` take the same options.
struct ServeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve", abstract: "Run the daemon in the foreground.",
        discussion: """
            Prints `sluice ready http://ADDRESS:PORT` (https for TLS) on standard output, a line for each address, when players \
            can connect, and notifies systemd (sd_notify). SIGTERM lets running responses finish; a second one does not.

            Every option is also an environment variable (SLUICE_CACHE_SIZE) and a key of the file that \
            --config names ({"cache-size": "50GB"}); a flag overrides the variable, which overrides the file.

            Example: sluice serve --port 9000 --cache-size 50GB --access-log /var/log/sluice/access.log
            Then:    mpv http://127.0.0.1:9000/https://cdn.example.com/vod/master.m3u8
            """)

    // Not a ServeOptions, which would hold them: see there.
    @OptionGroup(title: "Listening") var listening: ListeningOptions
    @OptionGroup(title: "Cache") var storage: StorageOptions
    @OptionGroup(title: "Origins and mounts") var origins: OriginOptions
    @OptionGroup(title: "Shared store") var shared: SharedStoreOptions
    @OptionGroup(title: "Look-ahead and downloads") var ahead: AheadOptions
    @OptionGroup(title: "Players") var players: PlayerOptions
    @OptionGroup(title: "Logs, console and configuration") var logs: LogOptions

    private var options: ServeOptions {
        ServeOptions(
            listening: listening, storage: storage, origins: origins, shared: shared,
            ahead: ahead, players: players, logs: logs)
    }

    func run() throws {
        let handed = try handedSockets()
        let (scalars, lists, file) = (options.scalars, options.lists, options.config)
        let configuration = try readConfiguration(
            scalars: scalars, lists: lists, file: file, handed: handed)
        let level = SharedLogLevel(configuration.logLevel)
        LoggingSystem.bootstrap { _ in LineLog(format: configuration.logFormat, shared: level) }
        let daemon = try Daemon(configuration, log: Logger(label: "sluice"))
        try daemon.run(
            rereading: {
                try await DaemonConfiguration(
                    scalars: scalars, lists: lists, file: file, handed: handed, isReread: true)
            }, setLogLevel: { level.level = $0 })
    }

    private func handedSockets() throws -> [InheritedListener] {
        do throws(SystemError) {
            return try ServiceManager.takeListeners()
        } catch {
            printError(
                "sluice: the service manager passed a descriptor that is not a listening TCP socket: \(error)"
            )
            throw ExitCodes.configuration
        }
    }
}

struct CheckCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check",
        abstract: "Check flags, environment and configuration file; start nothing.")

    @OptionGroup var options: ServeOptions

    func run() throws {
        let configuration = try options.read()
        print(
            "configuration is valid: \(configuration.listeningInWords), cache in \(configuration.cacheFolder), "
                + "\(configuration.store.budgetBytes) bytes, policy \(configuration.proxy.policy.rawValue), "
                + "\(configuration.proxy.mounts.count) mounts")
        for line in configuration.routeSummaries { print("  \(line)") }
        if configuration.secure == nil,
            configuration.settings.contains(where: {
                $0.name == "tls-cert" && $0.source != "default"
            })
        {
            print("  tls-cert has an effect only with a tls-port or a service manager's TLS socket")
        }
    }
}
