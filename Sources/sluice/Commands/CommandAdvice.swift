import ArgumentParser
import DaemonService

/// Finds the word that should be a command and is none.
///
/// ArgumentParser calls such a word an unexpected argument, and ignores it behind `help`.
enum CommandAdvice {
    /// Looks up the words that name a command: the first ones, or those behind `help`.
    ///
    /// - Parameter arguments: those of the program, without its name.
    /// - Returns: what is wrong with them; nil if nothing is.
    static func fault(in arguments: some Collection<String>) -> String? {
        let words = arguments.filter { !$0.hasPrefix("-") }
        let asksHelp = words.first == "help"
        let path =
            asksHelp
            ? Array(words.dropFirst()) : Array(arguments.prefix { !$0.hasPrefix("-") })
        var found: any ParsableCommand.Type = SluiceCommand.self
        var names = ["help"]
        for word in path {
            let commands = found.configuration.subcommands
            // The other words are arguments of the command.
            let takesOthers = commands.isEmpty || found.configuration.defaultSubcommand != nil
            if takesOthers, !asksHelp { return nil }
            names += commands.compactMap { $0.configuration.commandName }
            guard names.contains(word) else {
                let meant = NearestName.of(word, among: names)
                let advice = meant.map { "did you mean '\($0)'?" } ?? "`sluice help` lists all"
                return "sluice: there is no command '\(word.prefix(40))'; \(advice)"
            }
            guard let next = commands.first(where: { $0.configuration.commandName == word })
            else { return nil }
            found = next
            names = []
        }
        return nil
    }
}
