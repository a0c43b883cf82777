// Reading the configuration again while the daemon runs.
import HTTPServer
import Logging
import Library
import Model
import Serving
import Reactor

/// Reads again, one time after the other, and puts in force what may change.
///
/// Used on the main loop. A configuration with a fault changes nothing.
package final class ConfigurationReload {
    package typealias Read = @Sendable () async throws -> DaemonConfiguration

    private let core: ProxyCore
    private let server: HTTPServer
    private let log: Logger
    private let read: Read
    /// The settings that this process was started with and cannot change.
    private let running: [String: String]
    private var isReading = false
    /// Asked for again while it was being read: what was read may be old.
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

    /// Begins to read; does not wait for it.
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
            core.settingsList.replace(
                configuration.givenSettings, of: ServeOptions.reloadedNames)
            if let secure = configuration.secure { server.use(secure.certificates) }
            log.notice(
                "configuration read again on SIGHUP",
                metadata: ["mounts": "\(configuration.proxy.mounts.count)"])
            let names = Set(running.keys).union(configuration.fixedSettings.keys)
                .filter { running[$0] != configuration.fixedSettings[$0] }
            if !names.isEmpty {
                log.warning(
                    "changed settings that need a restart: \(names.sorted().joined(separator: ", "))"
                )
            }
        case .failure(let error):
            log.error("configuration left as it was", metadata: ["reason": "\(error)"])
        }
    }
}
