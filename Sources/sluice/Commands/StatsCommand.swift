import ArgumentParser
import CommandSupport
import Model

/// `sluice stats`: prints figures of a running daemon.
struct StatsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stats", abstract: "Print the daemon's counters.")

    @OptionGroup var daemon: DaemonOptions

    @Flag(help: "Print the daemon's JSON; default one line per figure.")
    var json = false

    func run() throws {
        let text = try daemon.client().send("GET", "/api/stats")
        if json {
            print(text, terminator: "")
            return
        }
        do throws(JSONFault) {
            // The object is flat except for two small ones, whose figures are prefixed with the
            // outer name.
            print(try StatsTable(json: text).lines.joined(separator: "\n"))
        } catch {
            throw commandFailure(
                "the daemon's figures cannot be parsed; does it have another version? \(error)")
        }
    }
}

/// The figures as lines of `name value`, in the daemon's order.
struct StatsTable {
    let lines: [String]

    /// Parses the object of /api/stats: values are numbers, texts, or objects of those.
    ///
    /// - Throws: `JSONFault` if it is malformed.
    init(json: String) throws(JSONFault) {
        lines = Self.lines(of: try JSONValue(parsing: Array(json.utf8)), under: "")
    }

    private static func lines(of value: JSONValue, under outer: String) -> [String] {
        guard case .object(let members) = value else { return [] }
        return members.flatMap { member in
            switch member.value {
            case .object: lines(of: member.value, under: "\(outer)\(member.name).")
            case .text(let text): ["\(outer)\(member.name) \(text)"]
            default: ["\(outer)\(member.name) \(member.value.encoded)"]
            }
        }
    }
}
