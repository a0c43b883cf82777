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

/// Returns the base URLs at which programs of this machine reach the daemon of some settings.
///
/// Those in the clear come first; there is none for a port that is not fixed. Blocks. Only settings
/// of addresses count, whatever is wrong with the values of others, and whatever other variables
/// there are. The file must be readable, with known names.
///
/// - Parameter file: the configuration file; nil for that of the environment.
/// - Returns: the base URLs.
/// - Throws: `ConfigurationError`.
package func loadLocalBases(file: String?) throws -> [String] {
    try result { try await DaemonConfiguration.localBases(file: file) }
}

/// As `loadLocalBases`, but prints the errors, and how to do without these settings.
package func readLocalBases(file: String?) throws -> [String] {
    do {
        return try loadLocalBases(file: file)
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
    let box = Outcome<Value>()
    Task {
        do {
            box.set(.success(try await read()))
        } catch {
            box.set(.failure(error))
        }
        done.signal()
    }
    guard done.wait(atMost: .seconds(60 as Int64)), let outcome = box.value else {
        throw ConfigurationError(faults: ["it could not be read in time"])
    }
    return try outcome.get()
}

/// Passes the settings from the task that reads them to the waiting thread.
private final class Outcome<Value: Sendable>: Sendable {
    private let stored = Mutex<Result<Value, any Error>?>(nil)

    var value: Result<Value, any Error>? { stored.withLock { $0 } }

    func set(_ result: Result<Value, any Error>) {
        stored.withLock { $0 = result }
    }
}
