import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// Players and partly stored titles, with the origin gone: each plays over the hole to the end, in
/// bounded time, and requests nothing that is missing.
extension Players {
    @Suite(.enabled(if: Tool.exists("ffmpeg"), "needs ffmpeg"))
    struct Offline {
        @Test(arguments: Remains.allCases, OfflinePlayer.allCases)
        fileprivate func `a title with a hole plays to its end`(
            remains: Remains, player: OfflinePlayer
        ) throws {
            guard player.isInstalled else { return }
            let stage = try remains.stage()
            let before = try stage.figure("origin_errors_total")
            let frames = try player.frames(of: stage.through(remains.stream))
            let least = player.losesSome ? remains.frames * 9 / 10 : remains.frames
            #expect((least...remains.frames).contains(frames), "\(frames) frames")
            #expect(try stage.figure("origin_errors_total") == before)
        }

        @Test(arguments: [OfflinePlayer.ffmpeg, .mpv])
        fileprivate func `the first play after an outage is like every later one`(
            player: OfflinePlayer
        ) throws {
            guard player.isInstalled else { return }
            let stage = try Remains.twoHalves.stage(isNoticed: false)
            for _ in 0..<2 {
                let frames = try player.frames(of: stage.through(Remains.twoHalves.stream))
                #expect(frames == Remains.twoHalves.frames)
            }
        }
    }
}

/// What was played of a stream before its origin was gone.
private enum Remains: String, CaseIterable, Sendable, CustomTestStringConvertible {
    /// Video without its middle, complete audio.
    case holeInPictures = "a transport stream without its middle"
    /// One rendition up to the middle, another one from there on.
    case twoHalves = "a transport stream in two halves"
    /// One segment of fragmented MP4 is missing.
    case holeInFragments = "fragmented MP4 without a segment"

    var testDescription: String { rawValue }
    var stream: Stream { self == .holeInFragments ? .fragmentedMP4 : .transportStream }

    /// Frames that remain to be played: 48 per segment.
    var frames: Int {
        switch self {
        case .holeInPictures: 192
        case .twoHalves: 288
        case .holeInFragments: 144
        }
    }

    /// The stored segments of each list.
    private var kept: [(list: String, numbers: [Int])] {
        switch self {
        case .holeInPictures: [("/ts/240p", [0, 1, 4, 5]), ("/ts/sound", Array(0..<6))]
        case .twoHalves:
            [("/ts/240p", [0, 1]), ("/ts/360p", [2, 3, 4, 5]), ("/ts/sound", Array(0..<6))]
        case .holeInFragments: [("/fmp4/240p", [0, 1, 3, 4, 5])]
        }
    }

    /// A daemon that has stored this of the stream, while its origin is gone; it has noticed that
    /// if `isNoticed`.
    func stage(isNoticed: Bool = true) throws -> Stage {
        let stage = try Stage(["--look-ahead", "off"])
        let player = ScriptedPlayer(stage.daemon.baseURL)
        _ = try player.get(stage.through(stream))
        for (folder, numbers) in kept {
            let text = try player.get(stage.through(stage.cdn.url(folder + "/index.m3u8"))).text
            let lines = text.split(separator: "\n")
            let map = lines.compactMap { $0.split(separator: "URI=\"").dropFirst().first }
            let media = lines.filter { !$0.hasPrefix("#") }
            for link in map.map({ $0.prefix { $0 != "\"" } }) + numbers.map({ media[$0] }) {
                #expect(try player.get(String(link)).status == 200)
            }
        }
        stage.cdn.stop()
        guard isNoticed else { return stage }
        // A request for a missing segment shows the daemon that the origin does not answer.
        #expect(try player.get(stage.through(stage.cdn.url("/missing.ts"))).status == 502)
        return stage
    }
}

/// The players, each with its way to count the frames that it plays.
private enum OfflinePlayer: String, CaseIterable, Sendable, CustomTestStringConvertible {
    case ffmpeg, mpv, vlc, playbin3, playbin, chromium

    var testDescription: String { rawValue }
    /// VLC's multiplexer cuts access units at every change, directly from the origin too.
    var losesSome: Bool { self == .vlc }

    var isInstalled: Bool {
        switch self {
        case .ffmpeg, .mpv, .chromium: Tool.exists(rawValue)
        case .vlc: Tool.exists("cvlc")
        case .playbin3, .playbin: hasGStreamer
        }
    }

    /// Plays a URL to its end; throws if that takes longer than half a minute.
    func frames(of url: String) throws -> Int {
        switch self {
        case .ffmpeg:
            return try lines(["ffmpeg", "-nostdin", "-v", "error", "-i", url] + Self.pictures)
        case .mpv:
            return try lines([
                "mpv", "--no-config", "--no-terminal", "--framedrop=no", "--hls-bitrate=max",
                "--no-audio", "--vf=scale=284:160", "--ovc=rawvideo", "--of=framemd5", "--o=-", url,
            ])
        case .playbin, .playbin3:
            return try lines([
                "gst-launch-1.0", "--quiet", rawValue, "uri=\(url)", "connection-speed=10000",
                "video-sink=videoconvert ! video/x-raw,format=RGBA"
                    + " ! checksumsink hash=md5 sync=false",
                "audio-sink=fakesink sync=false",
            ])
        case .vlc: return try remultiplexed(url)
        case .chromium: return try shown(url)
        }
    }

    private static let pictures = ["-map", "0:v:0", "-f", "framemd5", "-"]

    private func lines(_ command: [String]) throws -> Int {
        let result = try Tool.run(command, within: .seconds(30))
        #expect(result.status == 0, "\(result.stderr)")
        return result.stdout.split(separator: "\n").count { !$0.hasPrefix("#") }
    }

    private func remultiplexed(_ url: String) throws -> Int {
        let folder = try TemporaryFolder()
        let asSomebody =
            geteuid() == 0
            ? ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] : []
        let result = try Tool.run(
            asSomebody + [
                "cvlc", "--quiet", "--play-and-exit", "--adaptive-logic=highest", url, "--sout",
                "#std{access=file,mux=ts,dst=-}",
            ], within: .seconds(30))
        try writeFile(folder.file("played.ts"), result.output)
        return try lines(
            ["ffmpeg", "-nostdin", "-v", "error", "-i", folder.file("played.ts")] + Self.pictures)
    }

    /// Shows the stream on a page that tells its server when it has ended, and with how many frames.
    private func shown(_ url: String) throws -> Int {
        let site = FixtureCDN()
        try site.start()
        defer { site.stop() }
        let profile = try TemporaryFolder()
        site.put(
            "/player.html",
            text: """
                <!doctype html><meta charset="utf-8"><title>Player</title><video id="v"></video><script>
                const video = document.getElementById("v");
                const report = what => fetch("/report?" + what);
                video.muted = true;
                video.crossOrigin = "anonymous";
                video.onended = () => report(video.getVideoPlaybackQuality().totalVideoFrames);
                video.onerror = () => report("error: " + video.error.message);
                video.src = "\(url)";
                video.defaultPlaybackRate = video.playbackRate = 4;
                video.play();
                </script>
                """)
        let browser = try ChildProcess([
            "chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
            "--autoplay-policy=no-user-gesture-required", "--user-data-dir=\(profile.path)",
            site.url("/player.html"),
        ])
        defer { browser.end() }
        var said: String?
        _ = eventually(within: .seconds(30)) {
            said = site.requests.first { $0.path == "/report" }?.target
            return said != nil
        }
        let text = try #require(said, "it never ended").dropFirst("/report?".count)
        return try #require(Int(text), "\(text)")
    }
}
