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
    handed: [InheritedListener]? = nil
) throws -> DaemonConfiguration {
    let done = try ThreadSemaphore()
    let box = Outcome()
    Task {
        do {
            let configuration = try await DaemonConfiguration(
                scalars: scalars, lists: lists, file: file, handed: handed)
            box.set(.success(configuration))
        } catch {
            box.set(.failure(error))
        }
        done.signal()
    }
    guard done.wait(atMost: .seconds(60 as Int64)), let read = box.value else {
        throw ConfigurationError(faults: ["it could not be read in time"])
    }
    return try read.get()
}

/// Passes the settings from the task that reads them to the waiting thread.
private final class Outcome: Sendable {
    private let stored = Mutex<Result<DaemonConfiguration, any Error>?>(nil)

    var value: Result<DaemonConfiguration, any Error>? { stored.withLock { $0 } }

    func set(_ result: Result<DaemonConfiguration, any Error>) {
        stored.withLock { $0 = result }
    }
}
