// Real players on a live stream that is one endless body: they come while it is on the air.
import FixtureCDN
import ScenarioSupport
import Testing

/// A player that comes late, watches for some seconds, and leaves.
private enum LateViewer: String, CaseIterable, Sendable {
    case ffmpeg, mpv, cvlc
    /// Over HTTP/2.
    case curl

    static var installed: [LateViewer] { allCases.filter { Tool.exists($0.rawValue) } }

    /// Plays and returns the number of decoded frames.
    func watch(_ url: String) throws -> Int {
        switch self {
        case .ffmpeg:
            let result = try Tool.run([
                "ffmpeg", "-nostdin", "-loglevel", "error", "-i", url, "-t", "3", "-map", "0:v",
                "-f", "framemd5", "-",
            ])
            #expect(result.status == 0, "\(result.stderr.suffix(400))")
            // What a decoder says that lacks parameters or a key frame. Time stamps may jump: the
            // channel repeats 12 seconds.
            for words in ["non-existing PPS", "no frame", "decode", "Invalid data"] {
                #expect(!result.stderr.contains(words), "\(result.stderr.suffix(400))")
            }
            return frames(result.stdout)
        case .mpv:
            let result = try Tool.run([
                "mpv", "--no-config", "--no-terminal", "--no-audio", "--framedrop=no",
                "--length=3", "--of=framemd5", "--o=-", "--ovc=rawvideo", url,
            ])
            #expect(result.status == 0, "\(result.stderr.suffix(400))")
            return frames(result.stdout)
        case .cvlc:
            let result = try Tool.run(
                Players.VLC.asSomebody + [
                    "cvlc", "--quiet", "--play-and-exit", "--run-time=5", url, "--sout",
                    "#std{access=file,mux=ts,dst=-}",
                ])
            return try frames(ofMedia: result.output)
        case .curl:
            let folder = try TemporaryFolder()
            // Ends it in the middle: 28 is curl's word for its time being over.
            let result = try Tool.run([
                "curl", "--silent", "--http2-prior-knowledge", "--max-time", "4", "--output",
                folder.file("joined.ts"), "--dump-header", "-", url,
            ])
            #expect(result.status == 28 && result.stdout.hasPrefix("HTTP/2 200"))
            #expect(result.stdout.contains("detail=joined-live"))
            return try frames(ofMedia: readFile(folder.file("joined.ts")))
        }
    }

    private func frames(_ hashes: String) -> Int {
        hashes.split(separator: "\n").count { !$0.hasPrefix("#") }
    }

    private func frames(ofMedia bytes: [UInt8]) throws -> Int {
        let folder = try TemporaryFolder()
        try writeFile(folder.file("played.ts"), bytes)
        return frames(
            try Tool.run([
                "ffmpeg", "-nostdin", "-loglevel", "quiet", "-i", folder.file("played.ts"), "-map",
                "0:v", "-f", "framemd5", "-",
            ]).stdout)
    }
}

extension LivePlayers {
    @Test(.enabled(if: Tool.exists("ffmpeg"), "needs ffmpeg"))
    func `players that come late join one endless body, over one connection to the origin`() throws
    {
        let stage = try Stage()
        let media = try (0..<6).flatMap {
            try readFile(Fixture.path("media/ts/160p/seg00\($0).ts"))
        }
        let second = media.count / 12
        let channel = stage.cdn.endless(
            "/live/7",
            EndlessStream(media, settings: EndlessStream.Settings(rate: second, burst: second)))
        let url = stage.through(stage.cdn.url("/live/7"))
        let first = try ScriptedPlayer(stage.daemon.baseURL).open(url)
        _ = try first.readHead()
        // Until then it may be a file, and players begin at its first byte.
        #expect(try eventually { try stage.figure("live_streams_total") == 1 })
        let watching = LateViewer.installed.map { viewer in
            (viewer, Background { try viewer.watch(url) })
        }
        for (viewer, frames) in watching {
            let count = try frames.value(within: .seconds(60))
            #expect(count >= 2 * 24, "\(viewer): \(count) frames")
        }
        #expect(try stage.figure("live_streams_joined_total") >= watching.count)
        #expect(stage.cdn.requests.count { $0.path == "/live/7" } == 1)
        first.abort()
        #expect(eventually { channel.openConnections == 0 })
    }
}
