import Posix

/// The playback figures of `sluice-lab bench`: first plays, feeds and downloads.
enum Playback {
    /// The benches and their arguments; short, because each plays in real time.
    static let commands = [
        ["play", "--runs", "3", "--length", "4"],
        [
            "feed", "--profile", "4g", "--viewer", "fixed", "--visits", "10", "--runs", "1",
            "--speed", "5",
        ],
        ["download", "--profile", "wifi", "--length", "3"],
    ]
    private static let quick = [["play", "--runs", "1", "--length", "2", "--profile", "wifi"]]

    /// Runs them and returns their tables, each with the command that repeats it; a missing or
    /// failed bench is reported instead.
    static func run(_ options: BenchOptions, in folder: BenchFolder) throws -> [Table] {
        let bin = try BenchFolder.ownFolder()
        return try (options.isQuick ? quick : commands).map { arguments in
            let place = "\(folder.path)/play-\(arguments[0])"
            try makeFolder(place)
            let words =
                ["\(bin)/sluice-lab", "bench"] + arguments + ["--sample-cdn", "\(bin)/sample-cdn"]
            let status = try RunningProgram.runToEnd(words, in: place)
            let text = readText("\(place)/output")
            let command = "sluice-lab bench \(arguments.joined(separator: " "))"
            guard status == 0 else {
                return Table(
                    command: command, text: "left out: \(text.split(separator: "\n").first ?? "")")
            }
            return Table(command: command, text: text)
        }
    }

    /// The output of one bench.
    struct Table {
        let command: String
        let text: String

        var markdown: String { "\n`\(command)`\n\n\(text)" }

        /// One object per row, with the column names as keys.
        var json: String {
            PipeTable.rows(text).map { row in
                let pairs = row.map { "\(quotedJSON($0.name)):\(quotedJSON($0.value))" }
                return "{\"command\":\(quotedJSON(command)),\(pairs.joined(separator: ","))}\n"
            }.joined()
        }
    }
}

/// A parser of Markdown tables.
enum PipeTable {
    struct Cell: Equatable {
        let name: String
        let value: String
    }

    /// The rows of all tables in a text; each cell with its column name.
    static func rows(_ text: String) -> [[Cell]] {
        var head: [String]?
        var found: [[Cell]] = []
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            guard line.hasPrefix("|") else {
                head = nil
                continue
            }
            let cells = line.split(separator: "|").map { cell in
                String(cell.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed())
            }
            guard let names = head else {
                head = cells
                continue
            }
            guard !cells.allSatisfy({ $0.allSatisfy { $0 == "-" || $0 == ":" } }) else { continue }
            found.append(zip(names, cells).map { Cell(name: $0, value: $1) })
        }
        return found
    }
}
