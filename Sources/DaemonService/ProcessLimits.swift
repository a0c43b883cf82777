import ArgumentParser
import CommandSupport
import Glibc
import HTTPServer
import Logging
import Posix
import Store
import Upstream

/// What the system allows this process: descriptors, and the length of files.
enum ProcessLimits {
    /// Raises the descriptor limit as far as the system permits, and lowers the settings that would
    /// exceed it.
    ///
    /// - Throws: `ExitCode` after printing to standard error that the limit is too low.
    static func fitDescriptors(
        _ configuration: inout DaemonConfiguration, _ log: Logger
    ) throws {
        let limit = raisedDescriptorLimit()
        let upstream = configuration.upstream.normalised
        let demand = configuration.descriptorDemand
        do throws(DescriptorBudget.TooLow) {
            let budget = try DescriptorBudget(limit: limit, for: demand)
            if budget.connections < configuration.limits.connections {
                // The default exceeds what many systems grant; a warning is due only if the setting
                // was given, or for a limit that a small household could reach.
                let matters = configuration.namesConnections || budget.connections < 1_000
                log.log(
                    level: matters ? .warning : .info,
                    """
                    max-connections is lowered from \(configuration.limits.connections) to \
                    \(budget.connections), since this process may open \(limit) files and sockets; \
                    raise that with ulimit -n or LimitNOFILE
                    """)
            }
            configuration.limits.connections = budget.connections
            configuration.store.maxOpenObjects = budget.openObjects
            configuration.upstream.idleConnections = min(
                upstream.idleConnections, budget.originConnections)
        } catch {
            printError(
                """
                sluice: this process may open \(error.limit) files and sockets, and needs at least \
                \(error.least); raise that with ulimit -n or LimitNOFILE\(demand.wayOut)
                """)
            throw ExitCodes.descriptors
        }
    }

    /// Logs the effect of a limit of file sizes on storing (getrlimit(2), RLIMIT_FSIZE).
    ///
    /// - Throws: `ExitCode` after printing to standard error that the limit is too low.
    static func checkFileSize(_ log: Logger) throws {
        guard let limit = fileSizeLimit() else { return }
        guard limit >= leastFileSize else {
            printError(
                """
                sluice: this process may write files of \(limit) bytes, and needs at least \
                \(leastFileSize); raise that with ulimit -f or LimitFSIZE
                """)
            throw ExitCodes.descriptors
        }
        log.notice(
            """
            bodies longer than \(limit) bytes are passed on and not kept, nor does the index grow \
            further, since this process may write no longer files; raise that with ulimit -f or \
            LimitFSIZE
            """)
    }

    /// Enough for an index, and for pieces of a body that is not stored.
    private static let leastFileSize: Int64 = 256 << 10

    /// Sets the soft limit of descriptors to the hard one (getrlimit(2)).
    ///
    /// - Returns: The resulting soft limit.
    private static func raisedDescriptorLimit() -> Int {
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        var limit = rlimit()
        guard getrlimit(resource, &limit) == 0 else { return .max }
        var raised = limit
        raised.rlim_cur = limit.rlim_max
        return Int(clamping: setrlimit(resource, &raised) == 0 ? raised.rlim_cur : limit.rlim_cur)
    }
}
