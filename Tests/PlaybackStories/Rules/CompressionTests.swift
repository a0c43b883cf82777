import FixtureCDN
import ScenarioSupport
import Testing

/// Playlists that are compressed for players that accept it.
extension Stories {
    @Suite(.tags(.timed)) struct CompressionTests {}
}

extension Stories.CompressionTests {
    private static let longList =
        "#EXTM3U\n#EXT-X-TARGETDURATION:4\n"
        + (0..<500).map { "#EXTINF:4,\nseg\($0).ts\n" }.joined() + "#EXT-X-ENDLIST\n"

    @Test
    func `a long playlist is sent as gzip to players that accept it, and uncompressed to others`()
        throws
    {
        let story = try Story()
        story.cdn.put("/long.m3u8", text: Self.longList, contentType: "application/x-mpegurl")
        let plain = try story.get("/long.m3u8")
        let coded = try story.get("/long.m3u8", headers: [("Accept-Encoding", "gzip")])
        #expect(plain["Content-Encoding"] == nil && plain["Vary"] == "Accept-Encoding")
        #expect(coded["Content-Encoding"] == "gzip")
        #expect(coded.body.count < plain.body.count / 4)
        let folder = try TemporaryFolder()
        try writeFile(folder.file("list.gz"), coded.body)
        let unpacked = try Tool.run(["gzip", "-dc", folder.file("list.gz")])
        #expect(unpacked.output == plain.body)
    }

    @Test
    func `a short playlist is not compressed`() throws {
        let story = try Story()
        story.cdn.put("/short.m3u8", text: "#EXTM3U\n#EXTINF:4,\na.ts\n#EXT-X-ENDLIST\n")
        let answer = try story.get("/short.m3u8", headers: [("Accept-Encoding", "gzip")])
        #expect(answer["Content-Encoding"] == nil && answer.text.hasPrefix("#EXTM3U"))
    }
}
