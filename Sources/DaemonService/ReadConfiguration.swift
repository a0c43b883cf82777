// Reads the settings for a caller that waits.
import ArgumentParser
import CommandSupport
package import Posix
import Reactor
import Synchronization

/// Reads the settings, or prints the errors and throws.
///
/// Blocks: swift-configuration reads the file asynchronously, and nothing can start before that is
/// done.
///
/// - Parameters: as those of `DaemonConfiguration`.
package func readConfiguration(
    scalars: [String: String], lists: [String: [String]], file: String?,
    handed: [InheritedListener]? = nil
) throws -> DaemonConfiguration {
    do {
        return try loadConfiguration(scalars: scalars, lists: lists, file: file, handed: handed)
    } catch let error as ConfigurationError {
        printError("\(error)")
        throw ExitCodes.configuration
    }
}

/// As `readConfiguration`, for a caller that tells what is wrong itself.
///
/// - Throws: `ConfigurationError` where a setting is wrong.
package func loadConfiguration(
    scalars: [String: String], lists: [String: [String]], file: String?,
    handed: [InheritedListener]? = nil, isReread: Bool = false
) throws -> DaemonConfiguration {
    try result {
        try await DaemonConfiguration(
            scalars: scalars, lists: lists, file: file, handed: handed, isReread: isReread)
    }
}

/// Returns `DaemonConfiguration.localBases`, or prints the errors, and how to do without these
/// settings; blocks.
///
/// - Parameter file: the configuration file; nil for that of the environment.
/// - Returns: the base URLs.
/// - Throws: `ExitCode` after printing where a setting is wrong.
package func readLocalBases(file: String?) throws -> [String] {
    do {
        return try result { try await DaemonConfiguration.localBases(file: file) }
    } catch let error as ConfigurationError {
        printError("\(error)")
        printError("sluice: where the daemon listens is not known; name it with --daemon URL")
        throw ExitCodes.configuration
    }
}

/// Returns what a task reads; blocks.
private func result<Value: Sendable>(
    of read: @escaping @Sendable () async throws -> Value
) throws -> Value {
    let done = try ThreadSemaphore()
    let outcome = Outcome<Value>()
    Task {
        let result: Result<Value, any Error>
        do {
            result = .success(try await read())
        } catch {
            result = .failure(error)
        }
        outcome.stored.withLock { $0 = result }
        done.signal()
    }
    guard done.wait(atMost: .seconds(60 as Int64)),
        let result = outcome.stored.withLock({ $0 })
    else { throw ConfigurationError(faults: ["it could not be read in time"]) }
    return try result.get()
}

/// Passes what a task has read to the waiting thread.
private final class Outcome<Value: Sendable>: Sendable {
    let stored = Mutex<Result<Value, any Error>?>(nil)
}
