import HLS
import Testing

/// Detecting playlists among other bodies.
@Suite struct PlaylistDetectorTests {
    @Test(
        arguments: [
            ("#EXTM3U", .playlist), ("#EXTM3U\r\n#EXT", .playlist), ("#EXTM3U x=\"y\"", .playlist),
            ("\n \t\r\n#EXTM3U\n", .playlist), ("# comment\n\n#EXTM3U", .playlist),
            ("\u{FEFF}#EXTM3U", .playlist), ("\u{FEFF}\n# c\r#EXTM3U", .playlist),
            ("#EXTM3U8", .undecided), ("#EXTM3", .undecided), ("", .undecided), (" \n", .undecided),
            ("# only a comment", .undecided), ("<!DOCTYPE html>", .markup), ("\n  <html>", .markup),
            ("<?xml version", .markup), ("G@", .other), ("{\"error\":1}", .other),
        ] as [(String, PlaylistDetector.Verdict)])
    func `the first bytes decide whether a body is a playlist`(
        text: String, verdict: PlaylistDetector.Verdict
    ) {
        let bytes = Array(text.utf8)
        #expect(PlaylistDetector.inspect(bytes) == verdict)
        #expect(PlaylistDetector.looksLikePlaylist(bytes) == (verdict == .playlist))
        #expect(PlaylistDetector.looksLikeMarkup(bytes) == (verdict == .markup))
    }

    @Test func `a partial byte order mark decides nothing yet`() {
        #expect(PlaylistDetector.inspect([0xEF, 0xBB]) == .undecided)
    }
}
