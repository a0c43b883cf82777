import FixtureCDN
import ScenarioSupport
import Testing

/// Stored media is sent at the rate at which it was received, so that players measure the link.
extension Stories {
    @Suite(.tags(.timed)) struct PaceTests {
        private static let line = 1_000_000
        /// So slow that a body which is not paced is faster on a busy machine, too.
        private static let slowLine = 100_000
        private static let length = 400_000

        /// Bytes per second of a body, from its request to its last byte.
        private func speed(_ story: Story, _ path: String) throws -> Double {
            let begin = ContinuousClock.now
            let body = try story.open(path).readRest()
            let time = ContinuousClock.now - begin
            #expect(isContent(body, of: path))
            return Double(body.count) / (time / .seconds(1))
        }

        /// A story with stored segments that were received at a known rate.
        private func played(
            _ arguments: [String], _ paths: [String], rate: Int = Self.line
        ) throws -> Story {
            let story = try Story(arguments)
            for path in paths {
                story.cdn.setBehaviour(Behaviour(query: "rate=\(rate)"), for: path)
                #expect(isContent(try story.get(path).body, of: path))
            }
            return story
        }

        @Test func `a stored segment is sent no faster than it was received`() throws {
            let paths = (0..<2).map { segment("paced\($0)", Self.length) }
            let story = try played(["--pace", "line"], paths)
            let before = story.cdn.requestCount()
            for path in paths + paths {
                let speed = try speed(story, path)
                #expect(speed < 1.5 * Double(Self.line) && speed > 0.25 * Double(Self.line))
            }
            #expect(story.cdn.requestCount() == before)
        }

        @Test func `every reader has the configured rate for itself`() throws {
            let path = segment("told", Self.length)
            let story = try played(["--pace", "2MB"], [path])
            let begin = ContinuousClock.now
            let streams = try (0..<2).map { _ in try story.open(path) }
            for stream in streams { #expect(isContent(try stream.readRest(), of: path)) }
            // A step of 20 ms is allowed from the start.
            #expect(ContinuousClock.now - begin > .milliseconds(150))
        }

        @Test func `nothing is paced unless configured`() throws {
            let path = segment("free", Self.length)
            let story = try played([], [path], rate: Self.slowLine)
            #expect(try speed(story, path) > 3 * Double(Self.slowLine))
        }

        @Test func `without its origin a stored segment is not paced`() throws {
            let path = segment("alone", Self.length)
            let story = try played(["--pace", "line"], [path], rate: Self.slowLine)
            story.cdn.stop()
            #expect(try story.get(segment("other", 10)).status >= 500)
            #expect(try speed(story, path) > 3 * Double(Self.slowLine))
        }

        @Test func `a player that hangs up in the middle of a paced body costs nothing more`()
            throws
        {
            let path = segment("left", 4_000_000)
            let story = try Story(["--pace", "50KB"])
            #expect(isContent(try story.get(path).body, of: path))
            let stream = try story.open(path)
            _ = try stream.read(1000)
            stream.abort()
            #expect(try story.settled("connections") { $0 <= 1 } <= 1)
        }

        @Test(arguments: ["fast", "0", "1KB", "2PB", "line,"])
        func `an invalid pace is refused`(_ pace: String) throws {
            let result = try Tool.run([
                DaemonProcess.builtBinary(), "check", "--pace", pace,
            ])
            let text = String(decoding: result.errors, as: UTF8.self)
            #expect(result.status == 78 && text.contains("pace is off, line or bytes"))
        }
    }
}
