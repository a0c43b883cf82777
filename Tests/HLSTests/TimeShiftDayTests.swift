import HLS
import Testing
import URISyntax

/// Longer windows over hours, and several renditions.
@Suite struct TimeShiftDayTests {
    private static let length = Duration.seconds(21_600)

    /// Seven hours of segments of 2 s, fetched every ten minutes; six hours are kept.
    private static func hours() throws -> TimeShift {
        var shift = TimeShift()
        for start in stride(from: 0, to: 12_600, by: 300) {
            _ = try shift.merge(
                TimeShiftTests.window(start...start + 305), base: TimeShiftTests.base)
            shift.trim(to: length)
        }
        return shift
    }

    @Test func `the window keeps its configured hours and no more`() throws {
        var shift = try Self.hours()
        #expect(shift.segments.count == 10_800 && shift.segments.last?.number == 12_605)
        let dropped = shift.trim(to: .seconds(3_600))
        #expect(dropped.count == 9_000 && dropped.first?.number == 1_806)
    }

    @Test func `a snapshot of hours is restored completely and stays within its size`() throws {
        let shift = try Self.hours()
        let list = shift.playlist { _ in true }
        let snapshot = shift.snapshot()
        #expect(list.count < 10_800 * 64 && snapshot.count < 10_800 * 64)
        let other = try TimeShift(snapshot: snapshot)
        #expect(other.segments.map(\.number) == shift.segments.map(\.number))
        let isSame =
            other.playlist(ending: .ended) { _ in true }
            == shift.playlist(ending: .ended) { _ in true }
        #expect(isSame)
    }

    @Test func `a snapshot longer than an origin's longest list is restored`() throws {
        var shift = TimeShift()
        let comment = "#" + String(repeating: "x", count: 60_000) + "\n"
        for start in [0, 150] {
            let window = TimeShiftTests.window(start...start + 149, each: comment)
            _ = try shift.merge(window, base: TimeShiftTests.base)
        }
        let snapshot = shift.snapshot()
        #expect(snapshot.count > PlaylistLimits.standard.byteCount)
        #expect(try TimeShift(snapshot: snapshot).segments.map(\.number) == Array(0...299))
    }

    @Test func `a list that outgrows the limit with absolute URIs is merged`() throws {
        var shift = TimeShift()
        let folder = String(repeating: "f", count: 60_000)
        let base = try AbsoluteURL("http://h/\(folder)/l.m3u8")
        _ = try shift.merge(TimeShiftTests.window(0...299), base: base)
        #expect(shift.segments.count == 300)
    }

    @Test func `generations of reused names survive a restart`() throws {
        var shift = TimeShift()
        _ = try shift.merge(TimeShiftTests.window(0...3), base: TimeShiftTests.base)
        for number in 2...3 { shift.mark(number, .init(segment: 7, map: 8, keys: [0, 9])) }
        let other = try TimeShift(snapshot: shift.snapshot())
        #expect(other.segments.map(\.marks.segment) == [0, 0, 7, 7])
        #expect(other.segments.last?.marks == .init(segment: 7, map: 8, keys: [0, 9]))
    }

    @Test func `a rendition that is added later is aligned with the first`() throws {
        var first = TimeShift()
        _ = try first.merge(TimeShiftTests.window(100...102), base: TimeShiftTests.base)
        _ = try first.merge(TimeShiftTests.window(0...2, names: "t"), base: TimeShiftTests.base)
        var second = TimeShift()
        _ = try second.merge(
            TimeShiftTests.window(1...3, names: "u"), base: TimeShiftTests.base,
            in: .init(sibling: first))
        #expect(second.segments.map(\.number) == [104, 105, 106])
        #expect(second.segments.map(\.discontinuity) == [1, 1, 1] && second.epoch == 1)
        #expect(second.originNumber(of: 106) == 3)
    }

