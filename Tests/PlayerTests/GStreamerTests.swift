/// GStreamer with both of its HLS demuxers, which hashes every decoded buffer.
import FixtureCDN
import ScenarioSupport
import Testing

extension Players {
    @Suite(.enabled(if: isInstalled, "needs gstreamer1.0-tools and its plugins"))
    struct GStreamer {
        /// The old demuxer comes with `playbin`, the new one, hlsdemux2, with `playbin3`.
        @Test(arguments: Stream.allCases, ["playbin", "playbin3"])
        func `GStreamer plays to the end, also with the origin gone`(
            stream: Stream, element: String
        ) throws {
            try expectSamePerformance(of: stream) { url in
                let result = try Tool.run(
                    [
                        "gst-launch-1.0", "--quiet", element, "uri=\(url)",
                        // Pins the variant.
                        "connection-speed=10000",
                        // RGBA: planar formats have padding, whose bytes nobody sets.
                        "video-sink=videoconvert ! video/x-raw,format=RGBA"
                            + " ! checksumsink hash=md5 sync=false",
                        "audio-sink=checksumsink hash=md5 sync=false",
                    ])
                #expect(result.status == 0 && result.errors.isEmpty, "\(result.stderr)")
                // The lines of the two sinks mix as they come.
                let lines = result.stdout.split(separator: "\n").sorted()
                #expect(lines.count > stream.videoFrames)
                return Performance(lines)
            }
        }
    }
}

/// Whether the launcher and elements of the base, good, bad and libav plugins are there.
private let isInstalled = ["playbin3", "hlsdemux2", "checksumsink", "avdec_h264"].allSatisfy {
    (try? Tool.run(["gst-inspect-1.0", "--exists", $0]))?.status == 0
}
