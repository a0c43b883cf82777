import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// The files of `Fixtures/players`, as people copy them: players are given the origin's URL, and what
/// they play comes through the daemon all the same.
extension Players {
    @Suite struct Snippets {
        private static let stream = Stream.transportStream

        // MARK: mpv

        @Test(.enabled(if: Tool.exists("mpv") && Tool.exists("curl"), "needs mpv and curl"))
        func `mpv plays an origin's URL through the daemon with the script`() throws {
            let stage = try Stage()
            let url = stage.cdn.url(Self.stream.path)
            let direct = try Self.mpvFrames(url, [])
            #expect(direct.count > 20)
            let before = try stage.figure("requests_total")
            let through = try Self.mpvFrames(url, Self.script(stage.daemon.baseURL))
            #expect(through == direct)
            #expect(try stage.figure("playlists_rewritten_total") > 0)
            #expect(try stage.figure("requests_total") > before + 3)
        }

        @Test(.enabled(if: Tool.exists("mpv") && Tool.exists("curl"), "needs mpv and curl"))
        func `mpv plays without the daemon when it does not answer`() throws {
            let stage = try Stage()
            stage.daemon.kill(SIGKILL)
            _ = try stage.daemon.waitForExit()
            let url = stage.cdn.url(Self.stream.path)
            #expect(try Self.mpvFrames(url, Self.script(stage.daemon.baseURL)).count > 20)
        }

        @Test(.enabled(if: Tool.exists("mpv") && Tool.exists("curl"), "needs mpv and curl"))
        func `mpv gives the daemon its token and leaves other URLs alone`() throws {
            let stage = try Stage(["--token", "acc3ss-token"])
            let script =
                Self.script(stage.daemon.baseURL)
                + ["--script-opts-append=sluice-token=acc3ss-token"]
            #expect(!(try Self.mpvFrames(stage.cdn.url(Stream.plainFile.path), script)).isEmpty)
            #expect(stage.cdn.requestCount(Stream.plainFile.path) > 0)
            let url = stage.cdn.url(Self.stream.path)
            let first = try Self.mpvFrames(url, script)
            #expect(first.count > 20)
            // mpv reads the sound alone to its end; without the origin, lists end where the
            // pictures stored beside it end.
            try stage.keepWhole(stage.asArgument(Self.stream) + "&token=acc3ss-token")
            stage.cdn.stop()
            #expect(try Self.mpvFrames(url, script) == first)
        }

        private static func script(_ base: String) -> [String] {
            [
                "--script=\(Fixture.path("players/sluice.lua"))",
                "--script-opts-append=sluice-base=\(base)",
            ]
        }

        /// The hashes of the sound that mpv makes of a URL.
        private static func mpvFrames(_ url: String, _ arguments: [String]) throws -> [Substring] {
            let result = try Tool.run(
                [
                    "mpv", "--no-config", "--no-terminal", "--hls-bitrate=max", "--no-video",
                    "--oac=pcm_s16le", "--of=framemd5", "--o=-",
                ] + arguments + [url])
            #expect(result.status == 0, "mpv fails on \(url)")
            return result.stdout.split(separator: "\n").filter { !$0.hasPrefix("#") }
                .compactMap { $0.split(separator: ",").last }
        }

        // MARK: hls.js

        @Test(.enabled(if: Tool.exists("node"), "needs node"))
        func `hls-js asks the daemon for URLs of origins and for its own as they are`() throws {
            let program = """
                import { throughSluice } from "\(Fixture.path("players/hls-sluice.mjs"))";
                const options = throughSluice("http://127.0.0.1:9000/");
                for (const url of ["https://cdn.example.com/a.m3u8?x=1",
                        "http://127.0.0.1:9000/s/abc/a.ts", "blob:http://a/1"])
                    options.xhrSetup({ open: (...given) => console.log(given.join(" ")) }, url);
                """
            let result = try Tool.run(["node", "--input-type=module", "--eval", program])
            #expect(
                result.stdout == """
                    GET http://127.0.0.1:9000/https://cdn.example.com/a.m3u8?x=1 true
                    GET http://127.0.0.1:9000/s/abc/a.ts true
                    GET blob:http://a/1 true

                    """, "\(result.stderr)")
        }

        // MARK: Programs and lists

        @Test(.enabled(if: Tool.exists("ffmpeg"), "needs ffmpeg"))
        func `sluice-play runs ffmpeg with the daemon's URL`() throws {
            let stage = try Stage()
            let url = stage.cdn.url(Self.stream.path)
            let command = ["ffmpeg", "-v", "error", "-i", url, "-f", "framemd5", "-"]
            let direct = try Tool.run(command).stdout
            let through = try Tool.run(try Self.play(stage) + command)
            #expect(through.stdout == direct && !direct.isEmpty, "\(through.stderr)")
            #expect(try stage.figure("playlists_rewritten_total") > 0)
        }

        @Test func `sluice-play changes the URLs of playlists only, and keeps all else`() throws {
            let stage = try Stage()
            let result = try Tool.run(
                try Self.play(stage) + [
                    "printf", "<%s>", "a b", "", "uri=https://h/a.m3u8",
                    "https://h/a.m3u8?x=1&y=$z",
                    "https://h/a.mp4", stage.through("https://h/a.m3u8"),
                ])
            let base = stage.daemon.baseURL
            #expect(
                result.stdout == "<a b><><uri=\(base)/https://h/a.m3u8>"
                    + "<\(base)/https://h/a.m3u8?x=1&y=$z><https://h/a.mp4>"
                    + "<\(base)/https://h/a.m3u8>")
        }

        @Test func `sluice-channels rewrites a list of channels`() throws {
            let stage = try Stage()
            let folder = try TemporaryFolder()
            let list = """
                #EXTM3U\r
                #EXTINF:-1 tvg-id="one",One\r
                http://tv.example.com/one.m3u8?u=1&p=2\r
                #EXTINF:-1,Two
                udp://@239.0.0.1:1234
                http://tv.example.com/a b|Referer=https://r/
                last
                """
            try writeFile(folder.file("channels.m3u"), Array(list.utf8))
            let script = "\"$0\" <\"$1\""
            let result = try Tool.run(
                Self.environment(stage) + [
                    "sh", "-c", script, Fixture.path("players/sluice-channels"),
                    folder.file("channels.m3u"),
                ])
            let base = stage.daemon.baseURL
            #expect(
                result.stdout == """
                    #EXTM3U
                    #EXTINF:-1 tvg-id="one",One
                    \(base)/http://tv.example.com/one.m3u8?u=1&p=2
                    #EXTINF:-1,Two
                    udp://@239.0.0.1:1234
                    \(base)/proxy?url=http%3A%2F%2Ftv.example.com%2Fa%2520b&h_Referer=https%3A%2F%2Fr%2F
                    last

                    """, "\(result.stderr)")
        }

        private static func environment(_ stage: Stage) throws -> [String] {
            [
                "env", "SLUICE=\(try DaemonProcess.builtBinary())",
                "SLUICE_DAEMON=\(stage.daemon.baseURL)",
            ]
        }

        private static func play(_ stage: Stage) throws -> [String] {
            try environment(stage) + [Fixture.path("players/sluice-play")]
        }
    }
}
