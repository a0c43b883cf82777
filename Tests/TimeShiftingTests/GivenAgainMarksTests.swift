import CachePolicy
import Glibc
import HLS
import HTTP
@testable import Model
import Posix
import Routing
import Store
import Testing
import TimeShiftSupport
@testable import TimeShifting
import URISyntax

/// The marks of names in a longer window that their origin gives again, although the list goes on.
@Suite final class GivenAgainMarksTests {
    private let folder: String
    private let table: TimeShiftTable
    private let list: ShiftedList
    private let base: AbsoluteURL
    private var generation: UInt64 = 0

    init() throws {
        folder = try makeTemporaryFolder("given-again")
        table = try TimeShiftTable(in: folder)
        base = try AbsoluteURL("http://h/l.m3u8")
        list = table.list(
            base, of: Session(id: SessionID(7), fields: Fields(), shift: .init(window: 600)))
    }

    deinit {
        table.thread.stop()
        table.store.close()
        removeTree(folder)
    }

    /// Reads and merges a window of two-second segments, received at a time in seconds.
    private func read(
        _ first: Int, _ segments: [String], at seconds: Int64, into other: ShiftedList? = nil,
        of name: String = "list"
    ) throws {
        let list = other ?? list
        generation += 1
        let head = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:\(first)\n"
        let text = segments.reduce(head) { text, segment in
            let lines = segment.split(separator: " ").map { $0 == "!" ? Self.run : "\($0)\n" }
            return text + lines.dropLast().joined() + "#EXTINF:2,\n" + (lines.last ?? "")
        }
        let wall = WallTime(seconds: 1_800_000_000 + seconds)
        let steady = Monotonic(nanoseconds: seconds * 1_000_000_000)
        let times = SteadyTimes(requested: steady, received: steady)
        let key = ObjectKey(sha256Of: name)
        let reading = try #require(
            try LiveReading(Array(text.utf8), base: base, options: PlaylistReading()))
        let place = LiveMemory.Place(
            list: key, generation: generation,
            times: EpochTable.Times(requested: wall, received: wall, steady: times),
            keyVersion: 0)
        table.live.take(reading, at: place) { [table] url, role in
            ObjectKey(table.names.keys.cacheKey(of: url, session: list.session, role: role))
        }
        let stored = StoredHead(
            status: .ok, fields: Fields(), requestTime: wall, responseTime: wall,
            finalURL: base.text, isPlaylist: true)
        try list.merge(
            .init(
                body: Array(text.utf8), base: base, key: key,
                facts: ObjectFacts(head: stored, generation: generation, times: times)), table)
    }

    private static let tags =
        "#EXT-X-KEY:METHOD=AES-128,URI=\"k\",IV=0x1\n#EXT-X-MAP:URI=\"init\"\n"
    private static let run = "#EXT-X-DISCONTINUITY\n" + tags

    @Test func `a ring of names has a mark of its own at each place`() throws {
        try read(10, ["r0", "r1", "r2"], at: 0)
        try read(12, ["r2", "r3", "r0"], at: 4)
        try read(14, ["r0", "r1"], at: 6)
        let epochs = [0, 0, 0, 0, 1_800_000_004, 1_800_000_006] as [UInt32]
        #expect(list.shift.segments.map(\.marks.segment) == epochs)
        #expect(list.shift.segments.map(\.generation) == [0, 0, 0, 0, 1, 1])
    }

    @Test func `section and key have a mark of their own behind a discontinuity`() throws {
        try read(10, ["! s10", "s11"], at: 0)
        // The first of two new segments needs what was before.
        try read(11, ["! s11", "s12", "! s13"], at: 4)
        try read(12, ["! s12", "! s13", "s14"], at: 6)
        let epochs = [0, 0, 0, 1_800_000_004, 1_800_000_004] as [UInt32]
        #expect(list.shift.segments.map(\.marks.map) == epochs)
        let key = try AbsoluteURL("http://h/k")
        #expect(list.shift.segments.map { $0.mark(ofKey: key) } == epochs)
        // What is first seen once a name was given again begins no earlier.
        #expect(list.shift.segments.map(\.marks.segment) == epochs)
    }

    @Test func `a key of a ring has a mark of its own from the line that names it again`() throws {
        func line(_ number: Int) -> String {
            "#EXT-X-KEY:METHOD=AES-128,URI=\"k\(number / 2 % 3)\",IV=0x1 s\(number)"
        }
        for first in 10...15 as ClosedRange<Int> {
            let segments = (first..<(first + 3)).map { number in
                number % 2 == 0 || number == first ? line(number) : "s\(number)"
            }
            try read(first, segments, at: Int64(first - 10) * 2)
        }
        let key = try AbsoluteURL("http://h/k2")
        let marks = list.shift.segments.filter { $0.keyURLs == [key] }.map { $0.mark(ofKey: key) }
        #expect(marks == [0, 0, 1_800_000_008, 1_800_000_008])
    }

    @Test func `segments that a restored window lacks get the marks of this run`() throws {
        var shift = TimeShift()
        let head = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:8\n"
        let text = (8...11).reduce(head) { $0 + "#EXTINF:2,\ns\($1)\n" }
        _ = try shift.merge(Array(text.utf8), base: base)
        for number in 8...11 { shift.mark(number, .init(segment: 9)) }
        let restored = ShiftedList(
            url: base, session: list.session, name: table.name(of: base, in: list.session),
            shift: try TimeShift(snapshot: shift.snapshot()))
        try read(10, ["s10", "s11", "s12"], at: 0, into: restored)
        #expect(restored.shift.segments.map(\.marks.segment) == [9, 9, 0, 0, 0])
    }

    @Test func `a key that another rendition alone gives again marks the segments without it`()
        throws
    {
        let audio = table.list(try AbsoluteURL("http://h/a.m3u8"), of: list.session)
        try read(10, ["! s10", "s11", "s12"], at: 0)
        try read(10, ["! a10", "a11", "a12"], at: 0, into: audio, of: "audio")
        // Its encoder begins anew.
        try read(0, ["! b0", "b1"], at: 4, into: audio, of: "audio")
        try read(10, ["! s10", "s11", "s12", "s13"], at: 6)
        let key = try AbsoluteURL("http://h/k")
        let epochs = Array(repeating: 1_800_000_004 as UInt32, count: 4)
        #expect(list.shift.segments.map { $0.mark(ofKey: key) } == epochs)
        #expect(list.shift.segments.map(\.marks.segment) == [0, 0, 0, 0])
    }

    @Test func `segments that a renumbered list still shows have the marks of its new epoch`()
        throws
    {
        func piece(_ number: Int) throws -> TimeShiftFetches.Piece {
            TimeShiftFetches.Piece(
                url: try AbsoluteURL("http://h/r\(number)"), role: .segment, range: nil, mark: 0,
                number: number)
        }
        let epoch = Epoch(number: 1_800_000_004)
        try read(10, (10...19).map { "r\($0)" }, at: 0)
        #expect(try list.mark(of: piece(12)) == .first)
        try read(110, (12...21).map { "r\($0)" }, at: 4)
        let marks = [0, 0] + Array(repeating: epoch.number, count: 10)
        #expect(list.shift.segments.map(\.marks.segment) == marks)
        // Fetches that had not begun store under these.
        #expect(try list.mark(of: piece(12)) == epoch && list.mark(of: piece(11)) == .first)
    }
}
