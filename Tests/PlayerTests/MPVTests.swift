import FixtureCDN
import ScenarioSupport
import Testing

/// mpv, which encodes to a list of frame hashes instead of a window.
extension Players {
    @Suite(.enabled(if: Tool.exists("mpv"), "needs mpv"))
    struct MPV {
        @Test(arguments: Stream.allCases)
        func `mpv plays to the end, also without the origin`(stream: Stream) throws {
            try expectSamePerformance(of: stream) { url in
                // Separately, because mpv that encodes both on a busy machine occasionally ends the
                // video with the first second: in 2 of 137 plays directly from the origin.
                var pictures: [Substring] = []
                if stream.videoFrames > 0 {
                    pictures = try Self.frames(of: url, "--no-audio", "--ovc=rawvideo")
                }
                #expect(pictures.count >= stream.videoFrames)
                let sound = try Self.frames(of: url, "--no-video", "--oac=pcm_s16le")
                #expect(!sound.isEmpty)
                return Performance(pictures + sound)
            }
        }

        /// The hash of every frame that mpv decodes of one track of a stream.
        private static func frames(of url: String, _ choice: String...) throws -> [Substring] {
            let result = try Tool.run(
                [
                    "mpv", "--no-config", "--no-terminal", "--framedrop=no", "--hls-bitrate=max",
                    "--of=framemd5", "--o=-",
                ] + choice + [url])
            #expect(result.status == 0, "mpv fails on \(url)")
            // Their time base depends on which of mpv's threads is first.
            return result.stdout.split(separator: "\n").filter { !$0.hasPrefix("#") }
                .compactMap { $0.split(separator: ",").last }
        }
    }
}
