import ArgumentParser
import CommandSupport
import Glibc
import HTTP

/// `sluice verify`: reads every stored byte and drops what fails its checksum.
struct VerifyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify", abstract: "Read every stored byte and remove damaged objects.",
        discussion: """
            Every stored extent is compared with its checksum. Damaged extents are deleted and fetched again when \
            they are needed. Players are served meanwhile. Exits with 0 if everything is intact, and with 1 if \
            something was damaged or could not be read. If the command is interrupted, the daemon continues; if the \
            daemon is restarted, the check ends unfinished, and the command with 5.
            """)

    @Flag(help: "Print the report as JSON.")
    var json = false

    @OptionGroup var store: StoreOptions

    func run() throws {
        var isSound = false
        try store.withChannel { channel in
            var text = try channel.send(.post, "/api/verify")
            var report: Report = try decodeJSON(text)
            let showsProgress = isatty(STDERR_FILENO) == 1
            while report.state == "running" {
                usleep(100_000)
                text = try channel.progress(
                    "/api/verify", lost: "the check was not finished: run it again")
                report = try decodeJSON(text)
                if showsProgress { show(report) }
            }
            if showsProgress { printError("") }
            print(json ? text : report.text, terminator: "")
            isSound = report.sound ?? false
        }
        if !isSound { throw ExitCode.failure }
    }

    private func show(_ report: Report) {
        let line =
            "\r\(report.objects) of \(report.objectsToCheck) objects, \(OutputFormat.size(report.bytes))   "
        _ = write(STDERR_FILENO, line, line.utf8.count)
    }

    private struct Report: Decodable {
        let state: String
        let objects: Int
        let objectsToCheck: Int
        let bytes: Int64
        let sound: Bool?
        let intact: Int?
        let repaired: Int?
        let deleted: Int?
        let unreadable: Int?
        let lostBytes: Int64?

        var text: String {
            var lines = [
                "\(intact ?? 0) objects are intact, \(OutputFormat.size(bytes)) read"
            ]
            if let repaired, repaired > 0 {
                lines.append(
                    "\(repaired) lost damaged parts, \(OutputFormat.size(lostBytes ?? 0)) in all")
            }
            if let deleted, deleted > 0 { lines.append("\(deleted) were damaged and were deleted") }
            if let unreadable, unreadable > 0 {
                lines.append("\(unreadable) could not be read and were kept")
            }
            return lines.joined(separator: "\n") + "\n"
        }
    }
}
