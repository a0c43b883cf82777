import HLS
import Testing
import URISyntax

/// Windows whose numbers do not continue those before: mirrors and restarted origins.
@Suite struct TimeShiftJointTests {
    /// One reading of the list.
    struct Reading: Sendable {
        let first: Int
        let names: [String]
        /// True if it comes from another host than the first one.
        let isMirror: Bool
        /// What the memory of live lists says of it: it is the first of a new epoch, or the epoch.
        let countsAnew: Bool
        let listEpoch: UInt32?
        /// The second at which the first segment begins; nil for a list without dates.
        let second: Int?
        /// False if only the first segment has a date.
        let isDatedThroughout: Bool

        init(
            _ first: Int, _ names: [String], isMirror: Bool = false, countsAnew: Bool = false,
            epoch: UInt32? = nil, second: Int? = nil, isDatedThroughout: Bool = false
        ) {
            self.first = first
            self.names = names
            self.isMirror = isMirror
            self.countsAnew = countsAnew
            listEpoch = epoch
            self.second = second
            self.isDatedThroughout = isDatedThroughout
        }

        func merge(
            into shift: inout TimeShift, tail: String = "", besides sibling: TimeShift? = nil
        ) throws -> TimeShift.Merge {
            var text = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:\(first)\n"
            for (index, name) in names.enumerated() {
                if let second, index == 0 || isDatedThroughout {
                    let seconds = 1_935_990_000 + second + 2 * index
                    let date = DateTime(milliseconds: 1_000 * seconds)
                    text += "#EXT-X-PROGRAM-DATE-TIME:\(date.text)\n"
                }
                text += "#EXTINF:2,\n\(name)\n"
            }
            let host = isMirror ? "mirror.example.net" : "cdn.example.com"
            return try shift.merge(
                Array((text + tail).utf8), base: try AbsoluteURL("https://\(host)/l.m3u8"),
                in: .init(
                    sibling: sibling, countsAnew: countsAnew,
                    listEpoch: listEpoch.map { Epoch(number: $0) }))
        }
    }

    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let readings: [Reading]
        let expected: [String]

