import ArgumentParser
import CommandSupport
import DaemonService
import Serving

/// `sluice config`: the settings in force and the source of each.
struct ConfigCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "config",
        abstract: "Print each setting with its value and the source of the value.",
        discussion: """
            Takes the options of `sluice serve` and starts nothing. `from` is flag, environment, file or default. \
            `change` shows how a change takes effect: reload (SIGHUP) or restart. The token, and users, passwords \
            and queries in URLs, are printed as ***. Exit code 78: a setting is wrong.
            """)

    @OptionGroup var options: ServeOptions

    @Flag(help: "Print JSON.")
    var json = false

    func run() throws {
        let listing = ConfigListing(try options.read())
        print(json ? try listing.json() : listing.text)
    }
}

/// The settings as they are printed.
struct ConfigListing: Encodable {
    private struct Row: Encodable {
        let name: String
        let values: [String]
        let from: String
        let change: String
    }

    private let file: String?
    private let settings: [Row]

    init(_ configuration: DaemonConfiguration) {
        file = configuration.settingsFile
        settings = configuration.settings.map { setting in
            Row(
                name: setting.name, values: setting.values, from: setting.source,
                change: setting.isReloaded ? "reload" : "restart")
        }
    }

    var text: String {
        var table = TextTable()
        table.add("setting", "from", "change", "value")
        for row in settings {
            let value = row.values.isEmpty ? "-" : row.values.joined(separator: ", ")
            table.add(row.name, row.from, row.change, value)
        }
        return "file: \(file ?? "none")\n\n" + table.text
    }

    func json() throws -> String { try prettyJSON(self) }
}
