import Endless
import HTTP
import Posix
import Testing

/// What is kept of a live stream, where viewers enter it, and how another connection continues it.
@Suite struct EdgeWindowTests {
    private static let start = Monotonic(nanoseconds: 9_000_000_000)

    private static func at(_ seconds: Double) -> Monotonic { start + Interval(seconds: seconds) }

    /// A window after a number of seconds at 188,000 bytes a second, an access point every two.
    private static func window(_ seconds: Int, _ limits: EdgeWindow.Limits) -> EdgeWindow {
        var window = EdgeWindow(limits)
        for tenth in 1...seconds * 10 {
            let end = Int64(tenth) * 18_800
            let points = tenth % 20 == 1 ? [end - 18_800] : []
            window.advance(
                to: end, accessPoints: points, tables: [1, 2], packet: 0,
                now: at(Double(tenth) / 10))
        }
        return window
    }

    @Test func `a viewer enters at the newest access point that has a reserve`() {
        let window = Self.window(21, EdgeWindow.Limits())
        // Access points are at even seconds; that of second 20 is 0.9 s old at 20.9 + 0.1.
        #expect(window.entry(now: Self.at(20.5)).offset == 18 * 188_000)
        #expect(window.entry(now: Self.at(21.2)).offset == 20 * 188_000)
        #expect(window.entry(now: Self.at(21.2)).prefix == [1, 2])
    }

    @Test func `the window is bounded by time and by bytes`() {
        let byTime = Self.window(60, EdgeWindow.Limits(duration: .seconds(10), bytes: 1 << 30))
        #expect(abs(byTime.end - byTime.start - 10 * 188_000) < 188_000)
        let byBytes = Self.window(60, EdgeWindow.Limits(duration: .seconds(600), bytes: 1_000_000))
        #expect(byBytes.end - byBytes.start == 1_000_000)
    }

    @Test func `what no reader and no newcomer needs is disposable`() {
        let window = Self.window(60, EdgeWindow.Limits(duration: .seconds(30), bytes: 1 << 30))
        let now = Self.at(60)
        let margin: Int64 = 1 << 20
        #expect(window.disposable(slowest: nil, now: now) == 58 * 188_000 - margin)
        #expect(window.disposable(slowest: 50 * 188_000, now: now) == 50 * 188_000 - margin)
        // A reader that is behind the window holds nothing back.
        #expect(window.disposable(slowest: 1, now: now) == window.start - margin)
    }

    @Test func `a reader that fell behind goes on at the edge after a whole packet`() {
        let window = Self.window(60, EdgeWindow.Limits())
        let next = window.entry(after: 188 * 10 + 100, now: Self.at(60))
        #expect(next.offset == 58 * 188_000)
        #expect(next.prefix == [UInt8](repeating: 0xFF, count: 88) + [1, 2])
    }

    @Test func `without access points viewers enter at a packet`() {
        var window = EdgeWindow(EdgeWindow.Limits())
        for second in 1...10 {
            window.advance(
                to: Int64(second) * 100_000, accessPoints: [], tables: [], packet: 50,
                now: Self.at(Double(second)))
        }
        let entry = window.entry(now: Self.at(10))
        #expect((entry.offset - 50) % 188 == 0 && entry.offset >= 900_000)
    }

    @Test func `marks are bounded however many access points there are`() {
        var window = EdgeWindow(EdgeWindow.Limits(duration: .seconds(600), bytes: 1 << 40))
        for tick in 1...20_000 {
            window.advance(
                to: Int64(tick) * 10_000, accessPoints: [Int64(tick) * 10_000 - 500], tables: [],
                packet: nil, now: Self.at(Double(tick) / 10))
        }
        #expect(MemoryLayout.size(ofValue: window) < 1_000)
        #expect(window.entry(now: Self.at(2_000)).offset > 199_000_000)
    }

    // MARK: Another connection

    @Test(arguments: [1, 188, 5_000])
    func `another connection continues at its first key frame`(piece: Int) throws {
        // The new connection starts in the middle of a packet, behind a key frame.
        let media = Array(Media.video[3_000...])
        var resumption = EdgeResumption(.transport, now: Self.start)
        var made: EdgeResumption.Junction?
        for start in stride(from: 0, to: media.count, by: piece) where made == nil {
            let part = Array(media[start..<min(start + piece, media.count)])
            made = resumption.take(part.span, end: 1_000, boundary: 60, now: Self.start)
        }
        let junction = try #require(made)
        #expect(junction.isAccessPoint && junction.bytes.prefix(60).allSatisfy { $0 == 0xFF })
        let tables = junction.scanner.tables
        #expect(Array(junction.bytes[60..<60 + tables.count]) == tables)
        #expect(junction.offset == 1_060 + Int64(tables.count))
        let first = Array(junction.bytes[(60 + tables.count)...])
        #expect(first[0] == 0x47 && first[5] & 0x40 != 0)
        // The scanner goes on counting from the new bytes' place in the body.
        #expect(junction.scanner.lastPacket.map { ($0 - 1_060) % 188 } == 0)
    }

    @Test func `without a key frame viewers go on at any packet after a while`() throws {
        let inert = Array(Media.video[188 * 40..<188 * 120])
        var resumption = EdgeResumption(.transport, now: Self.start)
        #expect(resumption.take(inert.span, end: 0, boundary: 0, now: Self.at(1)) == nil)
        let made = resumption.take(inert.span, end: 0, boundary: 0, now: Self.at(11))
        let junction = try #require(made)
        #expect(!junction.isAccessPoint && junction.bytes.first == 0x47)
    }

    @Test func `a stream without access points goes on at the first packets`() throws {
        let inert = Array(Media.video[188 * 40..<188 * 120])
        var resumption = EdgeResumption(.transport, awaitsPoint: false, now: Self.start)
        let few = Array(inert.prefix(100))
        #expect(resumption.take(few.span, end: 0, boundary: 0, now: Self.start) == nil)
        let rest = Array(inert.dropFirst(100))
        let made = resumption.take(rest.span, end: 0, boundary: 0, now: Self.start)
        let junction = try #require(made)
        #expect(!junction.isAccessPoint && junction.bytes.first == 0x47)
    }

    @Test(arguments: [1, 3, 100]) func `titles are removed`(piece: Int) throws {
        var fields = Fields()
        fields.append("icy-metaint", "10")
        var titles = try #require(StationTitles(fields))
        let audio = (0..<95).map { UInt8($0) }
        var mixed: [UInt8] = []
        for (index, byte) in audio.enumerated() {
            mixed.append(byte)
            guard (index + 1) % 10 == 0 else { continue }
            let blocks = (index / 10) % 3
            mixed += [UInt8(blocks)] + [UInt8](repeating: 0xEE, count: blocks * 16)
        }
        var kept: [UInt8] = []
        for start in stride(from: 0, to: mixed.count, by: piece) {
            kept += titles.strip(Array(mixed[start..<min(start + piece, mixed.count)]).span)
        }
        #expect(kept == audio)
        for text in ["0", "-1", "x", "99999999999"] {
            var fields = Fields()
            fields.append("icy-metaint", text)
            #expect(StationTitles(fields) == nil)
        }
    }
}
