@testable import Model
import HLS
import HTTP
import Testing
import URISyntax

/// Which lists satisfy which delivery directives (8216bis 6.2.5).
@Suite struct `Delivery directives` {
    private func directives(_ query: String) -> DeliveryDirectives? {
        DeliveryDirectives(QueryItem.items(of: query))
    }

    /// Segments 5 to 9, of two parts each where parts are listed, and `parts` parts of segment 10.
    private func list(parts: Int, end: String = "") throws -> LivePosition {
        var text = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-PART-INF:PART-TARGET=1\n"
        text += "#EXT-X-MEDIA-SEQUENCE:5\n"
        for number in 5...9 {
            if number == 9 { text += part("9.0") + part("9.1") }
            text += "#EXTINF:4,\ns\(number).ts\n"
        }
        text += (0..<parts).map { part("10.\($0)") }.joined() + end
        return try #require(LivePosition(Array(text.utf8)))
    }

    private func part(_ name: String) -> String { "#EXT-X-PART:DURATION=1,URI=\"p\(name).ts\"\n" }

    @Test(arguments: [
        ("http://h/l.m3u8?_HLS_msn=9&_HLS_part=1", "http://h/l.m3u8"),
        ("http://h/l.m3u8?a=1&_HLS_msn=9&_HLS_skip=YES", "http://h/l.m3u8?a=1&_HLS_skip=YES"),
        ("http://h/l.m3u8?_HLS_part=1&_HLS_skip=v2&_HLS_msn=9", "http://h/l.m3u8?_HLS_skip=v2"),
        ("http://h/l.m3u8?_HLS_id=1&_HLS_msn=9&&b=%26", "http://h/l.m3u8?_HLS_id=1&&b=%26"),
        ("http://h/l.m3u8?a=_HLS_msn=1", "http://h/l.m3u8?a=_HLS_msn=1"),
        ("http://h/l.m3u8", "http://h/l.m3u8"),
    ])
    func `without what makes an origin hold it, a reload still asks for a delta update`(
        _ url: String, _ polled: String
    ) throws {
        #expect(try AbsoluteURL(url).withoutHolding.text == polled)
    }

    @Test(arguments: [
        ("_HLS_msn=9", 0, true), ("_HLS_msn=10", 0, false), ("_HLS_msn=10", 2, false),
        ("_HLS_msn=8&_HLS_part=7", 0, true), ("_HLS_msn=9&_HLS_part=1", 0, true),
        // A part behind the last of its segment is the first of the next one.
        ("_HLS_msn=9&_HLS_part=2", 0, false), ("_HLS_msn=9&_HLS_part=2", 1, true),
        ("_HLS_msn=10&_HLS_part=0", 0, false), ("_HLS_msn=10&_HLS_part=0", 1, true),
        ("_HLS_msn=10&_HLS_part=1", 1, false), ("_HLS_skip=YES", 0, true),
    ])
    func `a list satisfies directives once it has what they ask for`(
        _ query: String, _ parts: Int, _ answers: Bool
    ) throws {
        let asked = try #require(directives(query))
        #expect(try list(parts: parts).satisfies(asked) == answers)
        #expect(try list(parts: parts, end: "#EXT-X-ENDLIST\n").satisfies(asked))
    }

    @Test(arguments: [
        ("_HLS_msn=10&_HLS_part=1", true), ("_HLS_msn=9&_HLS_part=2", false),
        ("_HLS_msn=10&_HLS_part=2", false), ("_HLS_msn=10", false),
    ])
    func `a request for the part that follows the list waits for it`(
        _ query: String, _ isNext: Bool
    ) throws {
        #expect(try list(parts: 1).isNext(try #require(directives(query))) == isNext)
    }

    @Test(arguments: [
        "_HLS_part=1", "_HLS_msn=x", "_HLS_msn=-1", "_HLS_msn=1&_HLS_start_offset=3", "",
        "_HLS_msn=99999999999999999999",
    ])
    func `malformed directives are not parsed`(_ query: String) {
        #expect(directives(query) == nil)
    }

    @Test(arguments: [
        ("_HLS_primary_id=a", true), ("_HLS_interstitial_id=i&_HLS_start_offset=4.5", true),
        ("_HLS_primary_id=a&_HLS_msn=3", false), ("_HLS_pathway=a", false), ("", false),
    ])
    func `what a player adds to the URL of an interstitial is told from other items`(
        _ query: String, _ isOne: Bool
    ) {
        let text = InterstitialQuery.text(of: QueryItem.items(of: query))
        #expect(text == (isOne ? query : nil))
    }

    @Test func `only delta updates are another form of a list`() throws {
        #expect(directives("_HLS_msn=4&_HLS_part=1")?.skip == nil)
        #expect(directives("_HLS_msn=4&_HLS_skip=v2")?.skip == "v2")
    }
}
