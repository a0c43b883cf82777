@testable import HLS
import Testing
import URISyntax

/// The URIs of segments that are not kept.
@Suite struct SegmentPlaceholderTests {
    private static func segment(_ uri: String) throws -> TimeShiftSegment {
        var shift = TimeShift()
        let list =
            "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:5\n#EXTINF:2,\n\(uri)\n"
        _ = try shift.merge(Array(list.utf8), base: TimeShiftTests.base)
        return try #require(shift.segments.first)
    }

    @Test(arguments: [
        ("a.m4s", "5.m4s"), ("a.b.aac?c.d", "5.aac"), ("a", "5"), ("a.", "5."),
        // What is no extension is replaced by that of the form of the list.
        ("a.b-c", "5.ts"), ("a.b%20c", "5.ts"),
    ])
    func `a segment that was seen keeps the extension of its URI`(uri: String, expected: String)
        throws
    {
        let placeholder = SegmentPlaceholder.uri(of: try Self.segment(uri))
        let text = String(decoding: placeholder, as: UTF8.self)
        #expect(text == "http://missing.invalid/\(expected)")
    }

    @Test(arguments: [true, false])
    func `a segment that was never seen has the extension of its list's form`(isFragment: Bool)
        throws
    {
        let uri = SegmentPlaceholder.uri(7, isFragment: isFragment)
        let text = String(decoding: uri, as: UTF8.self)
        #expect(text == "http://missing.invalid/7." + (isFragment ? "m4s" : "ts"))
        #expect(SegmentPlaceholder.isUsed(as: try AbsoluteURL(text)))
        #expect(!SegmentPlaceholder.isUsed(as: TimeShiftTests.base))
    }
}
