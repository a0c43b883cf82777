import FixtureCDN
import ScenarioSupport
import Testing

/// Bars the merging of the CDN's media URLs: one of them is answered with `no-store`.
private func barMerging(_ story: Story) throws {
    let path = segment("barred", 3_000)
    story.cdn.setBehaviour("cc=no-store", for: path)
    _ = try story.get("\(path)?\(signature(1))")
    #expect(try story.stat("key_vetoes_total") == 1)
}

/// What recordings have outlasts a change of the keys of its URLs.
extension Stories.RecordingTests {
    @Test func `a recording keeps its segments when its origin's URLs are no longer merged`() throws
    {
        let story = try Story()
        let window = LiveWindow(
            segments: (0..<100).map {
                .init(uri: "\(segment("s\($0)", 3_000))?\(signature($0))", duration: 1)
            },
            targetDuration: 1, windowSize: 3)
        let stream = RecordedStream(on: story, window)
        try stream.record()
        #expect(try stream.has(3))
        window.advance(by: 3)
        #expect(try stream.has(6))
        try barMerging(story)
        window.advance(by: 2)
        #expect(try stream.has(8))
        let list = try stream.stop()
        #expect(list.segmentNames == (0...7).map { "s\($0)" })
        #expect(!list.text.contains("EXT-X-GAP"))
        let ended = try stream.told()
        #expect(members("lost", in: ended).first == "0", "\(ended)")
        story.cdn.stop()
        try story.restart()
        let links = uriLines(try stream.played().text)
        #expect(links.count == 8)
        for (number, link) in links.enumerated() {
            let isRight = isContent(
                try story.follow(link).body, of: segment("s\(number)", 3_000))
            #expect(isRight, "segment \(number)")
        }
    }
}

/// So does what downloads have.
extension Stories.Downloads {
    @Test func `a download plays when its origin's URLs are no longer merged`() throws {
        let stage = try DownloadStage()
        let paths = (0..<3).map { segment("f\($0)", 3_000) }
        let uris = paths.indices.map { "\(paths[$0])?\(signature($0))" }
        stage.cdn.put("/f.m3u8", text: vod(uris))
        let id = try stage.order(stage.cdn.url("/f.m3u8"))
        _ = try stage.wait(id, for: "complete")
        try barMerging(stage.story)
        let links = uriLines(try stage.story.get("/f.m3u8").text)
        #expect(links.count == 3)
        // The origin answers, and is not asked for what it may have removed.
        let isFirst = isContent(try stage.story.follow(links[0]).body, of: paths[0])
        #expect(isFirst && stage.cdn.requestCount(paths[0]) == 1)
        stage.cdn.stop()
        let left = uriLines(try stage.story.get("/f.m3u8").text)
        #expect(left.count == 3)
        for (path, link) in zip(paths, left) {
            let isRight = isContent(try stage.story.follow(link).body, of: path)
            #expect(isRight, "\(path)")
        }
    }
}
