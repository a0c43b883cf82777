import FixtureCDN
import ScenarioSupport
import Testing

/// Kodi with the file of `Fixtures/players`, used as people copy it.
extension Players {
    @Suite(.enabled(if: Kodi.isInstalled, "needs kodi, kodi-inputstream-adaptive and xvfb"))
    struct KodiFiles {
        private static let exampleURL =
            "http://127.0.0.1:9000/https://cdn.example.com/vod/master.m3u8"

        @Test func `Kodi plays the file through the daemon, also without the origin`() throws {
            let stage = try Stage()
            let kodi = try Kodi()
            let file = String(
                decoding: try readFile(Fixture.path("players/kodi.strm")), as: UTF8.self)
            #expect(file.hasSuffix(Self.exampleURL + "\n"))
            let stream = Stream.transportStream
            let lines = file.replacing(Self.exampleURL, with: stage.through(stream))
            try kodi.open(lines)
            // The title has 12 seconds.
            let playing = try #require(try kodi.plays(beyond: 30), "\(kodi.log)")
            #expect(playing.contains("\"codec\":\"h264\"") && playing.contains("\"codec\":\"aac\""))
            #expect(try stage.figure("playlists_rewritten_total") > 1)
            let segments = stage.cdn.requests.filter { $0.path.hasSuffix(".ts") }
            #expect(segments.count > 3)

            try stage.keepWhole(stage.through(stream))
            stage.cdn.stop()
            let before = try stage.figure("origin_requests_total")
            try kodi.open(lines)
            #expect(try kodi.plays(beyond: 30) != nil, "\(kodi.log)")
            #expect(try stage.figure("origin_requests_total") == before)
        }

        @Test func `the daemon sends headers that stand behind an encoded bar in the file's URL`()
            throws
        {
            let stage = try Stage()
            let kodi = try Kodi()
            let file = String(
                decoding: try readFile(Fixture.path("players/kodi.strm")), as: UTF8.self)
            let stream = Stream.fragmentedMP4
            let url = stage.through(stream) + "%7CReferer=https%3A%2F%2Fexample.com%2F"
            try kodi.open(file.replacing(Self.exampleURL, with: url))
            #expect(try kodi.plays(beyond: 10) != nil, "\(kodi.log)")
            let requests = stage.cdn.requests
            #expect(requests.count > 3)
            for request in requests {
                #expect(request["Referer"] == "https://example.com/", "\(request.target)")
            }
        }
    }
}
