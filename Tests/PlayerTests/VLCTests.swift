import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// VLC, which remultiplexes what it plays; its output is decoded and compared.
extension Players {
    @Suite(.enabled(if: Tool.exists("cvlc") && Tool.exists("ffmpeg"), "needs vlc-bin and ffmpeg"))
    struct VLC {
        @Test(arguments: Stream.allCases)
        func `VLC plays to the end, also without the origin`(stream: Stream) throws {
            let folder = try TemporaryFolder()
            try expectSamePerformance(of: stream) { url in
                let result = try Tool.run(
                    Self.asSomebody + [
                        "cvlc", "--quiet", "--play-and-exit", "--adaptive-logic=highest", url,
                        "--sout", "#std{access=file,mux=ts,dst=-}",
                    ])
                #expect(result.status == 0, "\(result.stderr)")
                try writeFile(folder.file("played.ts"), result.output)
                // Its multiplexer cuts the first and last access units, directly from the origin
                // too.
                let frames = try Tool.framemd5(folder.file("played.ts")) ?? ""
                let lines = frames.split(separator: "\n")
                #expect(lines.count > stream.videoFrames)
                return Performance(lines)
            }
        }

        /// VLC refuses to run as root.
        static var asSomebody: [String] {
            guard geteuid() == 0 else { return [] }
            return ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        }
    }
}
