import ArgumentParser
import CommandSupport
import FoundationEssentials
import Glibc
import Posix

/// `sluice export`: writes a stored title as a folder for any web server, or as one MP4.
struct ExportCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Write a stored title as a folder for any web server, or as one file.",
        discussion: """
            The folder contains index.m3u8, a playlist for each stream, and the segments, sections and keys in them, \
            all with relative links. Only stored media is exported: download the title first. A name that ends in \
            .mp4, .m4v, .mov or .mkv is made by ffmpeg without coding video or audio again; subtitles become text of \
            that format, or are reported as omitted. A title whose keys only a key system provides, such as FairPlay \
            or Widevine, is not exported.
            """)

    @Argument(help: "Number of the title in `sluice ls`, or its entry URL.")
    var title: String

    @Argument(
        help: "A new or empty folder, or a file that ends in .mp4, .m4v, .mov or .mkv.",
        completion: .file())
    var target: String

    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        let format = ExportFormat(target)
        if format == .unknownFile {
            throw commandFailure(
                "an export is a folder, or a file that ends in .mp4, .m4v, .mov or .mkv, not \(target)"
            )
        }
        Interruption.watch()
        let client = daemon.client()
        let text = try client.send("GET", "/api/export?\(daemonQuery([("title", title)]))")
        let export: Export = try decodeJSON(text)
        guard format == .folder else { return try writeFile(export, format, client) }
        let names = (try? listFolder(target).map(\.name)) ?? []
        guard names.allSatisfy({ $0 == ".parts" }) else {
            throw commandFailure("\(target) is not empty; empty it, or name another folder")
        }
        // Made for a web server, which is another user: the umask decides.
        try makeFolder(target, mode: 0o777)
        let parts = "\(target)/.parts"
        let lock = try makeParts(parts)
        defer { withExtendedLifetime(lock) { Interruption.removeFolder() } }
        let bytes = try export.write(to: parts, shownAs: target, client)
        try Interruption.wait { try export.move(from: parts, to: target) }
        print(
            "\(export.name): \(export.files.count) files, \(OutputFormat.size(bytes)), in \(target)"
        )
    }

    private func writeFile(
        _ export: Export, _ format: ExportFormat, _ client: AdminClient
    ) throws {
        try Self.refuseExisting(target)
        let parent = parentFolder(of: target)
        guard access(parent, F_OK) == 0 else {
            throw commandFailure("there is no folder \(parent); make it, or name another file")
        }
        let folder = target + ".parts"
        let lock = try makeParts(folder)
        defer { withExtendedLifetime(lock) { Interruption.removeFolder() } }
        _ = try export.write(to: folder, shownAs: folder, client)
        let input = "\(folder)/\(export.entry)"
        // Its name is of the format, and of no file of an export.
        let made = "\(folder)/.made.\(target.split(separator: ".").last ?? "")"
        let hasSubtitles = export.hasSubtitles
        var hasThem = hasSubtitles
        var status = hasSubtitles ? Self.mux(input, to: made, format, withSubtitles: true) : nil
        if status != 0 {
            unlink(made)
            hasThem = false
            status = Self.mux(input, to: made, format, withSubtitles: false)
        }
        guard status == 0 else {
            let reason = status == nil ? "could not be run; is it installed?" : "said why above"
            throw commandFailure("\(target) is not made: ffmpeg \(reason)")
        }
        // Another program may have made it meanwhile.
        try Self.refuseExisting(target)
        try renameFile(made, to: target)
        print("\(export.name) is in \(target)")
        if hasSubtitles, !hasThem {
            printError(
                "sluice: the subtitles are left out of \(target): ffmpeg cannot put them in; a folder keeps them"
            )
        }
    }

    /// Makes the folder in which the files are written, and locks it; an earlier one that a killed
    /// export has left is removed.
    ///
    /// - Parameter folder: its path.
    /// - Returns: the lock, to be kept as long as the folder.
    /// - Throws: `ExitCode` after printing the error, or `SystemError`.
    private func makeParts(_ folder: String) throws -> SharedDescriptor {
        let path = folder + "/.lock"
        // Locked until the new one is, so that of two that find it only one goes on.
        var former: SharedDescriptor?
        defer { withExtendedLifetime(former) {} }
        if access(folder, F_OK) == 0 {
            guard let file = try? SharedDescriptor(openFile(path, flags: O_RDWR)) else {
                throw commandFailure("\(folder) is in the way; remove it")
            }
            guard try lockExclusively(file.number) else {
                throw commandFailure("another export to \(target) runs; wait, or name another")
            }
            former = file
            removeTree(folder)
        }
        try Interruption.make(folder: folder)
        do {
            let file = SharedDescriptor(try openFile(path, flags: O_RDWR | O_CREAT))
            _ = try lockExclusively(file.number)
            return file
        } catch {
            Interruption.removeFolder()
            throw error
        }
    }

    private static func refuseExisting(_ target: String) throws {
        guard access(target, F_OK) != 0 else {
            throw commandFailure("\(target) exists already; name another file")
        }
    }

    /// Has ffmpeg make the file; its exit status, nil if it was not run to its end.
    private static func mux(
        _ input: String, to target: String, _ format: ExportFormat, withSubtitles: Bool
    ) -> CInt? {
        var command = [
            "ffmpeg", "-nostdin", "-v", withSubtitles ? "quiet" : "error", "-protocol_whitelist",
            "file,crypto,data", "-allowed_extensions", "ALL", "-i", input, "-map", "0:v:0?",
            "-map", "0:a?",
        ]
        if withSubtitles { command += ["-map", "0:s", "-c:s", format.subtitleCodec] }
        command += ["-c:v", "copy", "-c:a", "copy"]
        if format == .mp4 { command += ["-movflags", "+faststart"] }
        return Interruption.run(command + [target])
    }
}

