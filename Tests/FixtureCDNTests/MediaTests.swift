// The committed media are played from the sample CDN without an error message.
import FixtureCDN
import ScenarioSupport
import Testing

@Suite(.timeLimit(.minutes(5)), .enabled(if: Tool.exists("ffmpeg")))
struct MediaTests {
    @Test(arguments: [
        ("ts/master.m3u8", 1380), ("fmp4/master.m3u8", 1608), ("byterange/master.m3u8", 804),
        ("aes/master.m3u8", 804), ("audio/master.m3u8", 516), ("plain/clip.mp4", 803),
    ])
    func `ffmpeg decodes every frame`(path: String, frames: Int) throws {
        let cdn = FixtureCDN(folder: Fixture.path("media"))
        try cdn.start()
        defer { cdn.stop() }
        let played = try #require(try Tool.framemd5(cdn.url("/" + path)))
        #expect(played.split(separator: "\n").count == frames)
        // ffmpeg opens a local key only if any extension is allowed.
        let options = path.hasSuffix("m3u8") ? ["-allowed_extensions", "ALL"] : []
        #expect(played == (try Tool.framemd5(Fixture.path("media/" + path), options)))
    }
}
