import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// Start and end of the daemon: the resources it claims, its notifications, and what it leaves.
extension Stories {
    @Suite(.tags(.timed)) struct LifecycleTests {}
}

extension Stories.LifecycleTests {
    @Test
    func `a port in use is reported and ends with 3`() throws {
        let story = try Story()
        let port = String(story.daemon.baseURL.split(separator: ":")[2])
        let folder = try TemporaryFolder()
        let second = try sluice("serve", "--port", port, "--cache-dir", folder.path)
        #expect(second.status == 3)
        #expect(second.stderr.contains("another process has the port") && second.stdout.isEmpty)
    }

    @Test
    func `a cache folder has one daemon, and stays intact`() throws {
        let story = try Story()
        story.cdn.put("/a.ts", Array("bytes".utf8))
        _ = try story.get("/a.ts")
        let second = try sluice("serve", "--port", "0", "--cache-dir", story.cacheFolder)
        #expect(second.status == 4)
        #expect(second.stderr.contains(story.cacheFolder), "\(second.stderr)")
        #expect(try story.get("/a.ts").text == "bytes" && story.cdn.requestCount("/a.ts") == 1)
    }

    @Test
    func `a folder with other files is not taken as a cache`() throws {
        let folder = try TemporaryFolder()
        try writeFile(folder.file("thesis.txt"), "dear".utf8)
        let result = try sluice("serve", "--port", "0", "--cache-dir", folder.path)
        #expect(result.status == 4, "\(result.stderr)")
        #expect(listFolder(folder.path) == ["thesis.txt"])
        let file = try sluice("serve", "--port", "0", "--cache-dir", folder.file("thesis.txt"))
        #expect(file.status == 4)
    }

    @Test
    func `a store of a newer version ends with a code after which nobody tries again`() throws {
        let folder = try TemporaryFolder()
        try writeFile(folder.file("format"), "SLUICE STORE 99\n".utf8)
        let result = try sluice("serve", "--port", "0", "--cache-dir", folder.path)
        #expect(result.status == 78, "\(result.stderr)")
        #expect(result.stderr.contains("use the newer one, or another folder"), "\(result.stderr)")
        #expect(listFolder(folder.path) == ["format"])
    }

    @Test(.enabled(if: geteuid() == 0, "needs root"))
    func `root serves no store of another user, and leaves no file there`() throws {
        let story = try Story()
        _ = try story.get(segment("a", 1_000))
        story.stop()
        let owner = "65534:65534"
        #expect(try Tool.run(["chown", "-R", owner, story.cacheFolder]).status == 0)
        let refused = try sluice("serve", "--port", "0", "--cache-dir", story.cacheFolder)
        #expect(refused.status == 4, "\(refused.stderr)")
        #expect(refused.stderr.contains("belongs to the user"), "\(refused.stderr)")
        #expect(try Tool.run(["find", story.cacheFolder, "-user", "0"]).stdout.isEmpty)
    }

    @Test
    func `a damaged index is rebuilt from the objects`() throws {
        let story = try Story()
        story.cdn.put("/a.ts", Array("bytes".utf8))
        _ = try story.get("/a.ts")
        story.stop()
        for name in listFolder(story.cacheFolder) where name.hasPrefix("index.sqlite") {
            try writeFile("\(story.cacheFolder)/\(name)", [UInt8](repeating: 0x5A, count: 40_000))
        }
        try story.restart()
        let isBack = try eventually {
            story.cdn.resetLog()
            return try story.get("/a.ts").text == "bytes" && story.cdn.requestCount("/a.ts") == 0
        }
        #expect(isBack)
        #expect(story.daemon.standardError.contains("index is damaged"))
    }

    @Test
    func `the service manager and a waiting script are notified when players can connect`() throws {
        let folder = try TemporaryFolder()
        let notices = try NoticeSocket(folder.file("notify"))
        let daemon = try Story.serve(
            folder.makeFolder("cache"), [], [("NOTIFY_SOCKET", folder.file("notify"))])
        #expect(try notices.next().contains("READY=1"))
        #expect(try ScriptedPlayer(daemon.baseURL).get("/api/health").status == 200)
        #expect(daemon.standardOutput == "sluice ready \(daemon.baseURL)\n")
        #expect(try daemon.terminate() == .code(0))
        #expect(try notices.next().contains("STOPPING=1"))
        // As each step begins, so that none is cut off by TimeoutStopSec.
        #expect(try notices.next().hasPrefix("EXTEND_TIMEOUT_USEC="))
    }

