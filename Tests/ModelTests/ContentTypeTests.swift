import CachePolicy
import HTTP
import Posix
@testable import Model
import Testing

/// Content types of responses.
@Suite struct ContentTypeTests {
    @Test(arguments: [
        "application/vnd.apple.mpegurl", "Application/X-mpegURL; charset=utf-8", "audio/mpegurl",
        "audio/x-mpegurl",
    ])
    func `the types of HLS are those of a playlist, unless it is encoded`(_ type: String) {
        #expect(ContentTypes.isPlaylist(["Content-Type": type]))
        #expect(
            !ContentTypes.isPlaylist(["Content-Type": type, "Content-Encoding": "gzip"]))
    }

    @Test func `no other type is that of a playlist`() {
        for type in ["video/mp2t", "audio/mpeg", "text/plain", "mpegurl", ""] {
            #expect(!ContentTypes.isPlaylist(["Content-Type": type]), "\(type)")
        }
        #expect(!ContentTypes.isPlaylist(Fields()))
    }

    @Test(arguments: [
        ("text/html; charset=utf-8", true), ("Application/JSON", true), ("image/svg+xml", true),
        ("application/xhtml+xml", true), ("application/ld+json", true),
        ("application/rss+xml; q=1", true), ("text/html, video/mp4", true),
        ("video/mp4, text/html", true), ("video/mp4; codecs=\"avc1,+json\"", false),
        ("application/ttml+xml", false), ("application/dash+xml", false), ("text/vtt", false),
        ("application/octet-stream", false), ("+json", false), ("", false),
    ]) func `a type of documents is recognized in any list and by its suffix`(
        _ type: String, _ isDocument: Bool
    ) {
        let head = StoredHead(
            status: .ok, fields: ["Content-Type": type], requestTime: WallTime(nanoseconds: 0),
            responseTime: WallTime(nanoseconds: 0), finalURL: "https://h/")
        #expect(head.isDocument == isDocument)
    }
}
