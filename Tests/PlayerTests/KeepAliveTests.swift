import FixtureCDN
import ScenarioSupport
import Testing

/// A thousand short segments in a row on persistent connections.
extension Players {
    @Suite
    struct KeepAlive {
        private static let count = 1000

        @Test func `a thousand segments are fetched over one connection`() throws {
            let stage = try Stage()
            try Self.putPlaylist(on: stage.cdn)
            let player = ScriptedPlayer(stage.daemon.baseURL)
            let playlist = try player.get(stage.through(stage.cdn.url("/tiny/index.m3u8"))).text
            let segments = playlist.split(separator: "\n").filter { !$0.hasPrefix("#") }
            #expect(segments.count == Self.count)
            let frames = try Self.frames()
            var wrong = 0
            for segment in segments {
                let answer = try player.get(String(segment))
                if !answer.reusedConnection || answer.body != frames { wrong += 1 }
            }
            #expect(wrong == 0)
        }

        @Test(.enabled(if: Tool.exists("ffmpeg"), "needs ffmpeg"))
        func `ffmpeg keeps its two connections over a thousand segments`() throws {
            let stage = try Stage()
            try Self.putPlaylist(on: stage.cdn)
            let direct = try Self.play(stage.cdn.url("/tiny/index.m3u8"))
            let proxied = try Self.play(stage.through(stage.cdn.url("/tiny/index.m3u8")))
            #expect(direct.performance.lines.count >= Self.count)
            #expect(proxied.performance == direct.performance)
            // One for the playlist, which ffmpeg closes, and two that it reads from alternately.
            #expect(proxied.connections <= 3)
        }

        @Test func `a connection of HTTP/1.0 is closed after its response`() throws {
            let stage = try Stage()
            let host = stage.daemon.baseURL.dropFirst("http://".count)
            let target = "/" + stage.cdn.url("/audio/seg000.aac")
            let request = "GET \(target) HTTP/1.0\r\nHost: \(host)\r\n\r\n"
            let stream = try ScriptedPlayer(stage.daemon.baseURL).sendRaw(request.utf8)
            #expect(try stream.readHead().status == 200)
            #expect(try stream.readRest() == Fixture.bytes("media/audio/seg000.aac"))
            #expect(stream.waitForClose())
        }

        private static func putPlaylist(on cdn: FixtureCDN) throws {
            let frames = try frames()
            var playlist = "#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:1\n"
            for number in 0..<count {
                cdn.put("/tiny/\(number).aac", frames)
                playlist += "#EXTINF:0.093,\n\(number).aac\n"
            }
            cdn.put("/tiny/index.m3u8", text: playlist + "#EXT-X-ENDLIST\n")
        }

        /// The first four frames of a bundled sound segment, without the tag before them.
        private static func frames() throws -> [UInt8] {
            let segment = try Fixture.bytes("media/audio/seg000.aac")
            // ADTS (ISO/IEC 13818-7, 6.2): twelve bits of ones, and a length of 13 bits.
            let start = try #require(
                segment.indices.dropLast().first {
                    segment[$0] == 0xFF && segment[$0 + 1] & 0xF6 == 0xF0
                })
            var end = start
            for _ in 0..<4 {
                let length =
                    Int(segment[end + 3] & 3) << 11 | Int(segment[end + 4]) << 3
                    | Int(segment[end + 5]) >> 5
                end += length
            }
            return Array(segment[start..<end])
        }

        private static func play(_ url: String) throws
            -> (performance: Performance, connections: Int)
        {
            let result = try Tool.run(
                ["ffmpeg", "-nostdin", "-hide_banner", "-v", "verbose", "-i", url]
                    + ["-map", "0:a", "-f", "framemd5", "-"])
            #expect(result.status == 0)
            let lines = result.stdout.split(separator: "\n").filter { !$0.hasPrefix("#") }
            let connections = result.stderr.split(separator: "\n")
                .count { $0.contains("Successfully connected to") }
            return (Performance(lines), connections)
        }
    }
}
