// Which option was meant by one that a command does not have.
import ArgumentParser
import DaemonService

/// Names the option that an unknown one begins, or that is near it.
///
/// ArgumentParser compares names as wholes: to it, `--cache` is nearer to `--pace` than to
/// `--cache-dir`.
enum OptionAdvice {
    private static let start = "Unknown option '--"

    /// Returns the message for an error with its suggestion corrected.
    ///
    /// - Parameters:
    ///   - error: the error that parsing the arguments threw.
    ///   - arguments: those of the program, without its name.
    /// - Returns: nil for other errors, and where no option is near.
    static func message(for error: any Error, _ arguments: some Sequence<String>) -> String? {
        guard !(error is ExitCode) else { return nil }
        let text = SluiceCommand.message(for: error)
        guard text.hasPrefix(start) else { return nil }
        let unknown = String(text.dropFirst(start.count).prefix { $0 != "'" })
        let options = options(of: command(in: arguments))
        guard let meant = NearestName.of(unknown, among: options) else { return nil }
        let better = "\(start)\(unknown)'. Did you mean '--\(meant)'?"
        return SluiceCommand.fullMessage(for: error, columns: nil)
            .replacing(text, with: better, maxReplacements: 1)
    }

    /// Returns the command whose options the arguments are.
    private static func command(
        in arguments: some Sequence<String>
    ) -> any ParsableCommand.Type {
        var found: any ParsableCommand.Type = SluiceCommand.self
        for word in arguments {
            let commands = found.configuration.subcommands
            guard let next = commands.first(where: { $0.configuration.commandName == word })
            else { break }
            found = next
        }
        return found.configuration.defaultSubcommand ?? found
    }

    /// Returns the long names of a command's options.
    private static func options(of command: any ParsableCommand.Type) -> [String] {
        // Wide, so that no line of a description is broken before two hyphens.
        let help = SluiceCommand.helpMessage(for: command, includeHidden: false, columns: 1_000)
        return help.split(separator: "\n").filter { $0.hasPrefix("  --") }.map { line in
            String(line.dropFirst(4).prefix { $0.isLetter || $0 == "-" })
        }
    }
}
