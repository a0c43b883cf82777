/// `sluice serve` and `sluice check`.
import ArgumentParser
import CachePolicy
import Logging
import Posix
import Proxy
import Store

struct ServeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve", abstract: "Run the daemon in the foreground.",
        discussion: """
            Prints `sluice ready http://ADDRESS:PORT` on standard output, a line for each address, when players \
            can connect, and tells systemd (sd_notify). SIGTERM lets running responses finish; a second one does not.
            """)

    @OptionGroup var options: ServeOptions

    func run() async throws {
        let configuration = try await readConfiguration(options)
        LoggingSystem.bootstrap { label in
            var handler = StreamLogHandler.standardError(label: label)
            handler.logLevel = configuration.logLevel
            return handler
        }
        let daemon = try Daemon(configuration, log: Logger(label: "sluice"))
        try daemon.run()
    }
}

struct CheckCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check", abstract: "Check flags, environment and configuration file, and start nothing.")

    @OptionGroup var options: ServeOptions

    func run() async throws {
        let configuration = try await readConfiguration(options)
        let places = configuration.addresses.map(\.description).joined(separator: ", ")
        print("configuration is good: listen on \(places), cache in \(configuration.cacheFolder), "
            + "\(configuration.store.budgetBytes) bytes, policy \(configuration.proxy.policy.rawValue), "
            + "\(configuration.proxy.mounts.count) mounts")
    }
}

/// Reads the settings, or says what is wrong and ends.
private func readConfiguration(_ options: ServeOptions) async throws -> DaemonConfiguration {
    do {
        return try await DaemonConfiguration(options)
    } catch let error as ConfigurationError {
        printError("\(error)")
        throw ExitCodes.configuration
    }
}