/// The format of an export, by its name.
private enum ExportFormat {
    case folder
    /// Also for M4V and MOV, which consist of the same boxes.
    case mp4
    case matroska
    /// A media file in a format that is not supported.
    case unknownFile

    init(_ target: String) {
        let name = target.split(separator: "/").last ?? ""
        var found = stat()
        let isThere = stat(target, &found) == 0 && found.st_mode & S_IFMT == S_IFDIR
        // Without a name before the dot, or without a dot, it is no type: `backup/aac`.
        guard !isThere, !target.hasSuffix("/"), let dot = name.lastIndex(of: "."),
            dot != name.startIndex
        else {
            self = .folder
            return
        }
        switch name[dot...].dropFirst().lowercased() {
        case "mp4", "m4v", "mov": self = .mp4
        case "mkv": self = .matroska
        case "avi", "webm", "ts", "m2ts", "flv", "wmv", "mpg", "mpeg", "mp3", "m4a", "aac", "m3u8",
            "ogg", "wav":
            self = .unknownFile
        default: self = .folder
        }
    }

    /// ffmpeg's encoder for subtitles.
    var subtitleCodec: String { self == .mp4 ? "mov_text" : "srt" }
}

/// The files of an export, as the daemon lists them.
private struct Export: Decodable {
    struct File: Decodable {
        let name: String
        let text: String?
        let source: String
        let ranges: [[Int64]]
    }

    let name: String
    let entry: String
    let files: [File]

    /// True if a playlist names subtitles.
    var hasSubtitles: Bool {
        files.contains { $0.text?.contains("TYPE=SUBTITLES") ?? false }
    }

    /// The files in the order in which they are written: playlists behind all that they may name,
    /// the entry last, so that nothing plays before everything is there.
    private var filesInOrder: [File] {
        let others = files.filter { $0.name != entry }
        return others.filter { $0.text == nil } + others.filter { $0.text != nil }
            + files.filter { $0.name == entry }
    }

