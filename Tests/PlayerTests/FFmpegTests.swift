import FixtureCDN
import ScenarioSupport
import Testing

/// ffmpeg and ffprobe get through the daemon exactly what they get directly.
extension Players {
    @Suite(.enabled(if: Tool.exists("ffmpeg") && Tool.exists("ffprobe"), "needs ffmpeg"))
    struct FFmpeg {
        @Test(arguments: Stream.allCases)
        func `ffmpeg decodes every frame of every variant, also without the origin`(
            stream: Stream
        ) throws {
            try expectSamePerformance(of: stream) { url in
                let frames = try #require(try Tool.framemd5(url), "ffmpeg fails on \(url)")
                return Performance(frames.split(separator: "\n"))
            }
        }

        @Test(arguments: Stream.allCases)
        func `ffmpeg decodes the same frames through two daemons in a row`(stream: Stream) throws {
            let folder = try TemporaryFolder()
            let parent = try DaemonProcess([
                "serve", "--port", "0", "--allow-private", "--cache-dir",
                folder.makeFolder("cache"),
            ])
            defer { _ = try? parent.terminate() }
            let stage = try Stage(["--parent", parent.baseURL])
            let direct = try #require(try Tool.framemd5(stage.cdn.url(stream.path)))
            #expect(try Tool.framemd5(stage.through(stream)) == direct)
            #expect(try stage.figure("parent_requests_total") > 0)
            #expect(try stage.figure("parent_failures_total") == 0)
        }

        /// Not for fragmented MP4, where the demuxer of ffmpeg 5.1 finds nothing after a seek.
        @Test(arguments: [
            Stream.transportStream, .rotatedKey, .packedAudio, .plainFile,
        ])
        func `ffmpeg seeks into the middle, also without the origin`(stream: Stream) throws {
            try expectSamePerformance(of: stream) { url in
                let frames = try #require(try Tool.framemd5(url, ["-ss", "5"]))
                return Performance(frames.split(separator: "\n"))
            }
        }

        /// Directly, ffmpeg loses the rest of such a segment and exits without an error.
        @Test func `ffmpeg loses no frame when the origin cuts a response`() throws {
            let stage = try Stage()
            let direct = try Tool.framemd5(stage.cdn.url(Stream.transportStream.path))
            stage.cdn.setBehaviour("fails=1&reset=20000", for: "/ts/160p/seg001.ts")
            stage.cdn.setBehaviour("fails=1&trunc=20000", for: "/ts/240p/seg002.ts")
            stage.cdn.setBehaviour("fails=1&status=503", for: "/ts/360p/seg003.ts")
            stage.cdn.setBehaviour("fails=1&status=500", for: "/ts/sound/seg004.ts")
            let isSame = try Tool.framemd5(stage.through(.transportStream)) == direct
            #expect(direct != nil && isSame)
        }

        @Test(arguments: Stream.allCases)
        func `ffprobe describes every stream and programme as it does directly`(stream: Stream)
            throws
        {
            try expectSamePerformance(of: stream, keepsWhole: true) { url in
                let result = try Tool.run(
                    ["ffprobe", "-v", "error", "-show_streams", "-show_programs", "-of", "compact"]
                        + ["-i", url])
                #expect(result.status == 0 && result.errors.isEmpty, "\(result.stderr)")
                return Performance(result.stdout.split(separator: "\n"))
            }
        }

        /// ffmpeg does not support EXT-X-DEFINE and requests names with braces.
        @Test func `ffmpeg plays a list with variables like one without`() throws {
            let stage = try Stage()
            let plain = try #require(try Tool.framemd5(stage.cdn.url(Stream.manyTags.path)))
            #expect(try Tool.framemd5(stage.cdn.url("/tags/variables.m3u8")) != plain)
            let url = stage.through(stage.cdn.url("/tags/variables.m3u8"))
            #expect(try Tool.framemd5(url) == plain)
            stage.cdn.stop()
            #expect(try Tool.framemd5(url) == plain)
        }

        @Test func `ffmpeg reads the subtitles of a rendition`() throws {
            try expectSamePerformance(of: .transportStream, keepsWhole: true) { url in
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
