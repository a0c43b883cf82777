import ArgumentParser
import DaemonService

/// Finds the command that `sluice help` is asked for and that does not exist.
///
/// ArgumentParser ignores such a word and shows the help of what stands before it.
enum HelpAdvice {
    /// Looks up the words behind `help`.
    ///
    /// - Parameter arguments: those of the program, without its name.
    /// - Returns: what is wrong with them; nil if nothing is, and for other commands.
    static func fault(in arguments: some Sequence<String>) -> String? {
        let words = arguments.filter { !$0.hasPrefix("-") }
        guard words.first == "help" else { return nil }
        var commands = SluiceCommand.configuration.subcommands
        var names = ["help"]
        for word in words.dropFirst() {
            names += commands.compactMap { $0.configuration.commandName }
            guard names.contains(word) else {
                let meant = NearestName.of(word, among: names)
                let advice = meant.map { "did you mean '\($0)'?" } ?? "`sluice help` lists all"
                return "sluice: there is no command '\(word.prefix(40))'; \(advice)"
            }
            let next = commands.first { $0.configuration.commandName == word }
            commands = next?.configuration.subcommands ?? []
            names = []
        }
        return nil
    }
}