    /// The names of files that may be written: those that begin with a dot are the export's own.
    private static func isName(_ name: String) -> Bool {
        !name.contains("/") && !name.hasPrefix(".")
    }

    /// Writes the files into a folder, and returns the number of bytes written.
    ///
    /// A file is written under the name `.part` and gets its own when it is whole. Errors show the
    /// folder as `shown`.
    func write(to folder: String, shownAs shown: String, _ daemon: AdminClient) throws -> Int64 {
        // One client for all files, so that they share one connection.
        let client = BlockingClient()
        let part = "\(folder)/.part"
        var bytes: Int64 = 0
        for file in filesInOrder where Self.isName(file.name) {
            bytes += try write(
                file, to: "\(shown)/\(file.name)", through: part, daemon, client)
            try renameFile(part, to: "\(folder)/\(file.name)")
        }
        return bytes
    }

    /// Moves the written files into another folder; none after an error.
    func move(from folder: String, to target: String) throws {
        var moved: [String] = []
        do {
            for file in filesInOrder where Self.isName(file.name) {
                let path = "\(target)/\(file.name)"
                try renameFile("\(folder)/\(file.name)", to: path)
                moved.append(path)
            }
        } catch {
            for path in moved { unlink(path) }
            throw error
        }
    }

    /// Writes a file under the name `part`, and returns the number of bytes written; errors show
    /// `path`.
    private func write(
        _ file: File, to path: String, through part: String, _ daemon: AdminClient,
        _ client: BlockingClient
    ) throws -> Int64 {
        if let text = file.text {
            guard OutputFile.write(text, to: part) else {
                let reason = String(cString: strerror(errno))
                throw commandFailure("\(path) cannot be written: \(reason)")
            }
            return Int64(text.utf8.count)
        }
        let fetch = try FileFetch(path: path, part: part, daemon, client)
        if file.ranges.isEmpty { try fetch.get(file.source, from: 0, to: nil) }
        for range in file.ranges where range.count == 2 {
            try fetch.get(file.source, from: range[0], to: range[1])
        }
        return fetch.bytes
    }
}

/// Fetches a resource from the daemon into a file.
private final class FileFetch {
    private let path: String
    private let daemon: AdminClient
    private let client: BlockingClient
    private let file: OwnedDescriptor
    private var offset: Int64 = 0
    private(set) var bytes: Int64 = 0
    /// Why received bytes were not written, which libcurl does not know.
    private var writeFault: SystemError?

    /// Makes the file `part`, which must not exist; errors show `path`.
    init(
        path: String, part: String, _ daemon: AdminClient, _ client: BlockingClient
    ) throws {
        self.path = path
        self.daemon = daemon
        self.client = client
        file = try openFile(part, flags: O_WRONLY | O_CREAT | O_EXCL, mode: 0o666)
    }

    /// Fetches the whole resource, or a range to its position; blocks.
    ///
    /// - Throws: `ExitCode` after printing the error.
    func get(_ source: String, from start: Int64, to end: Int64?) throws {
        offset = start
        var request = BlockingClient.Request("GET", daemon.base + source)
        request.failsOnErrorStatus = true
        request.authority = daemon.authority
        request.range = end.map { start...max(start, $0 - 1) }
        request.stallSeconds = 120
        do throws(BlockingClient.Failure) {
            _ = try client.perform(request) { self.take($0) }
        } catch {
            if let writeFault { throw commandFailure("\(path) cannot be written: \(writeFault)") }
            let failure = commandFailure(
                "\(path) cannot be fetched from the daemon: \(error.reason)")
            throw error.kind == .refused ? ExitCodes.unreachable : failure
        }
    }

    private func take(_ raw: UnsafeRawBufferPointer) -> Bool {
        do throws(SystemError) {
            try writeAll(raw, to: file.number, at: offset)
        } catch {
            writeFault = error
            return false
        }
        offset += Int64(raw.count)
        bytes += Int64(raw.count)
        return true
    }
}