    @Test func `a rendition that is read first after a restart comes into step`() throws {
        var first = TimeShift()
        _ = try first.merge(TimeShiftTests.window(1000...1005), base: TimeShiftTests.base)
        var second = TimeShift()
        for numbers in [0...2, 1...3] {
            _ = try second.merge(
                TimeShiftTests.window(numbers, names: "u"), base: TimeShiftTests.base,
                in: .init(sibling: first))
        }
        #expect(second.segments.map(\.number) == [0, 1, 2, 3])
        _ = try first.merge(
            TimeShiftTests.window(1...3, names: "t"), base: TimeShiftTests.base,
            in: .init(sibling: second))
        for numbers in [1...3, 2...4] {
            _ = try second.merge(
                TimeShiftTests.window(numbers, names: "u"), base: TimeShiftTests.base,
                in: .init(sibling: first))
        }
        #expect(first.segments.last?.number == 1008)
        #expect(second.segments.map(\.number) == [1006, 1007, 1008, 1009])
        #expect(second.segments.map(\.discontinuity) == [1, 1, 1, 1] && second.epoch == 1)
        #expect(second.segments.map(\.generation) == [0, 0, 0, 0])
    }

    @Test func `renditions that are numbered independently keep their segments`() throws {
        // Three segments of the first for each of the second.
        var first = TimeShift()
        _ = try first.merge(TimeShiftTests.window(300...305), base: TimeShiftTests.base)
        var second = TimeShift()
        _ = try second.merge(
            TimeShiftTests.window(100...101, names: "u"), base: TimeShiftTests.base,
            in: .init(sibling: first))
        let anew = TimeShiftTests.window(303...306, names: "t")
        #expect(try first.merge(anew, base: TimeShiftTests.base).relation == .newEpoch)
        _ = try second.merge(
            TimeShiftTests.window(101...102, names: "u"), base: TimeShiftTests.base,
            in: .init(sibling: first))
        #expect(second.segments.map(\.number) == [100, 101, 102] && second.epoch == 0)
    }

    @Test func `a rendition that missed the end of an epoch catches up`() throws {
        var first = TimeShift()
        var second = TimeShift()
        for (numbers, isBoth) in [(0...2, true), (2...4, false)] {
            _ = try first.merge(TimeShiftTests.window(numbers), base: TimeShiftTests.base)
            if isBoth {
                _ = try second.merge(TimeShiftTests.window(numbers), base: TimeShiftTests.base)
            }
        }
        let anew = TimeShiftTests.window(0...1, names: "t")
        _ = try first.merge(anew, base: TimeShiftTests.base)
        let merge = try second.merge(
            anew, base: TimeShiftTests.base,
            in: .init(sibling: first))
        #expect(merge.relation == .newEpoch && merge.missed == 2)
        #expect(second.segments.map(\.number) == [0, 1, 2, 3, 4, 5, 6])
        #expect(second.segments.last?.discontinuity == first.segments.last?.discontinuity)
    }

    @Test func `reused names begin an epoch if the caller knows of a restart`() throws {
        var shift = TimeShift()
        _ = try shift.merge(TimeShiftTests.window(0...6), base: TimeShiftTests.base)
        let anew = TimeShiftTests.window(0...2)
        #expect(try shift.merge(anew, base: TimeShiftTests.base).relation == .stale)
        for relation in [TimeShift.Relation.newEpoch, .unchanged] {
            let merge = try shift.merge(
                anew, base: TimeShiftTests.base, in: .init(countsAnew: true))
            #expect(merge.relation == relation)
        }
        #expect(shift.segments.map(\.generation) == [0, 0, 0, 0, 0, 0, 0, 1, 1, 1])
    }

    @Test func `a gap has no key, and segments behind it have theirs`() throws {
        var shift = TimeShift()
        let key = "#EXT-X-KEY:METHOD=AES-128,URI=\"k\",IV=0x1\n"
        _ = try shift.merge(TimeShiftTests.window(0...1, extra: key), base: TimeShiftTests.base)
        _ = try shift.merge(TimeShiftTests.window(3...4, extra: key), base: TimeShiftTests.base)
        let text = TimeShiftTests.text(shift)
        let expected = """
            s1.ts
            #EXT-X-KEY:METHOD=NONE
            #EXT-X-GAP
            #EXTINF:2,
            http://missing.invalid/2.ts
            #EXT-X-KEY:METHOD=AES-128,URI="https://cdn.example.com/vod/a/k",IV=0x1
            #EXTINF:2,
            """
        #expect(text.contains(expected), "\(text)")
    }
}
