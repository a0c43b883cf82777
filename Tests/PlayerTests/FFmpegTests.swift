/// ffmpeg and ffprobe see through the daemon exactly what they see direct.
import FixtureCDN
import ScenarioSupport
import Testing

extension Players {
    @Suite(.enabled(if: Tool.exists("ffmpeg") && Tool.exists("ffprobe"), "needs ffmpeg"))
    struct FFmpeg {
        @Test(arguments: Stream.allCases)
        func `ffmpeg decodes every frame of every variant, also with the origin gone`(
            stream: Stream
        ) throws {
            try expectSamePerformance(of: stream) { url in
                let frames = try #require(try Tool.framemd5(url), "ffmpeg fails on \(url)")
                return Performance(frames.split(separator: "\n"))
            }
        }

        @Test(arguments: Stream.allCases)
        func `ffprobe describes every stream and programme alike`(stream: Stream) throws {
            try expectSamePerformance(of: stream) { url in
                let result = try Tool.run(
                    ["ffprobe", "-v", "error", "-show_streams", "-show_programs", "-of", "compact"]
                        + ["-i", url])
                #expect(result.status == 0 && result.errors.isEmpty, "\(result.stderr)")
                return Performance(result.stdout.split(separator: "\n"))
            }
        }

        @Test func `ffmpeg reads the subtitles of a rendition`() throws {
            try expectSamePerformance(of: .transportStream) { url in
                let result = try Tool.run(
                    ["ffmpeg", "-nostdin", "-v", "error", "-strict", "experimental", "-i", url]
                        + ["-map", "0:s", "-f", "webvtt", "-"])
                #expect(result.status == 0, "\(result.stderr)")
                return Performance(
                    result.stdout.split(separator: "\n").filter { $0.hasPrefix("Line ") })
            }
        }
    }
}
