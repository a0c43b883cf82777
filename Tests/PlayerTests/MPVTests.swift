/// mpv, which encodes to a list of frame hashes instead of a window.
import FixtureCDN
import ScenarioSupport
import Testing

extension Players {
    @Suite(.enabled(if: Tool.exists("mpv"), "needs mpv"))
    struct MPV {
        @Test(arguments: Stream.allCases)
        func `mpv plays to the end, also with the origin gone`(stream: Stream) throws {
            try expectSamePerformance(of: stream) { url in
                let result = try Tool.run(
                    [
                        "mpv", "--no-config", "--no-terminal", "--framedrop=no",
                        "--hls-bitrate=max", "--of=framemd5", "--ovc=rawvideo", "--oac=pcm_s16le",
                        "--o=-", url,
                    ])
                #expect(result.status == 0, "mpv fails on \(url)")
                let frames = Self.frames(result.stdout)
                #expect(frames.count { $0.hasPrefix("0 ") } >= stream.videoFrames)
                return Performance(frames)
            }
        }

        /// Track and hash of every frame, tracks apart.
        ///
        /// How mpv interleaves them, and with which time base it stamps them, depends on which of
        /// its threads comes first.
        private static func frames(_ list: String) -> [Substring] {
            let frames = list.split(separator: "\n").filter { !$0.hasPrefix("#") }
                .map { $0.split(separator: ",") }
            let tracks = Set(frames.compactMap(\.first)).sorted()
            return tracks.flatMap { track in
                frames.filter { $0.first == track }.map { "\(track)\($0.last ?? "")" }
            }
        }
    }
}
