// Real players on live streams, all watching one stream: frames are decoded until it ends, and each
// segment is requested once from the origin.
import FixtureCDN
import Glibc
import ScenarioSupport
import Synchronization
import Testing

/// Beside few others: the clock of the stream must not get ahead of busy cores.
@Suite(.serialized, .timeLimit(.minutes(5)), .tags(.players), .grouped)
struct LivePlayers {}

/// A player that watches a live stream to its end.
private enum LivePlayer: String, CaseIterable, Sendable {
    case ffmpeg, mpv, cvlc
    case gstreamer = "gst-launch-1.0"
    case chromium
    /// In Chromium.
    case hlsjs = "hls.js"

    static var installed: [LivePlayer] {
        allCases.filter { Tool.exists($0 == .hlsjs ? "chromium" : $0.rawValue) }
    }

    /// Plays and returns the number of decoded frames.
    func watch(_ url: String, site: FixtureCDN) throws -> Int {
        switch self {
        case .ffmpeg:
            let arguments = ["-nostdin", "-loglevel", "error", "-i", url, "-map", "0:v"]
            return try lines(["ffmpeg"] + arguments + ["-f", "framemd5", "-"])
        case .mpv:
            let options = ["--no-config", "--no-terminal", "--no-audio", "--framedrop=no"]
            return try lines(["mpv"] + options + ["--of=framemd5", "--o=-", "--ovc=rawvideo", url])
        case .cvlc: return try vlc(url)
        case .gstreamer:
            let video =
                "video-sink=videoconvert ! video/x-raw,format=RGBA ! checksumsink sync=false"
            return try lines(
                ["gst-launch-1.0", "--quiet", "playbin3", "uri=\(url)", video]
                    + ["audio-sink=fakesink sync=false"])
        case .chromium: return try chromium(url, site)
        case .hlsjs:
            return try HLSPage(url, site).watch(frames: most, least: least)
        }
    }

    private func lines(_ command: [String]) throws -> Int {
        let result = try Tool.run(command, within: .seconds(45))
        #expect(result.status == 0, "\(self): \(result.stderr.suffix(400))")
        return result.stdout.split(separator: "\n").count { !$0.hasPrefix("#") }
    }

    /// VLC remultiplexes, and refuses to run as root.
    private func vlc(_ url: String) throws -> Int {
        let somebody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        let result = try Tool.run(
            (geteuid() == 0 ? somebody : []) + [
                "cvlc", "--quiet", "--play-and-exit", url, "--sout",
                "#std{access=file,mux=ts,dst=-}",
            ], within: .seconds(45))
        let folder = try TemporaryFolder()
        try writeFile(folder.file("played.ts"), result.output)
        let frames = try Tool.run(
            ["ffmpeg", "-nostdin", "-loglevel", "quiet", "-i", folder.file("played.ts")]
                + ["-map", "0:v", "-f", "framemd5", "-"])
        return frames.stdout.split(separator: "\n").count { !$0.hasPrefix("#") }
    }

    /// The page reports the number of shown frames repeatedly.
    private func chromium(_ url: String, _ site: FixtureCDN) throws -> Int {
        let profile = try TemporaryFolder()
        site.put(
            "/live.html",
            text: """
                <!doctype html><meta charset="utf-8"><title>Live</title><script>
                const video = document.createElement("video");
                const report = what => fetch("/frames?" + what + "="
                  + video.getVideoPlaybackQuality().totalVideoFrames);
                video.muted = true;
                video.crossOrigin = "anonymous";
                video.onended = () => report("ended");
                video.onerror = () => report("error");
                setInterval(() => report("shown"), 500);
                video.src = "\(url)";
                document.documentElement.append(video);
                video.play();
                </script>
                """)
        let browser = try ChildProcess([
            "chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
            "--autoplay-policy=no-user-gesture-required", "--user-data-dir=\(profile.path)",
            site.url("/live.html"),
        ])
        defer { browser.end() }
        _ = eventually(within: .seconds(40)) {
            isOver(Self.reports(site), least: least, most: most)
        }
        return Self.reports(site).map(\.frames).max() ?? 0
    }

    private static func reports(_ site: FixtureCDN) -> [(what: Substring, frames: Int)] {
        site.requests.filter { $0.path == "/frames" }.compactMap { request in
            let parts = request.target.dropFirst("/frames?".count).split(separator: "=")
            return parts.count == 2 ? (parts[0], Int(parts[1]) ?? 0) : nil
        }
    }
}

/// Two seconds at 24 frames a second.
private let framesASegment = 48
/// The frames that each player decodes at least, and those after which a browser is closed.
private let least = 2 * framesASegment
private let most = 3 * framesASegment

