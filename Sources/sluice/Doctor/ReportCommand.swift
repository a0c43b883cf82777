import ArgumentParser
import CommandSupport
import DaemonService
import Diagnosis
import Glibc
import Model
import Posix

/// `sluice report`: what a bug report should have with it, without secrets, in one archive.
struct ReportCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "report",
        abstract: "Write one archive for a bug report, without secrets.",
        discussion: """
            Takes the options of `sluice serve`. The archive contains the findings of `sluice doctor`, the settings \
            as `sluice config` prints them, the daemon's figures, the end of the access log, and the state of the \
            systemd unit, as far as they exist. Tokens, cookies, credentials and values of queries are removed; \
            names of hosts and paths are not. Look through it before you send it. Only its owner may read the file.
            """)

    @Argument(
        help:
            "URL to test as `sluice doctor URL` does; headers may follow as in Kodi."
    )
    var url: String?

    @OptionGroup var headers: OriginHeaders

    @Option(
        help: ArgumentHelp(
            "Archive to write; default sluice-report-SECONDS.tar.gz in the current folder.",
            valueName: "FILE.tar.gz"),
        completion: .file())
    var output: String?

    @Flag(help: "Replace an existing file.")
    var force = false

    @OptionGroup var options: ServeOptions

    func validate() throws { _ = try given }

    private var given: GivenURL? {
        get throws { try url.map { try GivenURL($0, fields: headers.fields()) } }
    }

    func run() throws {
        let given = try given
        let path = output ?? "sluice-report-\(WallTime.now().seconds).tar.gz"
        // Asked before minutes of work, and made sure of when the file is made.
        guard force || access(path, F_OK) != 0 else { throw Self.isThere(path) }
        let doctor = Doctor(options, given)
        let files = try ReportFiles(doctor)
        defer { files.remove() }
        try files.pack(path, replaces: force)
        var found = stat()
        let size = stat(path, &found) == 0 ? OutputFormat.size(Int64(found.st_size)) : ""
        print("\(path), \(size): \(files.names.joined(separator: ", "))")
        for line in files.missing { print("without \(line)") }
        print("secrets are left out; look through it before you send it: tar -xzOf \(path) | less")
    }

    fileprivate static func isThere(_ path: String) -> ExitCode {
        commandFailure("\(path) exists already; name another file, or give --force")
    }
}

/// The files of a report in a folder of their own, until `remove`.
private final class ReportFiles {
    private static let name = "sluice-report"
    /// The most that is taken of the end of the access log.
    private static let longestLog: Int64 = 256 << 10

    private let folder: String
    private let redaction: Redaction
    private(set) var names: [String] = []
    /// What could not be had, and why.
    private(set) var missing: [String] = []

    /// Collects all; blocks for as long as the daemon takes to answer.
    init(_ doctor: Doctor) throws {
        do {
            folder = try makeTemporaryFolder("sluice-report")
        } catch {
            throw commandFailure("\(error); set TMPDIR to a folder that can be written to")
        }
        redaction = doctor.redaction
        do {
            try makeFolder("\(folder)/\(Self.name)")
            try add("version.txt", Self.version)
            try add("doctor.txt", doctor.report.text + "\n")
            try add("doctor.json", try doctor.report.json() + "\n")
            try addDaemon(doctor)
            try addUnit()
        } catch {
            remove()
            throw commandFailure("the report cannot be written: \(error)")
        }
    }

    func remove() { removeTree(folder) }

    // MARK: Contents

    /// Adds a file; every text goes through the redaction, wherever it comes from.
    private func add(_ name: String, _ text: String) throws {
        let bytes = Array(redaction.text(text).utf8)
        try replaceFile(
            "\(folder)/\(Self.name)/\(name)", with: bytes, in: "\(folder)/\(Self.name)", mode: 0o600
        )
        names.append(name)
    }

    private static var version: String {
        var system = utsname()
        guard uname(&system) == 0 else { return "sluice \(sluiceVersion)\n" }
        func text<Field>(_ field: Field) -> String {
            withUnsafeBytes(of: field) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        }
        // Not the name of the machine.
        return """
            sluice \(sluiceVersion)
            \(text(system.sysname)) \(text(system.release)) \(text(system.machine))

            """
    }

