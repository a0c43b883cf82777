// Reloads the configuration while the daemon runs.
import HTTPServer
import Logging
import Library
import Model
import Serving
import Reactor

/// Reloads the configuration, one reload at a time, and applies the settings that may change.
///
/// Used on the main loop. A configuration with an error changes nothing.
package final class ConfigurationReload {
    package typealias Read = @Sendable () async throws -> DaemonConfiguration

    private let core: ProxyCore
    private let server: HTTPServer
    private let log: Logger
    private let read: Read
    /// The settings that this process was started with and that need a restart to change.
    private let running: [String: String]
    private var isReading = false
    /// True if another reload was requested during the current one, whose result may be outdated.
    private var mustReadAgain = false

    init(
        core: ProxyCore, server: HTTPServer, log: Logger, running: [String: String],
        read: @escaping Read
    ) {
        self.running = running
        self.core = core
        self.server = server
        self.log = log
        self.read = read
    }

    /// Starts a reload; does not wait for it.
    func start(on loop: EventLoop) {
        guard !isReading else {
            mustReadAgain = true
            return
        }
        isReading = true
        let bound = LoopBound(self, to: loop)
        Task { [read] in
            let result: Result<DaemonConfiguration, any Error>
            do {
                result = .success(try await read())
            } catch {
                result = .failure(error)
            }
            bound.enqueue { reload, loop in reload.finish(result, on: loop) }
        }
    }

    private func finish(_ result: Result<DaemonConfiguration, any Error>, on loop: EventLoop) {
        isReading = false
        if mustReadAgain {
            mustReadAgain = false
            return start(on: loop)
        }
        switch result {
        case .success(let configuration):
            core.replace(mounts: configuration.proxy.mounts, keys: configuration.proxy.keys)
            core.settingsList.replace(configuration.settings.map(\.shown), isReload: true)
            let keys = configuration.proxy.clusterKeys
            if !core.replace(clusterKeys: keys) {
                log.warning("cluster-key is switched on or off by a restart only")
            } else if let first = keys.first {
                log.notice(
                    "cluster keys in force",
                    metadata: ["seals": "\(first.name)", "opens": "\(keys.count)"])
            }
            if let secure = configuration.secure { server.use(secure.certificates) }
            log.notice(
                "configuration reloaded on SIGHUP",
                metadata: ["mounts": "\(configuration.proxy.mounts.count)"])
            let names = Set(running.keys).union(configuration.fixedSettings.keys)
                .filter { running[$0] != configuration.fixedSettings[$0] }
            if !names.isEmpty {
                log.warning(
                    "changed settings that need a restart: \(names.sorted().joined(separator: ", "))"
                )
            }
        case .failure(let error):
            log.error("configuration not changed", metadata: ["reason": "\(error)"])
        }
    }
}
