import HLS
import Testing
import URISyntax

/// Live windows joined into a longer window.
@Suite struct TimeShiftTests {
    static let base = Corpus.base

    /// A window of segments named `s<number>.ts`.
    static func window(
        _ numbers: ClosedRange<Int>, names: String = "s", extra: String = "", each: String = ""
    ) -> [UInt8] {
        var text = "#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:2\n"
        text += "#EXT-X-MEDIA-SEQUENCE:\(numbers.lowerBound)\n" + extra
        for number in numbers { text += each + "#EXTINF:2,\n\(names)\(number).ts\n" }
        return Array(text.utf8)
    }

    static func names(_ shift: TimeShift) -> [String] {
        shift.segments.map { $0.url?.lastPathSegment ?? "-" }
    }

    static func text(_ shift: TimeShift, _ ending: TimeShift.Ending = .live) -> String {
        String(decoding: shift.playlist(ending: ending) { _ in true }, as: UTF8.self)
    }

    @Test func `segments that left the origin's window stay in the list`() throws {
        var shift = TimeShift()
        #expect(try shift.merge(Self.window(5...7), base: Self.base).relation == .first)
        let merge = try shift.merge(Self.window(7...9), base: Self.base)
        #expect(merge.relation == .advanced && merge.added == 8..<10 && merge.missed == 0)
        #expect(
            Self.text(shift) == """
                #EXTM3U
                #EXT-X-VERSION:3
                #EXT-X-TARGETDURATION:2
                #EXT-X-MEDIA-SEQUENCE:5
                #EXTINF:2,
                https://cdn.example.com/vod/a/s5.ts
                #EXTINF:2,
                https://cdn.example.com/vod/a/s6.ts
                #EXTINF:2,
                https://cdn.example.com/vod/a/s7.ts
                #EXTINF:2,
                https://cdn.example.com/vod/a/s8.ts
                #EXTINF:2,
                https://cdn.example.com/vod/a/s9.ts

                """)
    }

    @Test func `a repeated window changes nothing`() throws {
        var shift = TimeShift()
        _ = try shift.merge(Self.window(5...7), base: Self.base)
        let merge = try shift.merge(Self.window(5...7), base: Self.base)
        #expect(merge.relation == .unchanged && merge.added.isEmpty)
        #expect(shift.segments.count == 3)
    }

    @Test func `segments that are listed again have the URLs of the newest window`() throws {
        var shift = TimeShift()
        func window(_ numbers: ClosedRange<Int>, _ token: String) -> [UInt8] {
            let text = String(decoding: Self.window(numbers), as: UTF8.self)
            return Array(text.replacing(".ts", with: ".ts?t=\(token)").utf8)
        }
        _ = try shift.merge(window(5...7, "a"), base: Self.base)
        #expect(shift.renewedURLs.isEmpty)
        _ = try shift.merge(window(6...8, "b"), base: Self.base)
        #expect(shift.renewedURLs.keys.sorted() == [6, 7])
        #expect(shift.renewedURLs[7]?.text.hasSuffix("s7.ts?t=b") == true)
        #expect(shift.segment(number: 7)?.url?.text.hasSuffix("s7.ts?t=a") == true)
    }

    @Test(arguments: [2, 5])
    func `a URI in which the text was cut is no segment`(lacking count: Int) throws {
        var shift = TimeShift()
        _ = try shift.merge(Self.window(5...9), base: Self.base)
        let cut = Array(Self.window(6...10).dropLast(count))
        #expect(try shift.merge(cut, base: Self.base).added.isEmpty)
        _ = try shift.merge(Self.window(6...10), base: Self.base)
        // In the middle of a known name, too.
        let shorter = Array(Self.window(6...8).dropLast(count))
        #expect(try shift.merge(shorter, base: Self.base).relation == .stale)
        let merge = try shift.merge(Self.window(7...11), base: Self.base)
        #expect(merge.relation == .advanced && merge.missed == 0)
        #expect(Self.names(shift) == (5...11).map { "s\($0).ts" })
    }

    @Test func `the last URI counts if the origin ends no text with a line end`() throws {
        var shift = TimeShift()
        _ = try shift.merge(Array(Self.window(5...7).dropLast()), base: Self.base)
        _ = try shift.merge(Array(Self.window(6...8).dropLast()), base: Self.base)
        #expect(Self.names(shift) == (5...8).map { "s\($0).ts" })
    }

    @Test func `an older window is stale and changes nothing`() throws {
        var shift = TimeShift()
        _ = try shift.merge(Self.window(5...9), base: Self.base)
        #expect(try shift.merge(Self.window(4...7), base: Self.base).relation == .stale)
        #expect(shift.segments.count == 5)
    }

    @Test func `segments that were never seen become gaps`() throws {
        var shift = TimeShift()
        _ = try shift.merge(Self.window(5...6), base: Self.base)
        let merge = try shift.merge(Self.window(9...9), base: Self.base)
        #expect(merge.relation == .advanced && merge.missed == 2)
        #expect(shift.segments.map(\.number) == [5, 6, 7, 8, 9])
        #expect(
            Self.text(shift).contains(
                "s6.ts\n#EXT-X-GAP\n#EXTINF:2,\nhttp://missing.invalid/7.ts\n#EXT-X-GAP\n#EXTINF:2,\nhttp://missing.invalid/8.ts\n#EXTINF:2,\n"
            ))
    }

    @Test(arguments: [(6, 6), (3_600, 2)])
    func `a gap lasts as long as the target duration, unless that is taken for a mistake`(
        target: Int, seconds: Int
    ) throws {
        var shift = TimeShift()
        for numbers in [5...7, 10...12] {
            let text = String(decoding: Self.window(numbers), as: UTF8.self)
                .replacing("TARGETDURATION:2", with: "TARGETDURATION:\(target)")
            _ = try shift.merge(Array(text.utf8), base: Self.base)
        }
        let gaps = shift.segments.filter(\.isPlaceholder)
        #expect(gaps.map(\.duration) == [.seconds(seconds), .seconds(seconds)])
    }

    @Test(arguments: [7, 8])
    func `a late segment is a gap only until the origin has it`(newest: Int) throws {
        var shift = TimeShift()
        func window(_ numbers: ClosedRange<Int>) -> String {
            String(decoding: Self.window(numbers), as: UTF8.self)
        }
        let gap = window(5...7).replacing("#EXTINF:2,\ns7", with: "#EXT-X-GAP\n#EXTINF:2,\ns7")
        let first = try shift.merge(Array(gap.utf8), base: Self.base)
        #expect(!first.fillsGaps && shift.segments.map(\.isGap) == [false, false, true])
        let merge = try shift.merge(Array(window(6...newest).utf8), base: Self.base)
        #expect(merge.fillsGaps && merge.relation == (newest == 7 ? .unchanged : .advanced))
        #expect(merge.added == 8..<(newest + 1))
        #expect(!Self.text(shift).contains("#EXT-X-GAP") && Self.text(shift).contains("s7.ts"))
        // A node that lags lists it as missing again.
        if newest == 7 { _ = try shift.merge(Array(gap.utf8), base: Self.base) }
        let again = try shift.merge(Array(window(6...newest).utf8), base: Self.base)
        #expect(!again.fillsGaps && !Self.text(shift).contains("#EXT-X-GAP"))
    }

    @Test func `evicted segments become gaps, except at the start`() throws {
        var shift = TimeShift()
        _ = try shift.merge(Self.window(1...3), base: Self.base)
        _ = try shift.merge(Self.window(4...5), base: Self.base)
        let kept: Set<Int> = [2, 4, 5]
        let isLater = shift.leaveOutLost { !kept.contains($0.number) }
        #expect(isLater)
        let bytes = shift.playlist { kept.contains($0.number) }
        let text = String(decoding: bytes, as: UTF8.self)
        #expect(text.contains("MEDIA-SEQUENCE:2\n"))
        #expect(text.contains("#EXT-X-GAP\n#EXTINF:2,\nhttp://missing.invalid/3.ts\n"))
    }

    /// The number that a list begins with if all of its segments are stored.
    private static func start(
        _ shift: TimeShift, _ ending: TimeShift.Ending = .live
    ) throws -> Int? {
        let bytes = shift.playlist(ending: ending) { _ in true }
        return try Playlist(bytes, base: nil).media?.segments.first?.mediaSequence
    }

    @Test func `what a live list left out at its start stays out, whatever arrives later`() throws {
        var shift = TimeShift()
        _ = try shift.merge(Self.window(1...3), base: Self.base)
        _ = try shift.merge(Self.window(4...5), base: Self.base)
        var isLater = shift.leaveOutLost { $0.number == 1 }
        #expect(isLater)
        isLater = shift.leaveOutLost { $0.number == 3 }
        #expect(!isLater)
        var restored = try TimeShift(snapshot: shift.snapshot())
        _ = try restored.merge(Self.window(6...7), base: Self.base)
        for shift in [shift, restored] {
            #expect(try Self.start(shift) == 2)
            #expect(try Self.start(shift, .ended) == 2)
            // A recording has all that was fetched.
            #expect(try Self.start(shift, .recorded) == 1)
        }
        isLater = shift.leaveOutLost { _ in true }
        #expect(isLater)
        #expect(try Self.start(shift) == 4)
    }

    @Test func `the discontinuity sequence number of a list never decreases`() throws {
        var shift = TimeShift()
        _ = try shift.merge(Self.window(10...12), base: Self.base)
        _ = try shift.merge(
            Self.window(0...2, names: "t"), base: Self.base, in: .init(countsAnew: true))
        #expect(!Self.text(shift).contains("#EXT-X-DISCONTINUITY-SEQUENCE"))
        _ = shift.leaveOutLost { _ in true }
        _ = shift.leaveOutLost { _ in false }
        let text = Self.text(shift)
        #expect(text.contains("#EXT-X-MEDIA-SEQUENCE:13\n#EXT-X-DISCONTINUITY-SEQUENCE:1\n"))
    }

    @Test func `segments of the origin's current window are never gaps`() throws {
        var shift = TimeShift()
        _ = try shift.merge(Self.window(1...3), base: Self.base)
        let text = String(decoding: shift.playlist { _ in false }, as: UTF8.self)
        #expect(text.contains("s1.ts") && !text.contains("GAP"))
        #expect(shift.playlist(ending: .ended) { _ in false }.isEmpty)
    }

    @Test func `the list has the requested length, at least the origin's window`() throws {
        var shift = TimeShift()
        _ = try shift.merge(Self.window(1...10), base: Self.base)
        _ = try shift.merge(Self.window(8...12), base: Self.base)
        func first(_ seconds: Int) -> String {
            let bytes = shift.playlist(over: .seconds(seconds)) { _ in true }
            let text = String(decoding: bytes, as: UTF8.self)
            return text.split(separator: "\n").first { $0.contains("MEDIA-SEQUENCE") }.map(
                String.init) ?? ""
        }
        #expect(first(14) == "#EXT-X-MEDIA-SEQUENCE:6")
        #expect(first(1) == "#EXT-X-MEDIA-SEQUENCE:8")
    }

    @Test func `trimming removes the oldest segments`() throws {
        var shift = TimeShift()
        _ = try shift.merge(Self.window(1...10), base: Self.base)
        _ = try shift.merge(Self.window(9...12), base: Self.base)
        shift.trim(to: .seconds(12))
        #expect(shift.segments.map(\.number) == [7, 8, 9, 10, 11, 12])
        shift.trim(to: .zero)
        #expect(shift.segments.map(\.number) == [9, 10, 11, 12])
    }

    @Test func `restarted numbering begins an epoch after a discontinuity`() throws {
        var shift = TimeShift()
        _ = try shift.merge(Self.window(100...102), base: Self.base)
        let merge = try shift.merge(Self.window(0...1, names: "t"), base: Self.base)
        #expect(merge.relation == .newEpoch && merge.added == 103..<105)
        #expect(shift.segments.map(\.epoch) == [0, 0, 0, 1, 1])
        #expect(Self.text(shift).contains("s102.ts\n#EXT-X-DISCONTINUITY\n#EXTINF:2,\n"))
        let next = try shift.merge(Self.window(1...2, names: "t"), base: Self.base)
        #expect(next.relation == .advanced && next.added == 105..<106)
    }

    @Test func `other names at known numbers begin an epoch`() throws {
        var shift = TimeShift()
        _ = try shift.merge(Self.window(5...7), base: Self.base)
        let merge = try shift.merge(Self.window(6...8, names: "new"), base: Self.base)
        #expect(merge.relation == .newEpoch && merge.added == 8..<11)
    }

    @Test func `a reused name is reported and gets another generation`() throws {
        var shift = TimeShift()
        _ = try shift.merge(Self.window(100...110), base: Self.base)
        let merge = try shift.merge(Self.window(0...1, names: "s10"), base: Self.base)
        #expect(merge.relation == .newEpoch)
        #expect(merge.reused.map(\.lastPathSegment) == ["s100.ts", "s101.ts"])
        #expect(shift.segments.last?.generation == 1)
    }

    @Test func `tokens that change with every reload begin no epoch`() throws {
        var shift = TimeShift()
        func window(_ numbers: ClosedRange<Int>, _ token: String) -> [UInt8] {
            Array(
                String(decoding: Self.window(numbers), as: UTF8.self)
                    .replacing(".ts", with: ".ts?token=\(token)").utf8)
        }
        _ = try shift.merge(window(1...3, "a"), base: Self.base)
        #expect(try shift.merge(window(2...4, "b"), base: Self.base).relation == .advanced)
        #expect(shift.segments.count == 4)
    }

    @Test func `a mirror with other numbers continues the list`() throws {
        var shift = TimeShift()
        _ = try shift.merge(Self.window(5...7), base: Self.base)
        let mirror = try AbsoluteURL("https://mirror.example.net/x/list.m3u8")
        let text = String(decoding: Self.window(5...8), as: UTF8.self)
            .replacing("SEQUENCE:5", with: "SEQUENCE:905")
        let merge = try shift.merge(Array(text.utf8), base: mirror)
        #expect(merge.relation == .newEpoch)
        #expect(shift.segments.map(\.number) == [5, 6, 7, 8])
        #expect(Self.names(shift) == ["s5.ts", "s6.ts", "s7.ts", "s8.ts"])
        #expect(shift.segments.map(\.discontinuity) == [0, 0, 0, 1])
    }

    @Test func `dates distinguish missing segments from a mirror`() throws {
        func dated(_ numbers: ClosedRange<Int>, _ date: String) -> [UInt8] {
            Self.window(numbers, extra: "#EXT-X-PROGRAM-DATE-TIME:\(date)\n")
        }
        var shift = TimeShift()
        _ = try shift.merge(dated(0...1, "2031-05-06T07:00:00Z"), base: Self.base)
        let hole = try shift.merge(dated(102...103, "2031-05-06T07:03:24Z"), base: Self.base)
        #expect(hole.relation == .advanced && hole.missed == 100)
        let mirror = try shift.merge(dated(900...901, "2031-05-06T07:03:28Z"), base: Self.base)
        #expect(mirror.relation == .newEpoch && mirror.missed == 0)
    }

    @Test func `dates continue from segment to segment and are written where time jumps`() throws {
        var shift = TimeShift()
        let start = "#EXT-X-PROGRAM-DATE-TIME:2031-05-06T07:00:00.000Z\n"
        _ = try shift.merge(Self.window(0...2, extra: start), base: Self.base)
        _ = try shift.merge(
            Self.window(5...5, extra: start.replacing("00:00.000", with: "00:10.000")),
            base: Self.base)
        #expect(
            shift.segments.map { $0.date?.text.dropFirst(17) } == [
                "00.000Z", "02.000Z", "04.000Z", "06.000Z", "08.000Z", "10.000Z",
            ])
        #expect(
            Self.text(shift).contains(
                "#EXT-X-PROGRAM-DATE-TIME:2031-05-06T07:00:06.000Z\n#EXT-X-GAP\n"))
    }

    @Test func `discontinuities still count when their tags have left the window`() throws {
        var shift = TimeShift()
        _ = try shift.merge(
            Array(
                "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-DISCONTINUITY-SEQUENCE:4\n#EXTINF:2,\na\n#EXT-X-DISCONTINUITY\n#EXTINF:2,\nb\n"
                    .utf8), base: Self.base)
        _ = try shift.merge(
            Array(
                "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:3\n#EXT-X-DISCONTINUITY-SEQUENCE:7\n#EXTINF:2,\nd\n"
                    .utf8), base: Self.base)
        #expect(shift.segments.map(\.discontinuity) == [4, 5, 5, 7])
        let text = Self.text(shift)
        #expect(text.contains("#EXT-X-DISCONTINUITY-SEQUENCE:4\n#EXTINF:2,\n"))
        #expect(text.contains("#EXT-X-DISCONTINUITY\n#EXT-X-DISCONTINUITY\n#EXTINF"))
    }

    @Test func `keys and sections precede the segments that need them`() throws {
        var shift = TimeShift()
        let first =
            "#EXT-X-KEY:METHOD=AES-128,URI=\"k1\",IV=0x1\n#EXT-X-MAP:URI=\"i1\"\n"
        _ = try shift.merge(Self.window(0...1, extra: first), base: Self.base)
        let second = "#EXT-X-KEY:METHOD=NONE\n#EXT-X-MAP:URI=\"i2\"\n"
        _ = try shift.merge(Self.window(2...3, extra: second), base: Self.base)
        #expect(
            Self.text(shift).contains(
                """
                #EXT-X-MEDIA-SEQUENCE:0
                #EXT-X-KEY:METHOD=AES-128,URI="https://cdn.example.com/vod/a/k1",IV=0x1
                #EXT-X-MAP:URI="https://cdn.example.com/vod/a/i1"
                #EXTINF:2,
                https://cdn.example.com/vod/a/s0.ts
                #EXTINF:2,
                https://cdn.example.com/vod/a/s1.ts
                #EXT-X-KEY:METHOD=NONE
                #EXT-X-MAP:URI="https://cdn.example.com/vod/a/i2"
                #EXTINF:2,
                """))
        #expect(shift.segments.map { $0.keyURLs.first?.lastPathSegment } == ["k1", "k1", nil, nil])
        #expect(shift.segments.map { $0.mapURL?.lastPathSegment } == ["i1", "i1", "i2", "i2"])
    }

    @Test func `a renumbered segment keeps the IV of its old number`() throws {
        var shift = TimeShift()
        let key = "#EXT-X-KEY:METHOD=AES-128,URI=\"k\"\n"
        _ = try shift.merge(Self.window(100...101, extra: key), base: Self.base)
        _ = try shift.merge(Self.window(7...8, names: "t", extra: key), base: Self.base)
        let text = Self.text(shift)
        #expect(text.contains("k\",IV=0x00000000000000000000000000000007\n#EXTINF:2,\n"))
        #expect(!text.contains("IV=0x00000000000000000000000000000064"))
    }

    @Test func `clear segments behind an encrypted renumbered one are clear`() throws {
        var shift = TimeShift()
        _ = try shift.merge(Self.window(100...101), base: Self.base)
        let key = "#EXT-X-KEY:METHOD=AES-128,URI=\"k\"\n"
        _ = try shift.merge(Self.window(7...8, names: "t", extra: key), base: Self.base)
        _ = try shift.merge(Self.window(9...9, names: "t"), base: Self.base)
        #expect(
            Self.text(shift).hasSuffix(
                "t8.ts\n#EXT-X-KEY:METHOD=NONE\n#EXTINF:2,\nhttps://cdn.example.com/vod/a/t9.ts\n"))
    }

    @Test func `a segment needs a key of its own and one of its initialization section`() throws {
        func key(_ uri: String, _ format: String = "") -> String {
            "#EXT-X-KEY:METHOD=AES-128,URI=\"\(uri)\"\(format)\n"
        }
        let other = ",KEYFORMAT=\"x\""
        var shift = TimeShift()
        let extra =
            key("k1") + "#EXT-X-MAP:URI=\"i\",BYTERANGE=\"9@5\"\n" + key("k2")
            + key("k3", other) + key("skd://x", ",KEYFORMAT=\"y\"")
        _ = try shift.merge(Self.window(0...1, extra: extra), base: Self.base)
        for shift in [shift, try TimeShift(snapshot: shift.snapshot())] {
            let segment = try #require(shift.segments.last)
            #expect(segment.keyURLs.map(\.lastPathSegment) == ["k1", "k2", "k3"])
            let choices = segment.keyChoices.map { $0.map(\.lastPathSegment) }
            #expect(choices == [["k1"], ["k2"]] && segment.mapRange?.bytes == 5..<14)
        }
        var clear = TimeShift()
        let none = key("k1") + "#EXT-X-MAP:URI=\"i\"\n#EXT-X-KEY:METHOD=NONE\n"
        _ = try clear.merge(Self.window(0...1, extra: none + key("k3", other)), base: Self.base)
        let choices = clear.segments.last?.keyChoices.map { $0.map(\.lastPathSegment) }
        #expect(choices == [["k1"], ["k3"]])
    }

    @Test func `a delta update continues with key and section of the previous list`() throws {
        var shift = TimeShift()
        _ = try shift.merge(
            Self.window(0...5, extra: "#EXT-X-MAP:URI=\"i\"\n"), base: Self.base)
        let delta =
            "#EXTM3U\n#EXT-X-VERSION:9\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:1\n"
            + "#EXT-X-SKIP:SKIPPED-SEGMENTS=4\n#EXTINF:2,\ns5.ts\n#EXTINF:2,\ns6.ts\n"
        let merge = try shift.merge(Array(delta.utf8), base: Self.base)
        #expect(merge.relation == .advanced && merge.added == 6..<7)
        #expect(shift.segments.last?.mapURL?.lastPathSegment == "i")
        #expect(shift.windowStart == 1 && !Self.text(shift).contains("SKIP"))
    }

    @Test func `parts, hints and reports are those of the newest window`() throws {
        let body = try #require(Corpus.read("rfc-low-latency-whole.m3u8"))
        var shift = TimeShift()
        _ = try shift.merge(body, base: Self.base)
        let live = Self.text(shift)
        #expect(live.contains("f269.1.mp4\"\n#EXT-X-PRELOAD-HINT") && live.contains("f268.0.mp4"))
        #expect(live.contains("CAN-BLOCK-RELOAD"))
        let ended = Self.text(shift, .ended)
        #expect(!ended.contains("PART") && !ended.contains("CONTROL"))
        #expect(ended.hasSuffix("f268.mp4\n#EXT-X-ENDLIST\n"))
    }

    @Test func `reports of other renditions are left out of a renumbered list`() throws {
        let report = "#EXT-X-RENDITION-REPORT:URI=\"o.m3u8\",LAST-MSN="
        var shift = TimeShift()
        _ = try shift.merge(Self.window(5...7) + Array("\(report)7\n".utf8), base: Self.base)
        #expect(Self.text(shift).hasSuffix("o.m3u8\",LAST-MSN=7\n"))
        let window = Self.window(0...2, names: "t") + Array("\(report)2\n".utf8)
        _ = try shift.merge(window, base: Self.base)
        #expect(Self.text(shift).contains("t2.ts") && !Self.text(shift).contains("REPORT"))
    }

    @Test func `a recording is an ended list of type VOD`() throws {
        var shift = TimeShift()
        _ = try shift.merge(Self.window(3...5), base: Self.base)
        let text = Self.text(shift, .recorded)
        #expect(text.contains("#EXT-X-PLAYLIST-TYPE:VOD\n") && text.hasSuffix("ENDLIST\n"))
    }

    @Test func `date ranges stay with their segments, once each`() throws {
        var shift = TimeShift()
        let range = "#EXT-X-DATERANGE:ID=\"a\",START-DATE=\"2031-05-06T07:00:00Z\"\n"
        _ = try shift.merge(Self.window(0...2, extra: range), base: Self.base)
        _ = try shift.merge(Self.window(1...3, extra: range), base: Self.base)
        #expect(Self.text(shift).split(separator: "#EXT-X-DATERANGE").count == 2)
        _ = try shift.merge(Self.window(3...4), base: Self.base)
        shift.trim(to: .seconds(4))
        #expect(!Self.text(shift).contains("DATERANGE"))
    }

    @Test func `a snapshot restores everything`() throws {
        var shift = TimeShift()
        let key = "#EXT-X-KEY:METHOD=AES-128,URI=\"k\"\n#EXT-X-MAP:URI=\"i\"\n"
        let date = "#EXT-X-PROGRAM-DATE-TIME:2031-05-06T07:00:00.000Z\n"
        _ = try shift.merge(Self.window(100...102, extra: key + date), base: Self.base)
        _ = try shift.merge(Self.window(105...106, extra: key), base: Self.base)
        _ = try shift.merge(Self.window(0...1, names: "t", extra: key), base: Self.base)
        var other = try TimeShift(snapshot: shift.snapshot())
        #expect(other.segments.map(\.number) == shift.segments.map(\.number))
        #expect(other.segments.map(\.originNumber) == shift.segments.map(\.originNumber))
        #expect(other.segments.map(\.epoch) == shift.segments.map(\.epoch))
        #expect(other.segments.map(\.url) == shift.segments.map(\.url))
        #expect(other.segments.map(\.date) == shift.segments.map(\.date))
        #expect(other.segments.map(\.discontinuity) == shift.segments.map(\.discontinuity))
        #expect(other.segments.map(\.mapURL) == shift.segments.map(\.mapURL))
        #expect(Self.text(other, .ended) == Self.text(shift, .ended))
        let merge = try other.merge(
            Self.window(1...2, names: "t", extra: key), base: Self.base)
        #expect(merge.relation == .advanced && merge.added == 109..<110)
    }

    @Test(arguments: ["", "#EXTM3U\n", "x", "#EXTM3U\n#SLUICE-SEGMENT:1,2\n#EXTINF:1,\na\n"])
    func `a damaged snapshot is restored as valid or rejected`(text: String) {
        let shift = try? TimeShift(snapshot: Array(text.utf8))
        #expect((shift?.segments.count ?? 0) <= 1)
    }

    @Test func `a day of windows stays within its limits`() throws {
        var shift = TimeShift()
        for start in stride(from: 0, to: 3000, by: 3) {
            _ = try shift.merge(Self.window(start...start + 5), base: Self.base)
            shift.trim(to: .seconds(60))
        }
        #expect(shift.segments.count == 30 && shift.segments.last?.number == 3002)
    }

    @Test(arguments: Corpus.names.filter { $0.hasPrefix("rfc-") })
    func `windows of the draft's lists violate no rule`(name: String) throws {
        let body = try #require(Corpus.read(name + ".m3u8"))
        guard try Playlist(body, base: nil).kind == .media else { return }
        var shift = TimeShift()
        _ = try shift.merge(body, base: Self.base)
        _ = try shift.merge(Self.window(0...1), base: Self.base)
        for ending in [TimeShift.Ending.live, .ended, .recorded] {
            let text = shift.playlist(ending: ending) { _ in true }
            let found = try Corpus.violations(in: text)
                .filter { $0.level == .must && $0.rule != "version" }
            #expect(found.isEmpty, "\(found)\n\(String(decoding: text, as: UTF8.self))")
        }
    }
}