extension LivePlayers {
    /// Lets all players watch a stream that `advance` moves, from three segments to six.
    ///
    /// `isOnce` says whether each segment is requested once from the origin whoever plays it. If
    /// parts are ranges, hls.js requests each part of a segment under the segment's path.
    private func watchTogether(
        _ path: String, _ stage: Stage, isOnce: Bool = true, partsAreRanges: Bool = false,
        end: @Sendable () -> Bool
    ) throws {
        let site = FixtureCDN()
        try site.start()
        defer { site.stop() }
        stage.cdn.resetLog()
        let url = stage.through(stage.cdn.url(path))
        let watching = LivePlayer.installed.map { player in
            (player, Background { try player.watch(url, site: site) })
        }
        let hasEnded = eventually(within: .seconds(30)) { end() }
        #expect(hasEnded)
        for (player, frames) in watching {
            let count = try frames.value(within: .seconds(60))
            #expect(count >= least, "\(player): \(count) frames")
        }
        guard isOnce else { return }
        let segments = stage.cdn.requests.filter { $0.path.hasSuffix(".ts") }
        let asked = segments.map { $0.path + (partsAreRanges ? " " + ($0["Range"] ?? "") : "") }
        let repeated = Dictionary(grouping: asked, by: \.self).filter { $0.value.count > 1 }
        let facts = segments.map {
            "\($0.startedAt) \($0.path) \($0["Range"] ?? "whole"): \($0.status), "
                + "\($0.bodyBytes) bytes from \($0.bodyOffset), to \($0.isFinished)"
        }
        #expect(repeated.isEmpty, "asked more than once: \(repeated.keys.sorted()) of \(facts)")
    }

    @Test func `all players watch one live stream together`() throws {
        let stage = try Stage()
        let window = stage.cdn.live(
            "/live.m3u8",
            LiveWindow(
                vod: try Fixture.text("media/ts/160p/index.m3u8"), prefix: "/ts/160p/",
                windowSize: 3, drive: .clock))
        try watchTogether("/live.m3u8", stage) {
            guard window.mediaSequence >= 3 else { return false }
            window.end()
            return true
        }
    }

    @Test(arguments: [false, true])
    func `all players watch one low-latency stream together`(_ partsAreRanges: Bool) throws {
        let stage = try Stage()
        var settings = LowLatencyStream.Settings()
        settings.isClocked = true
        settings.firstParts = 12
        settings.partsAreRanges = partsAreRanges
        let made = stage.cdn.lowLatencyStream(of: "/ts/160p/index.m3u8", settings: settings)
        let stream = stage.cdn.lowLatency("/ll", try #require(made))
        try watchTogether("/ll/master.m3u8", stage, partsAreRanges: partsAreRanges) {
            guard stream.position.segment >= 6 else { return false }
            stream.end()
            return true
        }
    }

    /// What differs in each version of a stream's list.
    private static let rotations = [
        "rotate=query", "rotate=path", "edges", "edges&rotate=query", "edges&rotate=path",
    ]

    @Test(arguments: rotations)
    func `all players watch a stream whose tokens or servers change with each reload`(
        _ rotation: String
    ) throws {
        let stage = try Stage()
        let window = LiveWindow(
            vod: try Fixture.text("media/ts/160p/index.m3u8"), prefix: "/ts/160p/",
            windowSize: 3, drive: .clock)
        let edges = try Edges(rotation.hasPrefix("edges") ? 2 : 0, window, "/live.m3u8")
        edges.rotate(Behaviour(query: rotation), of: "/live.m3u8", on: stage.cdn)
        _ = stage.cdn.live("/live.m3u8", window)
        try watchTogether("/live.m3u8", stage, isOnce: false) {
            guard window.mediaSequence >= 3 else { return false }
            window.end()
            return true
        }
    }

    @Test(.enabled(if: Tool.exists("chromium"), "needs chromium"), arguments: [false, true])
    func `hls.js watches a low-latency stream whose tokens change with each reload`(
        _ partsAreRanges: Bool
    ) throws {
        let stage = try Stage()
        let site = FixtureCDN()
        try site.start()
        defer { site.stop() }
        var settings = LowLatencyStream.Settings()
        settings.isClocked = true
        // More than delta updates contain.
        settings.windowSize = 12
        settings.firstParts = 28
        settings.partsAreRanges = partsAreRanges
        let made = stage.cdn.lowLatencyStream(of: "/ts/160p/index.m3u8", settings: settings)
        let stream = stage.cdn.lowLatency("/ll", try #require(made))
        stage.cdn.setBehaviour("rotate=query", for: "/ll/video.m3u8")
        let page = try HLSPage(stage.through(stage.cdn.url("/ll/master.m3u8")), site)
        let frames = try page.watch(frames: 3 * framesASegment)
        #expect(frames >= 3 * framesASegment)
        let reloads = stage.cdn.requests.filter { $0.path == "/ll/video.m3u8" }
        #expect(reloads.count { $0.target.contains("_HLS_part=") } >= 4)
        #expect(reloads.contains { $0.target.contains("_HLS_skip=") })
        stream.end()
    }
}

/// Servers that have the same live list, used in turn.
private final class Edges {
    private let servers: [FixtureCDN]

    init(_ count: Int, _ window: LiveWindow, _ path: String) throws {
        servers = (0..<count).map { _ in FixtureCDN(folder: Fixture.path("media")) }
        for server in servers {
            try server.start()
            _ = server.live(path, window)
        }
    }

    deinit { servers.forEach { $0.stop() } }

    /// Lets each server answer in this way, and the origin redirect to them; without servers the
    /// origin answers itself.
    func rotate(_ behaviour: Behaviour, of path: String, on origin: FixtureCDN) {
        for server in servers { server.setBehaviour(behaviour, for: path) }
        let bases = servers.map(\.baseURL).joined(separator: ",")
        origin.setBehaviour(
            servers.isEmpty ? behaviour : Behaviour(query: "edges=\(bases)"), for: path)
    }
}
