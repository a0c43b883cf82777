import Glibc
import Logging
import Model
import Posix
import Reactor
@testable import Serving
import Synchronization
import Testing

/// The file of the access log.
struct AccessLogTests {
    /// Keeps what is logged.
    private final class Kept: Sendable {
        let lines = Mutex<[String]>([])
    }

    private struct Keeper: LogHandler {
        let kept: Kept
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.trace

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            let detail = event.metadata?["reason"] ?? event.metadata?["lines"]
            let reason = detail.map { "\($0)" } ?? ""
            kept.lines.withLock { $0.append("\(event.level) \(event.message): \(reason)") }
        }
    }

    private let kept = Kept()
    private let counters = Counters()

    private func log(to path: String) throws -> AccessLog {
        let logger = Logger(label: "test") { [kept] _ in Keeper(kept: kept) }
        return try AccessLog(path: path, counters: counters, log: logger)
    }

    @Test(.timeLimit(.minutes(1)))
    func `the log ends although nobody reads it, and counts the lines that are lost`() throws {
        let folder = try makeTemporaryFolder("access-log-tests")
        defer { removeTree(folder) }
        let path = folder + "/pipe"
        try #require(mkfifo(path, 0o600) == 0)
        let reader = open(path, O_RDWR | O_NONBLOCK)
        defer { close(reader) }
        // F_GETPIPE_SZ, which Glibc does not show.
        let capacity = fcntl(reader, 1_032)
        let log = try log(to: path)
        let line = [UInt8](repeating: UInt8(ascii: "x"), count: 99) + [UInt8(ascii: "\n")]
        let count = Int(capacity) / 100 + 500
        for _ in 0..<count { log.append(line) }
        log.close()
        #expect(counters.value(of: .accessLogDropped) >= 500)
        #expect(counters.value(of: .accessLogDropped) < count)
        // However many writes have dropped lines.
        let lines = kept.lines.withLock { $0 }
        let dropped = counters.value(of: .accessLogDropped)
        #expect(lines.count == 2)
        #expect(lines.first?.hasPrefix("warning lines of the access log are dropped") == true)
        #expect(
            lines.last == "notice lines of the access log are no longer dropped: \(dropped)")
    }

    @Test func `a pipe that nobody reads holds up neither the start nor the end, and keeps lines`()
        throws
    {
        let folder = try makeTemporaryFolder("access-log-tests")
        defer { removeTree(folder) }
        let path = folder + "/pipe"
        try #require(mkfifo(path, 0o600) == 0)
        // A log that waits for a reader gets one at last, so that the test fails and does not hang.
        let rescue = try LoopThread(name: "rescue") { loop in
            loop.schedule(after: .seconds(20 as Int64)) { _ in
                _ = open(path, O_RDONLY | O_NONBLOCK)
            }
        }
        defer { rescue.stopAndJoin() }
        let began = Monotonic.now()
        let log = try log(to: path)
        log.append(Array("first\n".utf8))
        log.reopen()
        log.append(Array("second\n".utf8))
        log.close()
        #expect(Monotonic.now() - began < .seconds(10 as Int64))
        let reader = open(path, O_RDONLY | O_NONBLOCK)
        defer { close(reader) }
        var buffer = [UInt8](repeating: 0, count: 100)
        let count = read(reader, &buffer, buffer.count)
        #expect(Array(buffer.prefix(max(0, count))) == Array("first\nsecond\n".utf8))
        #expect(counters.value(of: .accessLogDropped) == 0)
        withExtendedLifetime(log) {}
    }

    /// Appends a line every ten milliseconds.
    private static func feed(_ log: AccessLog, on loop: EventLoop, times: Int) {
        guard times > 0 else { return }
        log.append(Array("late\n".utf8))
        loop.schedule(after: .milliseconds(10)) { Self.feed(log, on: $0, times: times - 1) }
    }

    @Test(.timeLimit(.minutes(1)))
    func `a full pipe that nobody reads is left for a file although lines keep coming`() throws {
        let folder = try makeTemporaryFolder("access-log-tests")
        defer { removeTree(folder) }
        let path = folder + "/log"
        try #require(mkfifo(path, 0o600) == 0)
        let pipe = open(path, O_RDWR | O_NONBLOCK)
        defer { close(pipe) }
        let page = [UInt8](repeating: 0, count: 4_096)
        while write(pipe, page, page.count) > 0 {}
        let log = try log(to: path)
        log.append(Array("early\n".utf8))
        // For five seconds at most, so that a log that waits for a pause fails the test.
        let feeder = try LoopThread(name: "feeder") { Self.feed(log, on: $0, times: 500) }
        defer { feeder.stopAndJoin() }
        try renameFile(path, to: folder + "/pipe")
        log.reopen()
        log.close()
        let written = try readWhole(path, atMost: 1 << 20)
        #expect(written.starts(with: Array("late\n".utf8)))
    }

    @Test(arguments: [(true, "whole\n"), (false, "cut\nwhole\n")])
    func `a cut line is ended in its own file, not in the one that replaces it`(
        isMoved: Bool, expected: String
    ) throws {
        let folder = try makeTemporaryFolder("access-log-tests")
        defer { removeTree(folder) }
        let path = folder + "/log"
        let log = try log(to: path)
        // As a full disk leaves it.
        log.append(Array("cut".utf8))
        let end = Monotonic.now() + .seconds(10 as Int64)
        while try readWhole(path, atMost: 100).isEmpty, Monotonic.now() < end { sched_yield() }
        if isMoved { try renameFile(path, to: folder + "/moved") }
        log.reopen()
        log.append(Array("whole\n".utf8))
        log.close()
        #expect(try readWhole(path, atMost: 100) == Array(expected.utf8))
    }

    @Test func `a file that cannot be opened again is reported, and the former one goes on`()
        throws
    {
        let folder = try makeTemporaryFolder("access-log-tests")
        defer { removeTree(folder) }
        let log = try log(to: folder + "/log")
        try renameFile(folder + "/log", to: folder + "/moved")
        try #require(mkdir(folder + "/log", 0o700) == 0)
        log.reopen()
        log.append(Array("line\n".utf8))
        log.close()
        #expect(try readWhole(folder + "/moved", atMost: 100) == Array("line\n".utf8))
        let lines = kept.lines.withLock { $0 }
        #expect(lines.count == 1)
        #expect(lines.first?.hasPrefix("warning ") == true)
        #expect(lines.first?.contains("SIGHUP") == true)
    }
}
