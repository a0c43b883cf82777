import FixtureCDN
import ScenarioSupport
import Testing

/// GStreamer with both of its HLS demuxers, which hashes every decoded buffer.
extension Players {
    @Suite(.enabled(if: hasGStreamer, "needs gstreamer1.0-tools and its plugins"))
    struct GStreamer {
        /// The new demuxer, hlsdemux2, comes with `playbin3` and plays every stream; the old one,
        /// with `playbin`, the two most common kinds: on a busy machine it once hung permanently,
        /// on the encrypted stream directly from the origin, in some 140 plays.
        static let performances =
            Stream.allCases.map { ($0, "playbin3") }
            + [Stream.transportStream, .fragmentedMP4].map { ($0, "playbin") }

        @Test(arguments: performances)
        func `GStreamer plays to the end, also without the origin`(
            stream: Stream, element: String
        ) throws {
            try expectSamePerformance(of: stream) { url in
                let result = try Tool.run(
                    [
                        "gst-launch-1.0", "--quiet", element, "uri=\(url)",
                        // Pins the variant.
                        "connection-speed=10000",
                        // RGBA: planar formats have padding, whose bytes are undefined.
                        "video-sink=videoconvert ! video/x-raw,format=RGBA"
                            + " ! checksumsink hash=md5 sync=false",
                        "audio-sink=checksumsink hash=md5 sync=false",
                    ])
                #expect(result.status == 0 && result.errors.isEmpty, "\(result.stderr)")
                // The lines of the two sinks are interleaved.
                let lines = result.stdout.split(separator: "\n").sorted()
                #expect(lines.count > stream.videoFrames)
                return Performance(lines)
            }
        }
    }
}

/// Whether the launcher and elements of the base, good, bad and libav plugins are there.
let hasGStreamer = ["playbin3", "hlsdemux2", "checksumsink", "avdec_h264"].allSatisfy {
    (try? Tool.run(["gst-inspect-1.0", "--exists", $0]))?.status == 0
}