    private func addDaemon(_ doctor: Doctor) throws {
        guard let configuration = doctor.configuration else {
            return missing.append("settings and figures: a setting is wrong, see doctor.txt")
        }
        try add("config.json", try ConfigListing(configuration).json() + "\n")
        if let daemon = doctor.daemon {
            let client = AdminClient(
                base: daemon.base, token: configuration.proxy.token, authority: daemon.authority)
            for (page, name) in [
                ("/api/stats", "stats.json"), ("/metrics", "metrics.txt"),
                ("/api/origins", "origins.json"), ("/api/history", "history.json"),
            ] {
                switch client.ask("GET", page) {
                case .answered(let text): try add(name, text)
                case .failed(let failure), .refused(let failure):
                    missing.append("\(name): \(redaction.text(failure.message))")
                }
            }
        } else {
            let fault =
                doctor.faultOfDaemon
                ?? "no daemon answers at the addresses of these settings, see doctor.txt"
            missing.append("figures: \(redaction.text(fault))")
        }
        try addLog(configuration.proxy.accessLog)
    }

    /// The last lines of the access log.
    private func addLog(_ path: String?) throws {
        guard let path, path != "-" else { return missing.append("access log: none is a file") }
        do throws(SystemError) {
            let file = SharedDescriptor(try openFile(path, flags: O_RDONLY | O_NONBLOCK))
            var found = stat()
            guard fstat(file.number, &found) == 0, found.st_mode & S_IFMT == S_IFREG else {
                return missing.append("access log: \(path) is no file")
            }
            let size = Int64(found.st_size)
            let start = max(0, size - Self.longestLog)
            var bytes = try readBytes(
                from: file.number, at: start, count: Int(size - start))[...]
            // A cut line could begin in the middle of a secret.
            if start > 0 { bytes = bytes.drop { $0 != 0x0A }.dropFirst() }
            let lines = bytes.split(separator: 0x0A).suffix(500)
            let text = lines.map { String(decoding: $0, as: UTF8.self) + "\n" }.joined()
            do {
                try add("access-log.txt", text)
            } catch {
                missing.append("access log: \(error)")
            }
        } catch {
            missing.append("access log: \(error)")
        }
    }

    /// Properties that hold no settings: neither the command line nor the environment.
    private static let properties = [
        "LoadState", "ActiveState", "SubState", "UnitFileState", "Result", "ExecMainCode",
        "ExecMainStatus", "NRestarts", "ActiveEnterTimestamp", "MemoryCurrent", "MemoryMax",
        "TasksCurrent", "LimitNOFILE", "LimitFSIZE",
    ]

    private func addUnit() throws {
        let path = folder + "/unit"
        let command =
            ["systemctl", "show", "sluice.service", "--no-pager"]
            + Self.properties.map { "--property=\($0)" }
        let output = try openFile(path, flags: O_WRONLY | O_CREAT | O_EXCL)
        let none = try openFile("/dev/null", flags: O_WRONLY)
        guard
            let child = try? ChildProgram(command, output: output.number, errors: none.number),
            child.waitForEnd(within: 10) == 0
        else { return missing.append("systemd unit: systemctl failed") }
        let text = String(decoding: try readStart(path, atMost: 64 << 10), as: UTF8.self)
        // Whatever systemctl prints besides is not asked for.
        let lines = text.split(separator: "\n").filter { line in
            Self.properties.contains(String(line.prefix { $0 != "=" }))
        }
        guard lines.contains("LoadState=loaded") else {
            return missing.append("systemd unit: no sluice.service")
        }
        try add("unit.txt", lines.joined(separator: "\n") + "\n")
    }

    // MARK: Archive

    /// Packs all into a file that only its owner can read.
    func pack(_ path: String, replaces: Bool) throws {
        if replaces { unlink(path) }
        let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else {
            if errno == EEXIST { throw ReportCommand.isThere(path) }
            throw commandFailure("\(path) cannot be made: \(String(cString: strerror(errno)))")
        }
        defer { close(file) }
        let command = [
            "tar", "--create", "--gzip", "--owner=0", "--group=0", "--numeric-owner", "--file=-",
            "--directory=\(folder)", Self.name,
        ]
        let child = try? ChildProgram(command, output: file)
        guard let child, child.waitForEnd(within: 60) == 0 else {
            unlink(path)
            throw commandFailure("tar and gzip are needed to pack a report, and one of them failed")
        }
    }
}
