import FixtureCDN
import ScenarioSupport
import Testing

/// How fast the queue of downloads advances.
extension Stories {
    // Without the thread sanitizer, under which the titles themselves take as long as the limit.
    @Suite(.tags(.timed)) struct DownloadQueueTests {
        /// Twice a second all downloads are looked at: to wait for that, four of sixty titles begin
        /// each time, and all of them take seven seconds.
        @Test func `the end of a download starts the next one at once`() throws {
            let stage = try DownloadStage()
            let segments = (0..<60).map { "/bytes/queued\($0)/3000" }
            for (number, segment) in segments.enumerated() {
                stage.cdn.put("/q/\(number).m3u8", text: vod([segment]))
            }
            // Orders start downloads too: these four keep all places until the last order is given.
            for segment in segments.prefix(4) { stage.cdn.hold(segment) }
            for number in segments.indices {
                _ = try stage.order(stage.cdn.url("/q/\(number).m3u8"))
            }
            #expect(
                eventually { segments.prefix(4).allSatisfy { stage.cdn.requestCount($0) > 0 } })
            #expect(stage.cdn.requestCount(segments[4]) == 0)
            let released = ContinuousClock.now
            for segment in segments.prefix(4) { stage.cdn.release(segment) }
            #expect(eventually { stage.cdn.requestCount(segments[59]) > 0 })
            #expect(ContinuousClock.now - released < .seconds(5))
        }
    }
}
