import HTTP
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
}
