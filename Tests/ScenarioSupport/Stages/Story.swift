package import FixtureCDN
import Glibc
import Synchronization

/// What nearly every story needs: a sample CDN, the daemon before it, and a folder for its cache.
package final class Story: Sendable {
    package let cdn: FixtureCDN
    package let transcript = Transcript()
    package let cacheFolder: String
    private let running: Shared<DaemonProcess>
    private let arguments: [String]
    private let program: String?
    private let environment: [(name: String, value: String)]
    private let temporary: TemporaryFolder

    /// Starts both.
    ///
    /// `arguments` are added to `serve`, `cdnFolder` is served by the CDN beside `/bytes/...`, and
    /// the cache is in a new folder unless one is given. Without `mayWriteAnywhere` the modes of
    /// folders bind the daemon even when it runs as root. `prefix` is a program with arguments that
    /// runs the daemon, such as `prlimit`. `first` is the binary that runs until the first restart.
    package init(
        _ arguments: [String] = [], cdnFolder: String? = nil, cacheFolder: String? = nil,
        mayWriteAnywhere: Bool = true, prefix: [String] = [],
        environment: [(name: String, value: String)] = [], first: String? = nil
    ) throws {
        self.environment = environment
        temporary = try TemporaryFolder()
        self.cacheFolder = cacheFolder ?? temporary.makeFolder("cache")
        cdn = FixtureCDN(folder: cdnFolder)
        try cdn.start()
        var command =
            ["serve", "--port", "0", "--allow-private", "--cache-dir", self.cacheFolder]
            + ["--look-ahead", "off"] + arguments
        let bounds = ["--bounding-set", "-dac_override", "--inh-caps", "-dac_override"]
        let runner = mayWriteAnywhere ? prefix : ["setpriv"] + bounds
        program = runner.first
        if !runner.isEmpty {
            command = runner.dropFirst() + [try DaemonProcess.builtBinary()] + command
        }
        self.arguments = command
        running = Shared(
            try DaemonProcess(
                command, binary: first ?? program, environment: environment,
                transcript: transcript))
    }

    deinit {
        daemon.kill(SIGKILL)
        _ = try? daemon.waitForExit()
        cdn.stop()
    }

    /// The running daemon.
    package var daemon: DaemonProcess { running.value }

    // MARK: Playing

    /// The daemon's URL for a path of the CDN.
    package func url(_ path: String) -> String { url(for: cdn.url(path)) }

    /// The daemon's URL for a URL of any origin.
    package func url(for origin: String) -> String { daemon.baseURL + "/" + origin }

    /// A new player; another thread must make its own.
    package func player() -> ScriptedPlayer { ScriptedPlayer(daemon.baseURL) }

    /// Requests a path of the CDN from the daemon, on a new connection, and reads the response to
    /// its end.
    package func get(
        _ path: String, range: String? = nil, headers: [WireHead.Field] = [],
        method: String = "GET"
    ) throws -> PlayerResponse {
        let fields = headers + (range.map { [("Range", $0)] } ?? [])
        return try player().get(url(path), headers: fields, method: method)
    }

    /// Requests a path of the CDN from the daemon and returns the response unread.
    package func open(
        _ path: String, range: String? = nil, receiveBuffer: Int32? = nil
    ) throws -> PlayerStream {
        let player = player()
        player.receiveBuffer = receiveBuffer
        return try player.open(url(path), headers: range.map { [("Range", $0)] } ?? [])
    }

    /// Plays the first bytes of a resource, hangs up, and waits until its fetch has ended there.
    package func leave(_ path: String, after count: Int) throws {
        cdn.hold(path, afterBytes: count)
        let stream = try open(path)
        _ = try stream.read(count)
        stream.abort()
        guard eventually({ cdn.activeRequests == 0 }) else {
            throw ScenarioFailure("the fetch of \(path) goes on without a player")
        }
        cdn.release(path)
    }

    // MARK: Life of the daemon

    /// Ends the daemon with a signal and starts it again on the same cache.
    package func restart(_ signal: Int32 = SIGTERM) throws {
        stop(signal)
        let next = try DaemonProcess(
            arguments, binary: program, environment: environment, transcript: transcript)
        running.update { $0 = next }
    }

    /// Ends the daemon with a signal.
    package func stop(_ signal: Int32 = SIGTERM) {
        daemon.kill(signal)
        _ = try? daemon.waitForExit(within: .seconds(20))
    }

    // MARK: Figures

    /// One number of `GET /api/stats`; throws when there is none of that name.
    package func stat(_ name: String) throws -> Int {
        try figure(name, in: try player().get("/api/stats").text)
    }

    /// Waits until a figure is as expected; returns the last value otherwise.
    package func settled(
        _ name: String, within limit: Duration = patience, _ isExpected: (Int) -> Bool
    ) throws -> Int {
        var value = try stat(name)
        _ = try eventually(within: limit) {
            value = try stat(name)
            return isExpected(value)
        }
        return value
    }

    /// Waits until `count` requests of players have arrived since `requests_total` was `known`.
    package func haveArrived(_ count: Int, since known: Int) throws -> Bool {
        // Each poll is a request, too.
        var polls = 0
        return try eventually {
            polls += 1
            return try stat("requests_total") >= known + polls + count
        }
    }
}

/// Returns a whole number of `/api/stats`.
package func figure(_ name: String, in stats: String) throws -> Int {
    guard let found = stats.firstRange(of: "\"\(name)\":"),
        let number = Int(stats[found.upperBound...].prefix { $0.isNumber || $0 == "-" })
    else { throw ScenarioFailure("no figure \(name) in \(stats)") }
    return number
}

// MARK: Content

/// A path of the CDN whose bytes follow from its name.
package func segment(_ name: String, _ size: Int) -> String { "/bytes/\(size)/\(name).ts" }

/// Whether `body` equals `/bytes/<size>/<name>` from `start` on, with the full length.
///
/// A plain Bool, since a failed comparison of megabytes would be printed byte by byte.
package func isContent(_ body: [UInt8], of path: String, from start: Int = 0, count: Int? = nil)
    -> Bool
{
    let parts = path.prefix { $0 != "?" }.split(separator: "/")
    guard parts.count == 3, let size = Int(parts[1]) else { return false }
    let end = start + (count ?? size - start)
    return body.count == end - start
        && isSame(body, FixtureCDN.syntheticBytes(String(parts[2]), start..<end))
}

/// A token in Fastly's format; different expiry times make different tokens.
package func signature(_ number: Int) -> String {
    let digits = String(number)
    let mac = String(repeating: "0", count: 40 - digits.count) + digits
    return "token=\(1_893_456_000 + number)_\(mac)"
}

/// The files of objects in a cache folder, those being made included.
package func storedFiles(_ folder: String) -> [String] {
    let shards = listFolder(folder + "/objects").map { "\(folder)/objects/\($0)" }
    return ([folder + "/new"] + shards).flatMap { shard in
        listFolder(shard).map { "\(shard)/\($0)" }
    }
}

/// A value that threads of a story share.
package final class Shared<Value: Sendable>: Sendable {
    private let state: Mutex<Value>

    package init(_ value: Value) { state = Mutex(value) }

    package var value: Value { state.withLock { $0 } }

    package func update(_ change: (inout Value) -> Void) { state.withLock { change(&$0) } }
}

/// Bytes that the files of objects occupy.
package func diskBytes(_ folder: String) -> Int {
    storedFiles(folder).reduce(0) { sum, path in
        var status = stat()
        return stat(path, &status) == 0 ? sum + Int(status.st_blocks) * 512 : sum
    }
}