        init(_ description: String, _ expected: [String], _ readings: Reading...) {
            testDescription = description
            self.expected = expected
            self.readings = readings
        }
    }

    /// The files of one run, named by their numbers.
    private static func names(_ numbers: ClosedRange<Int>, _ name: String = "s") -> [String] {
        numbers.map { "\(name)\($0).ts" }
    }

    /// Files that have one name, each in a folder of its own.
    private static func folders(_ numbers: ClosedRange<Int>, _ folder: String) -> [String] {
        numbers.map { "\(folder)/\($0)/seg.ts" }
    }

    /// The names of a ring of eight files.
    private static func ring(_ numbers: ClosedRange<Int>) -> [String] {
        numbers.map { "r\($0 % 8).ts" }
    }

    private static func queries(_ numbers: ClosedRange<Int>) -> [String] {
        numbers.map { "chunk.ts?n=\($0)" }
    }

    static let mirrors: [Case] = [
        Case(
            "a mirror in step", names(5...9),
            Reading(5, names(5...7), epoch: 0),
            Reading(905, names(5...7), countsAnew: true, epoch: 1),
            Reading(906, names(6...8), epoch: 1), Reading(907, names(7...9), epoch: 1)),
        Case(
            "a mirror in step whose numbers are hardly higher", names(95...101),
            Reading(95, names(95...100), epoch: 0), Reading(115, names(95...100), epoch: 0),
            Reading(116, names(96...101), epoch: 0)),
        Case(
            "a mirror in step on another host, of which nothing is known", names(5...8),
            Reading(5, names(5...7)), Reading(905, names(5...7), isMirror: true),
            Reading(906, names(6...8), isMirror: true)),
        Case(
            "a mirror that lags", names(5...9),
            Reading(5, names(5...8)), Reading(904, names(4...7), isMirror: true),
            Reading(905, names(5...9), isMirror: true)),
        Case(
            "a mirror that is ahead", names(5...11),
            Reading(5, names(5...8)), Reading(907, names(7...11), isMirror: true)),
        Case(
            "two nodes in turn, one of which lags", names(96...105),
            Reading(96, names(96...101), epoch: 0),
            Reading(595, names(95...100), countsAnew: true, epoch: 1),
            Reading(97, names(97...102), countsAnew: true, epoch: 2),
            Reading(598, names(98...103), countsAnew: true, epoch: 3),
            Reading(98, names(98...103), countsAnew: true, epoch: 4),
            Reading(99, names(99...104), epoch: 4),
            Reading(597, names(97...102), countsAnew: true, epoch: 5),
            Reading(600, names(100...105), epoch: 5)),
        Case(
            "a mirror with a date in each list", names(5...9),
            Reading(5, names(5...7), second: 10),
            Reading(905, names(5...8), isMirror: true, second: 10),
            Reading(907, names(7...9), isMirror: true, second: 14)),
        Case(
            "a mirror with lower numbers and a date in each list", names(5...8),
            Reading(905, names(5...7), second: 10), Reading(6, names(6...8), second: 12)),
        Case(
            "a mirror that lags in a break of one file", ["s5.ts", "ad.ts", "ad.ts", "s6.ts"],
            Reading(5, ["s5.ts", "ad.ts", "ad.ts", "s6.ts"]),
            Reading(904, ["s4.ts", "s5.ts", "ad.ts", "ad.ts"], isMirror: true)),
        Case(
            "a mirror of a ring of files that lags, with a date of each segment", ring(0...17),
            Reading(0, ring(0...17), second: 10, isDatedThroughout: true),
            Reading(913, ring(13...16), isMirror: true, second: 36, isDatedThroughout: true)),
        Case(
            "a mirror of files that have one name", queries(7...10),
            Reading(7, queries(7...9)), Reading(907, queries(7...9), isMirror: true),
            Reading(908, queries(8...10), isMirror: true)),
        Case(
            "a mirror with one file at several places",
            ["s5.ts", "slate.ts", "slate.ts", "slate.ts", "s6.ts"],
            Reading(5, ["s5.ts", "slate.ts", "slate.ts"]),
            Reading(
                905, ["s5.ts", "slate.ts", "slate.ts", "slate.ts", "s6.ts"], isMirror: true)),
    ]

    static let restarts: [Case] = [
        Case(
            "a restart under other names", names(100...102) + names(0...3, "t"),
            Reading(100, names(100...102)), Reading(0, names(0...2, "t")),
            Reading(1, names(1...3, "t"))),
        Case(
            "a restart under the same names", names(0...4) + names(0...3),
            Reading(0, names(0...4)), Reading(0, names(0...2), countsAnew: true),
            Reading(1, names(1...3))),
        Case(
            "a restart under the same names, and a date of each segment",
            names(0...3) + names(0...4),
            Reading(1000, names(0...3), second: 10, isDatedThroughout: true),
            Reading(0, names(0...3), second: 70, isDatedThroughout: true),
            Reading(1, names(1...4), second: 72, isDatedThroughout: true)),
        Case(
            "a restart of a ring of files", ring(990...1005) + ring(0...4),
            Reading(990, ring(990...997)), Reading(998, ring(998...1001)),
            Reading(1002, ring(1002...1005)), Reading(0, ring(0...3)), Reading(1, ring(1...4))),
        Case(
            "one date at the start of every list", names(0...30),
            Reading(0, names(0...9), second: 10), Reading(7, names(7...16), second: 10),
            Reading(14, names(14...23), second: 10), Reading(21, names(21...30), second: 10)),
        Case(
            "a restart with one name in many folders",
            folders(1000...1002, "a") + folders(0...4, "b"),
            Reading(1000, folders(1000...1002, "a")), Reading(0, folders(0...2, "b")),
            Reading(1, folders(1...3, "b")), Reading(2, folders(2...4, "b"))),
        Case(
            "a restart of a list with one name only", Array(repeating: "live.ts", count: 7),
            Reading(5, ["live.ts", "live.ts", "live.ts"]),
            Reading(0, ["live.ts", "live.ts", "live.ts"], countsAnew: true),
            Reading(1, ["live.ts", "live.ts", "live.ts"])),
        Case(
            "other names at known numbers", names(5...7) + names(6...8, "t"),
            Reading(5, names(5...7)), Reading(6, names(6...8, "t"))),
    ]

    @Test(arguments: mirrors + restarts)
    func `each segment is listed once`(_ example: Case) throws {
        var shift = TimeShift()
        for reading in example.readings { _ = try reading.merge(into: &shift) }
        // A placeholder of a segment that was never seen has no URL.
        let listed = shift.segments.map { segment in
            segment.url.map { String($0.pathAndQuery.dropFirst()) } ?? "-"
        }
        #expect(listed == example.expected)
    }

    @Test func `a mirror in step ends the list, but its numbers do not count yet`() throws {
        var shift = TimeShift()
        _ = try Reading(5, Self.names(5...7), epoch: 0).merge(into: &shift)
        let end = "#EXT-X-ENDLIST\n"
        let merge = try Reading(905, Self.names(5...7), countsAnew: true, epoch: 1)
            .merge(into: &shift, tail: end)
        #expect(merge.relation == .unchanged && merge.added.isEmpty && shift.isEnded)
        #expect(shift.epoch == 0 && shift.listEpoch == Epoch(number: 0))
        #expect(shift.windowStart == 5)
    }

    @Test func `a mirror that lags changes nothing`() throws {
        var shift = TimeShift()
        _ = try Reading(5, Self.names(5...8)).merge(into: &shift)
        let end = "#EXT-X-ENDLIST\n"
        let merge = try Reading(904, Self.names(4...7), isMirror: true)
            .merge(into: &shift, tail: end)
        #expect(merge.relation == .stale && !shift.isEnded && shift.windowStart == 5)
    }

    @Test func `a list without numbers has only the discontinuities of its tags`() throws {
        var shift = TimeShift()
        for start in [100, 102, 104, 105] {
            _ = try Reading(0, Self.names(start...start + 5)).merge(into: &shift)
        }
        #expect(shift.segments.count == 11 && shift.epoch == 3)
        #expect(shift.segments.allSatisfy { $0.discontinuity == 0 })
        let tail = "#EXT-X-DISCONTINUITY\n#EXTINF:2,\ns111.ts\n"
        _ = try Reading(0, Self.names(106...110)).merge(into: &shift, tail: tail)
        #expect(shift.segments.suffix(2).map(\.discontinuity) == [0, 1])
    }

    @Test func `two nodes in turn cause no discontinuity`() throws {
        var shift = TimeShift()
        for start in 96...105 {
            let offset = start.isMultiple(of: 2) ? 0 : 500
            _ = try Reading(start + offset, Self.names(start...start + 5)).merge(into: &shift)
        }
        #expect(shift.segments.count == 15)
        #expect(shift.segments.allSatisfy { $0.discontinuity == 0 })
    }

    @Test(arguments: [false, true])
    func `a rendition that missed new numbers has the discontinuities of the other one`(
        isRestart: Bool
    ) throws {
        var first = TimeShift()
        var second = TimeShift()
        _ = try Reading(100, Self.names(100...105)).merge(into: &first)
        _ = try Reading(100, Self.names(100...103, "u")).merge(into: &second, besides: first)
        // The window meets the last segment, unless the stream is another one.
        let name = isRestart ? "t" : "s"
        _ = try Reading(1003, Self.names(103...106, name), countsAnew: true).merge(into: &first)
        _ = try Reading(1006, Self.names(106...110, name)).merge(into: &first)
        #expect(first.segments.last?.discontinuity == (isRestart ? 1 : 0))
        let merge = try Reading(1007, Self.names(107...110, "v"), countsAnew: true)
            .merge(into: &second, besides: first)
        #expect(merge.relation == .newEpoch && merge.missed == (isRestart ? 6 : 3))
        let (one, other) = (first.segments.last, second.segments.last)
        #expect(other?.number == one?.number && other?.originNumber == 1010)
        #expect(other?.discontinuity == one?.discontinuity)
    }

    @Test func `a ring of files that may have been restarted continues after a discontinuity`()
        throws
    {
        var shift = TimeShift()
        for numbers in [990...997, 998...1001, 1002...1005] {
            _ = try Reading(numbers.lowerBound, Self.ring(numbers)).merge(into: &shift)
        }
        _ = try Reading(0, Self.ring(4...7)).merge(into: &shift)
        #expect(shift.segments.suffix(3).map(\.discontinuity) == [0, 1, 1])
    }

    @Test func `segments are missing before names that were given before`() throws {
        var shift = TimeShift()
        // Those of the second round are new generations.
        for start in 0...9 {
            _ = try Reading(start, Self.ring(start...start + 3)).merge(into: &shift)
        }
        let merge = try Reading(18, Self.ring(18...21)).merge(into: &shift)
        #expect(merge.relation == .advanced && merge.missed == 5)
    }
}
