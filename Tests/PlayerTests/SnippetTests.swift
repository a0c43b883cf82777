import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// The files of `Fixtures/players`, used as people copy them: players get the origin's URL, and
/// play through the daemon.
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
        func `mpv sends the token to the daemon and leaves other URLs unchanged`() throws {
            let stage = try Stage(["--token", "acc3ss-token"])
            let script =
                Self.script(stage.daemon.baseURL)
                + ["--script-opts-append=sluice-token=acc3ss-token"]
            #expect(!(try Self.mpvFrames(stage.cdn.url(Stream.plainFile.path), script)).isEmpty)
            #expect(stage.cdn.requestCount(Stream.plainFile.path) > 0)
            let url = stage.cdn.url(Self.stream.path)
            let first = try Self.mpvFrames(url, script)
            #expect(first.count > 20)
            // mpv reads the audio alone to its end; without the origin, lists end where the video
            // stored beside it ends.
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

        /// The hashes of the audio that mpv decodes of a URL.
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

        // MARK: VLC

        @Test(.enabled(if: Tool.exists("cvlc"), "needs vlc-bin"))
        func `VLC plays an origin's URL through the daemon with the script`() throws {
            let stage = try Stage()
            let folder = try TemporaryFolder()
            chmod(folder.path, 0o755)
            for name in ["vlc", "vlc/lua", "vlc/lua/playlist"] { _ = folder.makeFolder(name) }
            let script = folder.file("vlc/lua/playlist/sluice.lua")
            try writeFile(script, try readFile(Fixture.path("players/vlc-sluice.lua")))
            chmod(script, 0o644)
            let result = try Tool.run(
                VLC.asSomebody + [
                    "env", "XDG_DATA_HOME=\(folder.path)", "SLUICE_DAEMON=\(stage.daemon.baseURL)",
                    "cvlc", "--quiet", "--play-and-exit", stage.cdn.url(Self.stream.path),
                    "--sout", "#std{access=file,mux=ts,dst=-}",
                ])
            #expect(result.status == 0 && result.output.count > 100_000, "\(result.stderr)")
            #expect(try stage.figure("playlists_rewritten_total") > 0)
        }

        // MARK: hls.js

        @Test(.enabled(if: Tool.exists("node"), "needs node"))
        func `hls.js requests origins' URLs through the daemon, and the daemon's own as they are`()
            throws
        {
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

        @Test func `sluice-play changes the URLs of playlists only`() throws {
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
            let list = """
                #EXTM3U\r
                #EXTINF:-1 tvg-id="one",One\r
                http://tv.example.com/one.m3u8?u=1&p=2\r
                #EXTINF:-1,Two
                udp://@239.0.0.1:1234
                http://tv.example.com/a b|Referer=https://r/
                \u{20} HTTP://tv.example.com/three.m3u8\u{20}
                last
                """
            let rewritten = try Self.throughDaemon(list, stage)
            let base = stage.daemon.baseURL
            #expect(
                rewritten == """
                    #EXTM3U
                    #EXTINF:-1 tvg-id="one",One
                    \(base)/http://tv.example.com/one.m3u8?u=1&p=2
                    #EXTINF:-1,Two
                    udp://@239.0.0.1:1234
                    \(base)/proxy?url=http%3A%2F%2Ftv.example.com%2Fa%2520b&h_Referer=https%3A%2F%2Fr%2F
                    \(base)/http://tv.example.com/three.m3u8
                    last

                    """)
        }

        @Test(.enabled(if: Tool.exists("ffmpeg"), "needs ffmpeg"))
        func `each channel of a rewritten list plays through the daemon`() throws {
            let stage = try Stage()
            let streams = [Stream.transportStream, .fragmentedMP4]
            let rewritten = try Self.throughDaemon(Self.channels(streams, stage), stage)
            let channels = rewritten.split(separator: "\n").filter { !$0.hasPrefix("#") }
            #expect(channels.count == 2, "\(rewritten)")
            for (channel, stream) in zip(channels, streams) {
                #expect(channel.hasPrefix(stage.daemon.baseURL))
                let through = try Self.ffmpegFrames(String(channel))
                #expect(try through == Self.ffmpegFrames(stage.cdn.url(stream.path)))
            }
            #expect(try stage.figure("playlists_rewritten_total") > 2)
        }

        @Test(
            .enabled(if: Tool.exists("cvlc"), "needs vlc-bin"), arguments: [false, true])
        func `VLC plays a list of channels one after another`(daemonReadsList: Bool) throws {
            let stage = try Stage()
            let streams = [Stream.transportStream, .fragmentedMP4]
            let list = Self.channels(streams, stage)
            let folder = try TemporaryFolder()
            chmod(folder.path, 0o755)
            var place = folder.file("channels.m3u")
            if daemonReadsList {
                stage.cdn.put("/channels.m3u", text: list, contentType: "audio/x-mpegurl")
                place = stage.through(stage.cdn.url("/channels.m3u"))
            } else {
                try writeFile(place, Self.throughDaemon(list, stage).utf8)
                chmod(place, 0o644)
            }
            let result = try Tool.run(
                VLC.asSomebody + [
                    "cvlc", "--quiet", "--play-and-exit", place,
                    "--sout", "#std{access=file,mux=ts,dst=-}",
                ])
            #expect(result.status == 0 && result.output.count > 200_000, "\(result.stderr)")
            for stream in streams {
                let folder = stream.path.prefix { $0 != "." }.dropLast("master".count)
                let last = stage.cdn.requests.filter {
                    $0.path.hasPrefix(folder) && $0.path.contains("seg005.")
                }
                #expect(!last.isEmpty, "\(stream)")
            }
            // VLC requested nothing of the origin itself.
            let asked = try stage.figure("origin_requests_total")
            let probes = try stage.figure("origin_probes_total")
            #expect(asked + probes >= stage.cdn.requestCount())
        }

        /// A list of channels as providers write it.
        private static func channels(_ streams: [Stream], _ stage: Stage) -> String {
            let entries = streams.enumerated().map { index, stream in
                "#EXTINF:-1 tvg-id=\"\(index)\",Channel \(index)\n\(stage.cdn.url(stream.path))\n"
            }
            return "#EXTM3U\n" + entries.joined()
        }

        /// What `sluice-channels` makes of a list.
        private static func throughDaemon(_ list: String, _ stage: Stage) throws -> String {
            let folder = try TemporaryFolder()
            try writeFile(folder.file("channels.m3u"), list.utf8)
            let result = try Tool.run(
                environment(stage) + [
                    "sh", "-c", "\"$0\" <\"$1\"", Fixture.path("players/sluice-channels"),
                    folder.file("channels.m3u"),
                ])
            #expect(result.status == 0, "\(result.stderr)")
            return result.stdout
        }

        // MARK: Kodi

        /// `KodiFiles` plays it.
        @Test(.enabled(if: Tool.exists("ffmpeg"), "needs ffmpeg"))
        func `Kodi's file names its add-on and the type that the daemon sends, and its URL plays`()
            throws
        {
            let stage = try Stage()
            let file = try readFile(Fixture.path("players/kodi.strm"))
            let text = String(decoding: file, as: UTF8.self)
            let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
            // Properties come before the URL, and the URL is the last line.
            let properties = lines.prefix { $0.hasPrefix("#KODIPROP:") }
                .map { $0.dropFirst("#KODIPROP:".count).split(separator: "=", maxSplits: 1) }
            #expect(lines.count == properties.count + 2 && lines.last == "")
            #expect(properties.contains(["inputstream", "inputstream.adaptive"]))
            let entry = try #require(lines.dropLast().last)
            let prefix = "http://127.0.0.1:9000/https://cdn.example.com/vod/master.m3u8"
            #expect(entry == prefix)
            let url = stage.through(stage.cdn.url(Self.stream.path))
            let type = try ScriptedPlayer(stage.daemon.baseURL).get(url)["Content-Type"] ?? ""
            #expect(properties.contains(["mimetype", Substring(type)]), "\(type)")
            #expect(!(try Self.ffmpegFrames(url)).isEmpty)
        }

        private static func ffmpegFrames(_ url: String) throws -> String {
            let result = try Tool.run(["ffmpeg", "-v", "error", "-i", url, "-f", "framemd5", "-"])
            #expect(result.status == 0, "\(result.stderr)")
            return result.stdout
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
