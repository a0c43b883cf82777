package import ArgumentParser
import Glibc

/// What scripts can tell failures by.
package enum ExitCodes {
    /// What was inspected breaks a rule that must be kept.
    package static let violations = ExitCode(2)
    /// The address and port are taken by another process.
    package static let portTaken = ExitCode(3)
    /// The cache folder cannot be used.
    package static let cacheFolder = ExitCode(4)
    /// The daemon to be asked does not answer.
    package static let unreachable = ExitCode(5)
    /// The process may open too few files and sockets, or write too short files.
    package static let descriptors = ExitCode(6)
    /// A setting is wrong (sysexits.h, EX_CONFIG).
    package static let configuration = ExitCode(78)
}

/// The version, as `--version` and the pages print it.
package let sluiceVersion = "0.5.0"

/// Prints a line to standard error.
package func printError(_ text: String) {
    let bytes = Array((text + "\n").utf8)
    _ = write(STDERR_FILENO, bytes, bytes.count)
}

/// Says on standard error what was wrong, after the program's name.
///
/// - Returns: what is to be thrown, so that the program ends with 1.
package func commandFailure(_ message: String) -> ExitCode {
    let program = CommandLine.arguments.first?.split(separator: "/").last ?? "sluice"
    printError("\(program): \(message)")
    return .failure
}
