import FixtureCDN
import ScenarioSupport
import Testing

/// What recordings lose while they wait for their end.
extension Stories.RecordingTests {
    @Test func `a segment that is lost while a recording waits for its end is not named`() throws {
        let stream = try RecordedStream()
        let (story, cdn) = (stream.story, stream.story.cdn)
        try stream.stopWithoutEntry()
        let waiting = try stream.told { $0.contains("finishing") && $0.contains("m.m3u8") }
        #expect(waiting.contains("\"state\":\"finishing\""), "\(waiting)")
        #expect(try story.ask("purge", cdn.url(segment("s1", 3_000))).status == 0)
        try cdn.start()
        let lists = links(try stream.played().text)
        let names = try lists.map { try story.follow($0).segmentNames }
        #expect(names.first == ["a0", "a1", "a2"])
        #expect(names.last?.contains("s0") == true && names.last?.contains("s1") == false)
        let ended = try stream.told()
        #expect(members("lost", in: ended).first == "1", "\(ended)")
    }
}
