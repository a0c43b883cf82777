import HLS
import HTTP
import Library
import Model
import Posix
import Testing
import URISyntax

@testable import TimeShifting

/// What the origin's window says about the fetches of its segments.
@Suite struct FetchWindowTests {
    private static func failure(_ status: HTTPStatus) -> ProxyFailure {
        ProxyFailure(originStatus: status, subject: "http://h/s.ts")
    }

    private static func piece(
        _ number: Int, _ role: ResourceRole = .segment
    ) throws -> TimeShiftFetches.Piece {
        TimeShiftFetches.Piece(
            url: try AbsoluteURL("http://h/\(number)"), role: role, range: nil, mark: 0,
            number: number)
    }

    @Test func `only a segment behind the window can be gone for good`() throws {
        let window = FetchWindow(start: 10, end: 16)
        let (left, first, newest) = (try Self.piece(9), try Self.piece(10), try Self.piece(15))
        for status in [HTTPStatus.notFound, .gone] {
            #expect(window.isGone(left, after: Self.failure(status)))
            #expect(!window.isGone(first, after: Self.failure(status)))
            // It may not be there yet.
            #expect(!window.isGone(newest, after: Self.failure(status)))
        }
        for status in [HTTPStatus.forbidden, .badGateway] {
            #expect(!window.isGone(left, after: Self.failure(status)))
        }
        #expect(!window.isGone(left, after: .noRoom))
        // Segments in the window may need the key.
        let key = try Self.piece(9, .key)
        #expect(!window.isGone(key, after: Self.failure(.notFound)))
    }

    @Test func `a segment of a ring is over once a later one may have its name`() throws {
        let ring = FetchWindow.Ring(length: 8, duration: .seconds(2 as Int64))
        func reused(_ window: FetchWindow, after seconds: Int64) throws -> [Int] {
            try (115...124).filter {
                window.mayBeReused(try Self.piece($0), after: .seconds(seconds))
            }
        }
        let window = FetchWindow(start: 119, end: 125, ring: ring)
        // 125 has the name of 117, and may be listed by now; 126 may be written.
        #expect(try reused(window, after: 1) == Array(115...118))
        #expect(try reused(window, after: 2) == Array(115...119))
        // No reading shows how far the list has gone since.
        #expect(try reused(window, after: 20) == Array(115...124))
        let (left, first, second) = (
            try Self.piece(118), try Self.piece(119), try Self.piece(120)
        )
        #expect(window.standing(of: left) == .over)
        #expect(window.standing(of: first) == .late && window.standing(of: second) == .inTime)
        let key = try Self.piece(1, .key)
        #expect(!window.mayBeReused(key, after: .seconds(20 as Int64)))
        // A slate that recurs within the window, or a list that gives no name again.
        let short = FetchWindow.Ring(length: 6, duration: .zero)
        for window in [
            FetchWindow(start: 119, end: 125, ring: short), FetchWindow(start: 119, end: 125),
        ] {
            #expect(try reused(window, after: 20).isEmpty)
            #expect(window.standing(of: left) == .late)
        }
        // Two names for windows of one segment leave no time at all.
        let two = FetchWindow.Ring(length: 2, duration: .zero)
        let least = FetchWindow(start: 124, end: 125, ring: two)
        #expect(try reused(least, after: 20).isEmpty)
    }

    @Test func `an advertisement or a splice as the newest segment hides no ring`() throws {
        var shift = TimeShift()
        let base = try AbsoluteURL("http://h/live.m3u8")
        // Windows of four segments from a ring of seven names; the newest one is a splice.
        for start in 0...9 {
            let lines = (start..<start + 4).map {
                $0 == 12 ? "#EXTINF:0.2,\nad.ts\n" : "#EXTINF:2,\nr\($0 % 7).ts\n"
            }
            let text =
                "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:\(start)\n"
                + lines.joined()
            _ = try shift.merge(Array(text.utf8), base: base)
        }
        let window = FetchWindow(of: shift)
        func reused(after seconds: Int64) throws -> [Int] {
            try (5...12).filter {
                window.mayBeReused(try Self.piece($0), after: .seconds(seconds))
            }
        }
        // The next segment, 13, has the name of 6, and 14 may be written.
        #expect(try reused(after: 0) == [5, 6, 7])
        #expect(try reused(after: 1) == [5, 6, 7])
        #expect(try reused(after: 2) == [5, 6, 7, 8])
    }

    @Test func `a segment is late once the origin may remove it, and then over`() throws {
        func standings(_ window: FetchWindow, _ numbers: [Int]) throws -> [String] {
            try numbers.map { "\(window.standing(of: try Self.piece($0)))" }
        }
        let window = FetchWindow(start: 10, end: 16)
        let found = try standings(window, [1, 2, 9, 10, 11, 15])
        #expect(found == ["over", "late", "late", "late", "inTime", "inTime"])
        // The first of a short window is a large part of it.
        let short = try standings(FetchWindow(start: 10, end: 13), [1, 9, 10])
        #expect(short == ["over", "late", "inTime"])
        // A stream that begins may keep its first segment for ever.
        let beginning = try standings(FetchWindow(start: 0, end: 6), [0, 1])
        #expect(beginning == ["inTime", "inTime"])
        let key = try Self.piece(1, .key)
        #expect(window.standing(of: key) == .inTime)
    }
}
