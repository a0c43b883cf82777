// Reloads the configuration while the daemon runs.
import Ahead
import HTTPServer
import Logging
import Library
import Model
import Serving
import Posix
import Reactor
import Store
import Upstream

/// Reloads the configuration, one reload at a time, and applies the settings that may change.
///
/// Used on the main loop. A configuration with an error changes nothing.
package final class ConfigurationReload {
    package typealias Read = @Sendable () async throws -> DaemonConfiguration

    /// What a reload reads, and applies its settings to.
    struct Parts {
        let core: ProxyCore
        let server: HTTPServer
        let administration: AdministrationWorker
        let downloads: DownloadService
        let log: Logger
        let read: Read
        let setLogLevel: (Logger.Level) -> Void
    }

    private let parts: Parts
    /// The waits before the end, which apply when the process is told to end.
    private(set) var endWaits: (drainDelay: Interval, drain: Interval)
    /// The settings that this process was started with and that need a restart to change.
    private let running: [String: String]
    private var isReading = false
    /// True if another reload was requested during the current one, whose result may be outdated.
    private var mustReadAgain = false

    init(_ parts: Parts, running: DaemonConfiguration) {
        self.parts = parts
        self.running = running.fixedSettings
        endWaits = (running.drainDelay, running.drain)
    }

    /// Starts a reload; does not wait for it.
    func start(on loop: EventLoop) {
        guard !isReading else {
            mustReadAgain = true
            return
        }
        isReading = true
        let bound = LoopBound(self, to: loop)
        Task { [read = parts.read] in
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
            apply(configuration)
            ServiceManager.notifyReload(fault: nil)
            parts.log.notice(
                "configuration reloaded on SIGHUP",
                metadata: ["mounts": "\(configuration.proxy.mounts.count)"])
            if let fault = configuration.faultOfStart {
                parts.log.warning("the next start of the daemon would fail: \(fault)")
            }
            let names = Set(running.keys).union(configuration.fixedSettings.keys)
                .filter { running[$0] != configuration.fixedSettings[$0] }
            if !names.isEmpty {
                parts.log.warning(
                    "changed settings that need a restart: \(names.sorted().joined(separator: ", "))"
                )
            }
        case .failure(let error):
            parts.log.error("configuration not changed", metadata: ["reason": "\(error)"])
            ServiceManager.notifyReload(fault: "\(error)")
        }
    }

    /// Applies the settings of `ServeOptions.reloadedNames`.
    private func apply(_ configuration: DaemonConfiguration) {
        endWaits = (configuration.drainDelay, configuration.drain)
        let (core, log) = (parts.core, parts.log)
        parts.setLogLevel(configuration.logLevel)
        core.followLogLevel()
        let keys = configuration.proxy.clusterKeys
        // Before the version that memories of links compare: what they keep under the new one was
        // checked with these keys.
        let areKeysInForce = core.replace(clusterKeys: keys)
        core.replace(mounts: configuration.proxy.mounts, keys: configuration.proxy.keys)
        core.onlyOrigins.replace(with: configuration.upstream.onlyOrigins.current)
        core.settingsList.replace(
            configuration.settings.filter { areKeysInForce || $0.name != "cluster-key" },
            isReload: true)
        if !areKeysInForce {
            log.warning("cluster-key is switched on or off by a restart only")
        } else if let first = keys.first {
            log.notice(
                "cluster keys in force",
                metadata: ["seals": "\(first.name)", "opens": "\(keys.count)"])
        }
        if let secure = configuration.secure { parts.server.use(secure.certificates) }
        core.store.limit(
            budget: configuration.store.budgetBytes, minFree: configuration.store.minFreeBytes)
        parts.administration.removeUnused(
            for: configuration.maxUnused, counters: core.counters)
        parts.downloads.use(configuration.downloads)
    }
}
