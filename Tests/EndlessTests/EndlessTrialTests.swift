import Endless
import HTTP
import Posix
import Testing

/// A live stream arrives as fast as its clock runs, a file as fast as the line allows.
@Suite struct EndlessTrialTests {
    private static func fields(_ lines: [(String, String)]) -> Fields {
        var fields = Fields()
        for (name, value) in lines { fields.append(FieldName(name), value) }
        return fields
    }

    private static let panel = fields([("Content-Type", "video/mp2t")])

    /// The verdict on media that arrives at a number of seconds a second, after a burst.
    private static func verdict(
        speed: Double, burst: Double, seconds: Double = 60, of media: [UInt8] = Media.video,
        fields: Fields = panel, pieces: Double = 0
    ) throws -> (EndlessTrial.Verdict, after: Double) {
        let head = try #require(EndlessHead(.ok, fields))
        let start = Monotonic(nanoseconds: 5_000_000_000)
        var trial = EndlessTrial(head, now: start)
        var scanner = StreamScanner(head.format)
        let rate = Double(media.count) / 12
        var sent = 0
        var passed = 0.0
        while passed <= seconds {
            // Some origins send what several seconds have made at once.
            let made = pieces > 0 ? (passed / pieces).rounded(.down) * pieces : passed
            let due = Int((burst + made * speed) * rate)
            while sent < due {
                let from = sent % media.count
                let part = Array(media[from..<min(from + due - sent, media.count)])
                scanner.take(part.span)
                sent += part.count
            }
            let now = start + Interval(seconds: passed)
            let verdict = trial.observe(bytes: Int64(sent), scanner, now: now)
            if verdict != .undecided { return (verdict, passed) }
            passed += 0.1
        }
        return (.undecided, passed)
    }

    @Test(arguments: [0.0, 2, 10])
    func `what comes at the speed of its clock is live`(burst: Double) throws {
        let (verdict, after) = try Self.verdict(speed: 1, burst: burst)
        #expect(verdict == .endless && after < 14)
    }

    @Test func `what comes in pieces of several seconds is live`() throws {
        #expect(try Self.verdict(speed: 1, burst: 4, pieces: 4).0 == .endless)
    }

    @Test(arguments: [3.0, 20, 1_000])
    func `what comes faster is a file`(speed: Double) throws {
        #expect(try Self.verdict(speed: speed, burst: 0).0 == .file)
    }

    @Test func `what comes much slower is a file on a slow line`() throws {
        #expect(try Self.verdict(speed: 0.4, burst: 0).0 == .file)
    }

    /// What a trial sees of media that is looked at by hand.
    private struct Hand {
        private var trial: EndlessTrial
        private var scanner: StreamScanner
        private var sent = 0
        private let start = Monotonic(nanoseconds: 5_000_000_000)

        init() throws {
            let head = try #require(EndlessHead(.ok, EndlessTrialTests.panel))
            trial = EndlessTrial(head, now: start)
            scanner = StreamScanner(head.format)
        }

        /// The verdict once so many seconds of the media have arrived.
        mutating func look(media seconds: Double, at time: Double) -> EndlessTrial.Verdict {
            let media = Media.video
            let due = Int(seconds * Double(media.count) / 12)
            while sent < due {
                let from = sent % media.count
                let part = Array(media[from..<min(from + due - sent, media.count)])
                scanner.take(part.span)
                sent += part.count
            }
            return trial.observe(bytes: Int64(sent), scanner, now: start + Interval(seconds: time))
        }

        mutating func pause(at time: Double) { trial.pause(now: start + Interval(seconds: time)) }

        mutating func resume(at time: Double) {
            trial.resume(now: start + Interval(seconds: time))
        }
    }

    @Test func `a file that is paused for its viewer is none the less a file`() throws {
        var hand = try Hand()
        #expect(hand.look(media: 32, at: 0.3) == .undecided)
        hand.pause(at: 0.3)
        // What was on its way arrives all the same.
        #expect(hand.look(media: 32.1, at: 0.3) == .undecided)
        var verdict = EndlessTrial.Verdict.undecided
        for round in 1...3 where verdict == .undecided {
            // The viewer has played half of the read-ahead.
            let time = Double(round) * 16
            hand.resume(at: time)
            verdict = hand.look(media: 16 + time + 0.1, at: time)
            guard verdict == .undecided else { break }
            verdict = hand.look(media: 32 + time, at: time + 0.2)
            hand.pause(at: time + 0.2)
        }
        #expect(verdict == .file)
    }

    @Test(arguments: [0.5, 2])
    func `a live stream that was paused once is live`(pausedAt: Double) throws {
        var hand = try Hand()
        var verdict = EndlessTrial.Verdict.undecided
        for step in 0...400 where verdict == .undecided {
            let time = Double(step) / 10
            if time == pausedAt { hand.pause(at: time) }
            if time > pausedAt, time < pausedAt + 5 { continue }
            if time == pausedAt + 5 { hand.resume(at: time) }
            // What it has made meanwhile comes at once.
            verdict = hand.look(media: 10 + time, at: time)
        }
        #expect(verdict == .endless)
    }

    @Test(arguments: [1.0, 20])
    func `support for ranges without a length settles nothing`(speed: Double) throws {
        var fields = Self.panel
        fields.append(.acceptRanges, "bytes")
        let (verdict, _) = try Self.verdict(speed: speed, burst: 2, fields: fields)
        let wanted = speed == 1 ? EndlessTrial.Verdict.endless : .file
        #expect(verdict == wanted)
    }

    @Test(arguments: [1.0, 20])
    func `a transport stream without tables is measured by its clock`(speed: Double) throws {
        let tables = StreamScanner.scan(Media.video, as: .transport).scanner.tables
        let left = Set([0, 188].map { Media.pid(tables, at: $0) })
        let media = stride(from: 0, to: Media.video.count, by: 188).flatMap {
            (start: Int) -> ArraySlice<UInt8> in
            left.contains(Media.pid(Media.video, at: start))
                ? [] : Media.video[start..<start + 188]
        }
        #expect(StreamScanner.scan(media, as: .transport).scanner.tables.isEmpty)
        let (verdict, _) = try Self.verdict(speed: speed, burst: 2, of: media)
        let wanted = speed == 1 ? EndlessTrial.Verdict.endless : .file
        #expect(verdict == wanted)
    }

    @Test func `a radio station is believed at once`() throws {
        let fields = Self.fields([("Content-Type", "audio/aac"), ("icy-name", "x")])
        let (verdict, after) = try Self.verdict(
            speed: 1, burst: 1, of: Media.audio, fields: fields)
        #expect(verdict == .endless && after == 0)
    }

    @Test func `other bytes are a file, whatever their type says`() throws {
        var noise = Noise(1)
        let other = noise.bytes(400_000)
        #expect(try Self.verdict(speed: 1, burst: 10, of: other).0 == .file)
    }

    @Test(arguments: [
        ("Content-Length", "5"), ("ETag", "\"a\""), ("Content-Encoding", "gzip"),
        ("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT"),
    ])
    func `a head that describes a file settles it`(name: String, value: String) {
        var fields = Self.panel
        fields.append(FieldName(name), value)
        #expect(EndlessHead(.ok, fields) == nil)
    }

    @Test func `other types and statuses are no live streams`() {
        #expect(EndlessHead(.partialContent, Self.panel) == nil)
        for type in ["video/mp4", "text/html", "application/vnd.apple.mpegurl"] {
            #expect(EndlessHead(.ok, Self.fields([("Content-Type", type)])) == nil)
        }
        #expect(EndlessHead(.ok, Fields())?.format == .transport)
    }
}
