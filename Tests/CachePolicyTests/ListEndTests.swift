@testable import CachePolicy
import Posix
import Testing

/// Playlists that end with their connection, and may have been cut there.
struct ListEndTests {
    private static let former = """
        #EXTM3U
        #EXT-X-TARGETDURATION:4
        #EXTINF:4,
        a/7.ts?t=12345
        #EXTINF:4,
        a/8.ts?t=12345

        """

    private func isCut(
        _ text: String, after former: String = ListEndTests.former, age: Interval? = Interval.zero
    ) -> Bool {
        ListEnd(Array(text.utf8)).isCut(after: ListEnd(Array(former.utf8)), age: age)
    }

    @Test func `every cut within a line is noticed, but for one before its line end`() {
        let next = Self.former.replacing("8.ts", with: "9.ts").replacing("7.ts", with: "8.ts")
        let bytes = Array(next.utf8)
        for end in 1..<bytes.count where bytes[end - 1] != 0x0A {
            let text = String(decoding: bytes[..<end], as: UTF8.self)
            #expect(isCut(text) == !text.hasSuffix("?t=12345"), "\(text)")
        }
        #expect(!isCut(next))
    }

    @Test func `a playlist without segments is cut if the former one had some`() {
        let empty = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n"
        #expect(isCut(empty) && isCut(empty + "#EXTINF:4,\n"))
        #expect(!isCut(empty, after: empty) && isCut("", after: Self.former))
        #expect(!isCut(Self.former, after: empty))
    }

    @Test(arguments: [
        (":4", 12), (":0", 3), (":20", 60), (":21", 60), (":9223372036854775807", 60), ("", 18),
    ])
    func `a playlist older than three target durations gives way`(target: String, seconds: Int) {
        let former = Self.former.replacing("DURATION:4", with: "DURATION" + target)
        let bound = Interval.seconds(Int64(seconds))
        let later = Interval(nanoseconds: bound.nanoseconds + 1)
        for text in ["#EXTM3U\n", Self.former + "#EXT-X-EN"] {
            #expect(isCut(text, after: former, age: bound))
            #expect(!isCut(text, after: former, age: later))
            #expect(!isCut(text, after: former, age: nil))
        }
    }

    @Test func `the beginning of an ended playlist of any age is cut`() {
        let film = Self.former + "#EXT-X-ENDLIST\n"
        let old = Interval.seconds(86_400 as Int64)
        for age in [old, nil] {
            for text in ["", "#EXTM3U\n", "#EXTM3U\n#EXT-X-TARG", Self.former + "#EXT-X-EN"] {
                #expect(isCut(text, after: film, age: age), "\(text)")
            }
            // Another playlist, and an event that begins anew under the same names.
            #expect(!isCut("#EXTM3U\n#EXT-X-VERSION:3\n", after: film, age: age))
            #expect(!isCut(Self.former, after: film, age: age))
            #expect(!isCut(Self.former + "#EXT-X-ENDLIST", after: film, age: age))
        }
    }

    @Test func `the beginning of a multivariant playlist of any age is cut`() {
        let start = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n"
        let former = start + "a.m3u8\n#EXT-X-STREAM-INF:BANDWIDTH=2\nb.m3u8\n"
        for text in ["", "#EXTM3U\n", start, start + "a.m3", start + "a.m3u8\n#EXT-X-STR"] {
            #expect(isCut(text, after: former, age: nil), "\(text)")
        }
        #expect(!isCut(start + "c.m3u8\n", after: former, age: nil))
        #expect(!isCut("#EXTM3U\n#EXT-X-ENDLIST\n", after: former, age: nil))
    }

    @Test func `a multivariant playlist may be cut where its text ends openly`() {
        func mayBeCut(_ text: String) -> Bool { ListEnd(Array(text.utf8)).mayBeCut }
        let start = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n"
        for text in [start, start + "a.m3", start + "a.m3u8\n#EXT-X-STR"] {
            #expect(mayBeCut(text), "\(text)")
        }
        #expect(mayBeCut("#EXTM3U\n#EXT-X-MEDIA:TYPE=AUD"))
        #expect(!mayBeCut(start + "a.m3u8\n"))
        // Reloads heal a media playlist.
        #expect(!mayBeCut(Self.former) && !mayBeCut(String(Self.former.dropLast(3))))
        #expect(!mayBeCut("#EXTM3U") && !mayBeCut(""))
    }

    @Test func `of two multivariant playlists that may be cut the longer one is kept`() {
        let start = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n"
        let long = start + "a.m3u8\n#EXT-X-STREAM-INF:BANDWIDTH=2\nb.m"
        let short = start + "a.m"
        #expect(isCut(short, after: long, age: nil))
        #expect(!isCut(long, after: short, age: nil) && !isCut(long, after: long, age: nil))
        #expect(!isCut(start + "a.m3u8\n", after: short, age: nil))
        // Other ones may list less by now.
        let other = start + "c.m"
        #expect(isCut(other, after: long) && !isCut(other, after: long, age: nil))
    }

    @Test func `no variant stream without a URI takes the place of a whole playlist`() {
        let start = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n"
        let cut = start + "c.m3u8\n#EXT-X-STREAM-INF:BANDWIDTH=2\n"
        #expect(isCut(cut, after: start + "a.m3u8\n", age: nil))
        #expect(!isCut(start + "c.m3u8\n", after: start + "a.m3u8\n", age: nil))
    }

    @Test(arguments: ["", "\n"])
    func `a stream that has ended without segments is not cut`(lineEnd: String) {
        #expect(!isCut("#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-ENDLIST" + lineEnd))
        #expect(isCut("#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-ENDLI" + lineEnd))
    }

    @Test(arguments: ["#EXT-X-ENDLIST", "#EXTINF:4,\na/10.ts?t=54321"])
    func `a playlist that ends whole is not cut for want of a line feed`(end: String) {
        #expect(!isCut(Self.former + end))
    }

    @Test func `an origin that never ends in a line feed is not suspected`() {
        let former = String(Self.former.dropLast())
        #expect(!isCut(former + "\n#EXTINF:4,", after: former))
        #expect(!isCut(former + "\n#EXT-X-PRELOAD", after: former))
    }
}