    @Test
    func `the service manager and the journal are told of settings that are not reloaded`() throws {
        let folder = try TemporaryFolder()
        let notices = try NoticeSocket(folder.file("notify"))
        let settings = folder.file("sluice.json")
        try writeFile(settings, "{}".utf8)
        // Standard error stands for the journal's socket.
        let program = try DaemonProcess.builtBinary()
        let daemon = try DaemonProcess(
            ["-c", Self.asJournal, program, "serve", "--port", "0", "--config", settings]
                + ["--cache-dir", folder.makeFolder("cache")],
            binary: "sh", environment: [("NOTIFY_SOCKET", folder.file("notify"))])
        #expect(try notices.next().hasSuffix("STATUS=Listening"))
        try writeFile(settings, #"{"cache-sise": "9MB"}"#.utf8)
        daemon.kill(SIGHUP)
        let status = try notices.next()
        #expect(status.hasPrefix("STATUS=Listening; not reloaded: "), "\(status)")
        #expect(status.contains("cache-sise"), "\(status)")
        let isError = eventually {
            daemon.standardError.split(separator: "\n").contains {
                $0.hasPrefix("<3>") && $0.contains("configuration not changed")
            }
        }
        #expect(isError, "\(daemon.standardError)")
        try writeFile(settings, "{}".utf8)
        daemon.kill(SIGHUP)
        #expect(try notices.next() == "STATUS=Listening")
    }

    @Test
    func `errors of a start have their priority in the journal`() throws {
        let folder = try TemporaryFolder()
        let settings = folder.file("sluice.json")
        try writeFile(settings, #"{"cache-sise": "9MB", "prot": 1}"#.utf8)
        let start = [try DaemonProcess.builtBinary(), "serve", "--config", settings]
        let result = try Tool.run(["sh", "-c", Self.asJournal] + start, within: patience)
        #expect(result.status == 78)
        let lines = result.stderr.split(separator: "\n")
        #expect(lines.count == 2 && lines.allSatisfy { $0.hasPrefix("<3>") }, "\(result.stderr)")
        let other = try Tool.run(start, within: patience)
        #expect(!other.stderr.contains("<3>"), "\(other.stderr)")
    }

    /// Runs its arguments with the variable by which a program recognizes the journal.
    private static let asJournal =
        #"JOURNAL_STREAM=$(stat -Lc %d:%i /proc/self/fd/2) exec "$0" "$@""#

    @Test
    func `SIGHUP ends nothing, SIGINT ends as SIGTERM does`() throws {
        let story = try Story()
        story.daemon.kill(SIGHUP)
        #expect(eventually { story.daemon.standardError.contains("SIGHUP") })
        #expect(try story.follow("/api/health").status == 200)
        story.daemon.kill(SIGINT)
        #expect(try story.daemon.waitForExit() == .code(0))
    }

    @Test
    func `SIGTERM lets a running response finish and takes no new player`() throws {
        let story = try Story(["--drain-timeout", "20"])
        let path = segment("long", 2_000_000)
        story.cdn.hold(path, afterBytes: 1_000_000)
        let stream = try story.open(path)
        let head = try stream.read(1_000_000)
        story.daemon.kill(SIGTERM)
        let refuses = eventually { (try? story.player().get("/api/health")) == nil }
        #expect(refuses && story.daemon.isRunning)
        story.cdn.release(path)
        #expect(isContent(head + (try stream.readRest()), of: path) && stream.broken == nil)
        #expect(try story.daemon.waitForExit() == .code(0))
    }

    @Test
    func `a second SIGTERM waits for no player, and stored bytes are kept`() throws {
        let story = try Story(["--drain-timeout", "60"])
        let path = segment("long", 2_000_000)
        story.cdn.hold(path, afterBytes: 1_000_000)
        let stream = try story.open(path)
        _ = try stream.read(1_000_000)
        story.daemon.kill(SIGTERM)
        _ = eventually { story.daemon.standardError.contains("stopping") }
        story.daemon.kill(SIGTERM)
        #expect(try story.daemon.waitForExit() == .code(0))
        withExtendedLifetime(stream) {}
        story.cdn.release(path)
        try story.restart()
        #expect(isContent(try story.get(path).body, of: path))
        #expect(story.cdn.requests.last?.range?.hasPrefix("bytes=") == true)
    }
}

/// A datagram socket as systemd's that NOTIFY_SOCKET names.
private final class NoticeSocket {
    private let descriptor: Int32

    init(_ path: String) throws {
        descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let failed = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard failed == 0 else { throw ScenarioFailure("cannot bind \(path)") }
    }

    deinit { close(descriptor) }

    /// The next notice; throws when none comes.
    func next() throws -> String {
        var watch = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        guard poll(&watch, 1, Int32(patience / .milliseconds(1))) == 1 else {
            throw ScenarioFailure("no notice came")
        }
        var buffer = [UInt8](repeating: 0, count: 1024)
        let count = recv(descriptor, &buffer, buffer.count, 0)
        return String(decoding: buffer.prefix(max(0, count)), as: UTF8.self)
    }
}
