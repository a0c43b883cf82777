import Glibc
import Posix

/// A measured program: started, awaited, observed through proc(5), ended by its process id.
final class RunningProgram {
    private let child: ChildProgram
    var pid: pid_t { child.id }
    /// The port its ready line names.
    let address: SocketAddress
    private var hasEnded = false

    /// Starts `arguments[0]` and waits for a line that begins with `ready` and names a URL.
    init(_ arguments: [String], ready: String) throws {
        var pipes: [CInt] = [0, 0]
        guard pipe(&pipes) == 0 else { throw SystemError("pipe", code: errno) }
        // No child may inherit an end of the pipe.
        for end in pipes { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        defer { close(pipes[0]) }
        do {
            defer { close(pipes[1]) }
            child = try ChildProgram(arguments, output: pipes[1])
        }
        guard let address = Self.readAddress(from: pipes[0], after: ready) else {
            child.end(SIGKILL, within: 10)
            throw BenchError("\(arguments[0]) did not say '\(ready)'")
        }
        self.address = address
    }

    /// Starts `arguments[0]` with its output going to the file `output` in a folder; does not wait.
    init(quiet arguments: [String], in folder: String, to address: SocketAddress) throws {
        child = try Self.spawnQuiet(arguments, to: "\(folder)/output")
        self.address = address
    }

    /// Starts the sample CDN, which serves a folder.
    static func sampleCDN(in folder: BenchFolder, _ more: [String] = []) throws -> RunningProgram {
        let bin = try BenchFolder.ownFolder()
        return try RunningProgram(
            ["\(bin)/sample-cdn", "--folder", folder.path] + more, ready: "listening http")
    }

    /// Starts the daemon on a folder, on a port of its own choice.
    static func daemon(in folder: BenchFolder, _ more: [String]) throws -> RunningProgram {
        let bin = try BenchFolder.ownFolder()
        let arguments = [
            "\(bin)/sluice", "serve", "--port", "0", "--cache-dir",
            "\(folder.path)/cache", "--log-level", "error",
        ]
        return try RunningProgram(arguments + more, ready: "sluice ready http")
    }

    deinit { end() }

    /// Runs a program to its end, with its output going to the file `output` in a folder, or
    /// discarded.
    ///
    /// Blocks; returns its exit status, or -1 when a signal ended it.
    @discardableResult
    static func runToEnd(
        _ arguments: [String], in folder: String, quiet: Bool = false
    ) throws -> CInt {
        let child =
            quiet
            ? try spawnQuiet(arguments, to: "/dev/null")
            : try spawnQuiet(arguments, to: "\(folder)/output")
        return child.waitForEnd() ?? -1
    }

    private static func spawnQuiet(_ arguments: [String], to path: String) throws -> ChildProgram {
        let file = try openFile(path, flags: O_WRONLY | O_CREAT | O_APPEND)
        return try ChildProgram(arguments, output: file.number, errors: file.number)
    }

    /// Ends the program with `signal`; blocks until it has ended, and kills it after ten seconds.
    func end(_ signal: CInt = SIGTERM) {
        guard !hasEnded else { return }
        hasEnded = true
        child.end(signal, within: 10)
    }

    /// Reads lines until one contains the address; nil if the output ends or 20 s pass.
    private static func readAddress(from pipe: CInt, after ready: String) -> SocketAddress? {
        var text: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 4096)
        var poll = pollfd(fd: pipe, events: Int16(POLLIN), revents: 0)
        while Glibc.poll(&poll, 1, 20_000) > 0 {
            let count = read(pipe, &piece, piece.count)
            guard count > 0 else { return nil }
            text += piece[..<count]
            for line in text.split(separator: 0x0A) {
                let words = String(decoding: line, as: UTF8.self)
                guard words.hasPrefix(ready), let scheme = words.firstRange(of: "://") else {
                    continue
                }
                let place = words[scheme.upperBound...].prefix { $0 != "/" }.split(separator: ":")
                guard place.count == 2, let port = UInt16(place[1]) else { continue }
                return SocketAddress(host: String(place[0]), port: port)
            }
        }
        return nil
    }

    /// Processor time of all its threads so far, in seconds.
    var processorSeconds: Double { Bench.processorSeconds(of: pid) }

    /// Its anonymous resident memory in bytes (status, RssAnon).
    var privateBytes: Double { memoryBytes(of: pid, "status", "RssAnon:") }
}
