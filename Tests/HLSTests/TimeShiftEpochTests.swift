import HLS
import Testing
import URISyntax

/// What the epoch of the origin's list says about a window.
extension TimeShiftTests {
    @Test(arguments: [true, false])
    func `segments are missing between numbers only if these were counted on`(countsAnew: Bool)
        throws
    {
        var shift = TimeShift()
        _ = try shift.merge(Self.window(10...13), base: Self.base)
        let merge = try shift.merge(
            Self.window(95...96), base: Self.base, in: .init(countsAnew: countsAnew))
        #expect(merge.relation == (countsAnew ? .newEpoch : .advanced))
        #expect(merge.missed == (countsAnew ? 0 : 81))
        #expect(Self.text(shift).contains("#EXT-X-DISCONTINUITY\n") == countsAnew)
        #expect(Self.text(shift).contains("#EXT-X-GAP\n") != countsAnew)
    }

    @Test(arguments: [nil, 0, 7, 8] as [UInt32?])
    func `a saved window is continued by a list that was renumbered since`(saved: UInt32?) throws {
        func context(_ epoch: UInt32?) -> TimeShift.Context {
            TimeShift.Context(listEpoch: epoch.map { Epoch(number: $0) })
        }
        let date = "#EXT-X-PROGRAM-DATE-TIME:2031-05-06T07:00:00.000Z\n"
        var shift = TimeShift()
        _ = try shift.merge(
            Self.window(0...9, extra: date), base: Self.base, in: context(saved))
        // A window that changes nothing does not tell which epoch the segments are of.
        let same = try shift.merge(Self.window(0...9, extra: date), base: Self.base, in: context(8))
        #expect(same.relation == .unchanged)
        var other = try TimeShift(snapshot: shift.snapshot())
        let merge = try other.merge(Self.window(0...2), base: Self.base, in: context(8))
        let isNewer = saved == 0 || saved == 7
        #expect(merge.relation == (isNewer ? .newEpoch : .stale))
        #expect(other.listEpoch?.number == 8)
        #expect(other.segments.count == (isNewer ? 13 : 10))
    }

    @Test(arguments: [50, 52])
    func `a restored window counts the origin's discontinuities from its own number`(
        sequence: Int
    ) throws {
        func head(_ number: Int) -> String { "#EXT-X-DISCONTINUITY-SEQUENCE:\(number)\n" }
        var shift = TimeShift()
        _ = try shift.merge(Self.window(0...2, extra: head(3)), base: Self.base)
        _ = try shift.merge(Self.window(0...2, names: "t", extra: head(50)), base: Self.base)
        #expect(shift.segments.last?.discontinuity == 4)
        let snapshot = shift.snapshot()
        var restored = try TimeShift(snapshot: snapshot)
        #expect(restored.snapshot() == snapshot)
        let next = Self.window(3...5, names: "t", extra: head(sequence))
        #expect(try shift.merge(next, base: Self.base).relation == .advanced)
        #expect(try restored.merge(next, base: Self.base).relation == .advanced)
        let expected = [3, 3, 3, 4, 4, 4] + Array(repeating: 4 + sequence - 50, count: 3)
        #expect(shift.segments.map(\.discontinuity) == expected)
        #expect(restored.segments.map(\.discontinuity) == expected)
        // A snapshot of a version that did not write the note.
        let lines = String(decoding: snapshot, as: UTF8.self).split(separator: "\n")
        let former = lines.filter { !$0.hasPrefix("#SLUICE-ORIGIN") }.joined(separator: "\n")
        #expect(former.count < snapshot.count)
        let read = try TimeShift(snapshot: Array((former + "\n").utf8))
        #expect(read.segments.map(\.discontinuity) == [3, 3, 3, 4, 4, 4])
    }
}
