import HLS
import Testing
import URISyntax

/// Segments that were never seen, as after an outage of hours.
@Suite struct TimeShiftHoleTests {
    /// Merges windows of one list, in step with another one.
    private func merge(
        _ windows: ClosedRange<Int>..., names: String = "s", besides sibling: TimeShift? = nil,
        into shift: inout TimeShift
    ) throws -> TimeShift.Merge {
        var last: TimeShift.Merge?
        for numbers in windows {
            last = try shift.merge(
                TimeShiftTests.window(numbers, names: names), base: TimeShiftTests.base,
                in: .init(sibling: sibling))
        }
        return try #require(last)
    }

    @Test(arguments: [2_004, 9_000, 49_000])
    func `what was listed before a long hole stays, and the list goes on after a discontinuity`(
        start: Int
    ) throws {
        var shift = TimeShift()
        let hole = try merge(0...3, start...start + 1, into: &shift)
        #expect(hole.relation == (start == 2_004 ? .advanced : .newEpoch))
        #expect(hole.missed == start - 4)
        // What has no placeholder is lost, also after a restart.
        let lost = start == 2_004 ? 0 : start - 4
        #expect(shift.lostCount == lost)
        let restored = try TimeShift(snapshot: shift.snapshot())
        #expect(restored.lostCount == lost)
        let listed = shift.segments.filter { !$0.isPlaceholder }
        let names = [0, 1, 2, 3, start, start + 1].map { "s\($0).ts" }
        #expect(listed.compactMap { $0.url?.lastPathSegment } == names)
        let next = try merge(start + 1...start + 2, into: &shift)
        #expect(next.relation == .advanced && next.added.count == 1 && next.missed == 0)
        guard start > 2_004 else { return }
        #expect(shift.segments.map(\.number) == Array(0...6))
        let text = TimeShiftTests.text(shift, .recorded)
        #expect(text.split(separator: "#EXT-X-DISCONTINUITY\n").count == 2)
        #expect(!text.contains("#EXT-X-GAP") && !text.contains("SLUICE"))
    }

    /// Returns the lines of a list that name segments that are not kept.
    private func placeholders(
        in shift: TimeShift, isPresent: (TimeShiftSegment) -> Bool
    ) -> [Substring] {
        let text = String(decoding: shift.playlist(isPresent: isPresent), as: UTF8.self)
        return text.split(separator: "\n").filter { $0.contains("missing.invalid/") }
    }

    @Test(arguments: [("#EXT-X-MAP:URI=\"i.mp4\"\n", "m4s"), ("", "ts")])
    func `a placeholder has one name, whether the segments before it are kept or not`(
        map: String, kind: String
    ) throws {
        var shift = TimeShift()
        for numbers in [5...6, 9...9] {
            let window = TimeShiftTests.window(numbers, extra: map)
            _ = try shift.merge(window, base: TimeShiftTests.base)
        }
        let expected = [7, 8].map { "http://missing.invalid/\($0).\(kind)" }
        #expect(placeholders(in: shift) { _ in true } == expected.map { $0[...] })
        // Those before the hole, which were seen, have the extension of their own URIs.
        let all = ["http://missing.invalid/5.ts", "http://missing.invalid/6.ts"] + expected
        #expect(placeholders(in: shift) { _ in false } == all.map { $0[...] })
        // A restart changes no name.
        let restored = try TimeShift(snapshot: shift.snapshot())
        #expect(placeholders(in: restored) { $0.number != 6 } == all.dropFirst().map { $0[...] })
    }

    @Test func `an origin that counts from another number has no hole`() throws {
        var shift = TimeShift()
        let far = try merge(0...3, 90_000...90_001, into: &shift)
        #expect(far.relation == .newEpoch && far.missed == 0)
        let anew = try shift.merge(
            TimeShiftTests.window(99_000...99_001), base: TimeShiftTests.base,
            in: .init(countsAnew: true))
        #expect(anew.relation == .newEpoch && anew.missed == 0 && shift.lostCount == 0)
    }

    @Test func `a rendition that alone was away for long stays in step with the other one`() throws
    {
        var first = TimeShift()
        var second = TimeShift()
        _ = try merge(0...3, into: &first)
        _ = try merge(0...3, names: "u", besides: first, into: &second)
        _ = try merge(1_500...1_503, 3_000...3_003, into: &first)
        let hole = try merge(3_000...3_001, names: "u", besides: first, into: &second)
        #expect(hole.relation == .advanced && hole.missed == 2_996)
        #expect(second.segments.map(\.number) == Array(0...3_001))
        #expect(second.epoch == first.epoch)
    }

    @Test func `a rendition that was away for longer than the other one catches up with it`() throws
    {
        var first = TimeShift()
        var second = TimeShift()
        _ = try merge(0...3, into: &first)
        _ = try merge(0...3, names: "u", besides: first, into: &second)
        _ = try merge(9_000...9_003, 10_500...10_503, 12_000...12_003, into: &first)
        let hole = try merge(12_000...12_001, names: "u", besides: first, into: &second)
        // The 8,996 that the other one has not seen either have no placeholders.
        #expect(hole.relation == .newEpoch && hole.missed == 11_996)
        #expect(first.lostCount == 8_996 && second.lostCount == 8_996)
        let (one, other) = (first.segment(number: 3_005), second.segments.last)
        #expect(other?.number == 3_005 && other?.originNumber == one?.originNumber)
        #expect(other?.discontinuity == one?.discontinuity && second.epoch == first.epoch)
        #expect(second.segments.map(\.number) == Array(0...3_005))
    }

    @Test func `a rendition whose hole is hardly short enough follows the other one`() throws {
        var first = TimeShift()
        var second = TimeShift()
        _ = try merge(0...3, into: &first)
        _ = try merge(0...5, names: "u", besides: first, into: &second)
        let longer = try merge(2_005...2_008, into: &first)
        #expect(longer.relation == .newEpoch)
        let hole = try merge(2_005...2_008, names: "u", besides: first, into: &second)
        #expect(hole.relation == .newEpoch && hole.missed == 1_999 && second.lostCount == 1_999)
        #expect(second.segments.count == 10 && second.epoch == first.epoch)
        #expect(second.segments.last?.discontinuity == first.segments.last?.discontinuity)
    }
}
