// A live stream: the window slides while ffmpeg watches it, and ends when the origin says so.
import FixtureCDN
import ScenarioSupport
import Testing

/// Beside the other players: most of its time it waits.
@Suite(
    .timeLimit(.minutes(5)), .tags(.players), .grouped,
    .enabled(if: Tool.exists("ffmpeg"), "needs ffmpeg"))
struct LiveTests {
    @Test func `ffmpeg watches a sliding window to its end`() throws {
        let stage = try Stage()
        let whole = try Tool.framemd5(stage.cdn.url("/ts/160p/index.m3u8"))
        let window = stage.cdn.live(
            "/live.m3u8",
            LiveWindow(
                vod: try Fixture.text("media/ts/160p/index.m3u8"), prefix: "/ts/160p/",
                windowSize: 3))
        stage.cdn.resetLog()
        let url = stage.through(stage.cdn.url("/live.m3u8"))
        // ffmpeg begins three segments before the end, here at the first one.
        let watching = Background { try Tool.framemd5(url) }
        let start = ContinuousClock.now
        for newest in 2..<6 {
            let path = "/ts/160p/seg00\(newest).ts"
            #expect(eventually(within: .seconds(20)) { stage.cdn.requestCount(path) == 1 })
            newest < 5 ? window.advance() : window.end()
        }
        let isWhole = try watching.value(within: .seconds(20)) == whole
        #expect(whole != nil && isWhole)
        #expect((0..<6).allSatisfy { stage.cdn.requestCount("/ts/160p/seg00\($0).ts") == 1 })
        // Every state of the window was seen, with at most one origin request in half a target
        // duration, here a second.
        let seconds = Int((ContinuousClock.now - start) / .seconds(1))
        #expect((5...seconds + 2).contains(stage.cdn.requestCount("/live.m3u8")))
    }
}
