package import ArgumentParser
import Glibc

/// The exit codes by which scripts distinguish failures.
package enum ExitCodes {
    /// The inspected object breaks a mandatory rule.
    package static let violations = ExitCode(2)
    /// Address and port are in use by another process.
    package static let portTaken = ExitCode(3)
    /// The cache folder cannot be used.
    package static let cacheFolder = ExitCode(4)
    /// The daemon does not answer.
    package static let unreachable = ExitCode(5)
    /// The process may open too few files and sockets, or its limit of file sizes is too low.
    package static let descriptors = ExitCode(6)
    /// A setting is wrong (sysexits.h, EX_CONFIG).
    package static let configuration = ExitCode(78)

    /// Returns the exit code for a refusal in the terms of the API: a 400 says that an argument of
    /// the command is wrong (sysexits.h, EX_USAGE).
    package static func refusal(_ status: Int) -> ExitCode {
        status == 400 ? .validationFailure : .failure
    }
}

/// The version that `--version` and the daemon's pages show.
package let sluiceVersion = "0.5.0"

/// Prints a line to standard error; what of it acts on a terminal is left out, since it may quote
/// origins.
///
/// In systemd's journal it has the priority of an error.
package func printError(_ text: String) {
    var shown = PrintableText.lines(text)
    if JournalStream.isStandardError { shown = JournalStream.marked(shown, priority: 3) }
    let bytes = Array((shown + "\n").utf8)
    _ = write(STDERR_FILENO, bytes, bytes.count)
}

/// Prints an error message to standard error, after the program's name.
///
/// - Returns: the error to throw, so that the program exits with 1.
package func commandFailure(_ message: String) -> ExitCode {
    let program = CommandLine.arguments.first?.split(separator: "/").last ?? "sluice"
    printError("\(program): \(message)")
    return .failure
}
