import FixtureCDN
import ScenarioSupport
import Testing

/// Real players with longer windows and recordings of live streams.
extension Players {
    @Suite(.enabled(if: Tool.exists("ffmpeg"), "needs ffmpeg"))
    struct TimeShiftPlayers {}
}

/// The segments of a bundled stream as a live one, with windows shorter than a player needs.
private struct LiveStage {
    let stage: Stage
    let window: LiveWindow
    let kind: Kind

    enum Kind: String, CaseIterable, Sendable {
        case transportStream = "ts"
        case fragmentedMP4 = "fmp4"
    }

    init(_ kind: Kind, windowSize: Int) throws {
        stage = try Stage()
        self.kind = kind
        let folder = "/\(kind.rawValue)/160p/"
        window = stage.cdn.live(
            "/live.m3u8",
            LiveWindow(
                vod: try Fixture.text("media\(folder)index.m3u8"), prefix: folder,
                windowSize: windowSize))
    }

    /// The player's URL: an entry with a window of a minute.
    var shifted: String { "\(stage.daemon.baseURL)/dvr=1m/\(stage.cdn.url("/live.m3u8"))" }

    /// The frames of the stream when its film is played directly.
    func direct() throws -> String? {
        try Tool.framemd5(stage.cdn.url("/\(kind.rawValue)/160p/index.m3u8"))
    }

    /// Loads the list until it has this many segments.
    func list(_ count: Int) throws -> Bool {
        try eventually {
            let list = try ScriptedPlayer(stage.daemon.baseURL).get(shifted).text
            return list.split(separator: "\n").count { !$0.hasPrefix("#") } == count
        }
    }

    /// Waits until this many resources were fetched behind the player.
    func hasFetched(_ count: Int) throws -> Bool {
        try eventually { try stage.figure("time_shift_fetched_total") >= count }
    }

    /// Advances the origin over the whole stream, without a player; only the list is loaded.
    func run() throws -> Bool {
        let sections = kind == .fragmentedMP4 ? 1 : 0
        guard try list(3), try hasFetched(3 + sections) else { return false }
        window.advance(by: 3)
        return try list(6) && hasFetched(6 + sections)
    }
}

extension Players.TimeShiftPlayers {
    @Test(arguments: LiveStage.Kind.allCases)
    fileprivate func `ffmpeg plays a longer window from its start`(_ kind: LiveStage.Kind) throws {
        let live = try LiveStage(kind, windowSize: 3)
        let whole = try live.direct()
        #expect(try live.run())
        let playing = Background {
            try Tool.framemd5(live.shifted, ["-live_start_index", "0"])
        }
        live.window.end()
        let isWhole = try playing.value(within: .seconds(30)) == whole
        #expect(whole != nil && isWhole)
    }

    @Test(.enabled(if: Tool.exists("mpv"), "needs mpv"))
    func `mpv plays a longer window from its start`() throws {
        let live = try LiveStage(.transportStream, windowSize: 3)
        #expect(try live.run())
        live.window.end()
        let played = try Tool.run([
            "mpv", "--no-config", "--no-terminal", "--framedrop=no", "--of=framemd5", "--o=-",
            "--no-audio", "--ovc=rawvideo", "--demuxer-lavf-o=live_start_index=0", live.shifted,
        ])
        #expect(played.stdout.split(separator: "\n").count { !$0.hasPrefix("#") } == 288)
    }

    @Test func `ffmpeg continues behind a hole`() throws {
        let live = try LiveStage(.transportStream, windowSize: 2)
        #expect(try live.list(2))
        #expect(try live.hasFetched(2))
        live.window.advance(by: 3)
        #expect(try live.list(5))
        live.window.end()
        let played = try Tool.run([
            "ffmpeg", "-nostdin", "-loglevel", "error", "-live_start_index", "0", "-i",
            live.shifted, "-map", "0:v", "-f", "framemd5", "-",
        ])
        #expect(played.stdout.split(separator: "\n").count { !$0.hasPrefix("#") } == 4 * 48)
    }

    @Test(
        .enabled(if: hasGStreamer, "needs gstreamer1.0-tools and its plugins"),
        arguments: ["playbin", "playbin3"])
    func `GStreamer plays a recording with a hole to its end`(_ element: String) throws {
        let live = try LiveStage(.transportStream, windowSize: 2)
        let id = try live.record()
        #expect(try live.has(2, of: id))
        live.window.advance(by: 3)
        #expect(try live.has(4, of: id))
        let url = try live.stop(id)
        live.stage.cdn.stop()
        let played = try Tool.run([
            "gst-launch-1.0", "--quiet", element, "uri=\(url)",
            "video-sink=videoconvert ! video/x-raw,format=RGBA"
                + " ! checksumsink hash=md5 sync=false", "audio-sink=fakesink",
        ])
        #expect(played.status == 0 && played.stdout.split(separator: "\n").count == 4 * 48)
    }

    @Test(arguments: LiveStage.Kind.allCases)
    fileprivate func `ffmpeg plays a recording without the origin`(
        _ kind: LiveStage.Kind
    ) throws {
        let live = try LiveStage(kind, windowSize: 3)
        let whole = try live.direct()
        let id = try live.record()
        #expect(try live.has(3, of: id))
        live.window.advance(by: 3)
        #expect(try live.has(6, of: id))
        let url = try live.stop(id)
        live.stage.cdn.stop()
        let asked = try live.stage.figure("origin_requests_total")
        let isWhole = try Tool.framemd5(url) == whole
        #expect(whole != nil && isWhole)
        #expect(try live.stage.figure("origin_requests_total") == asked)
    }
}

extension LiveStage {
    private func api(_ target: String, _ method: String = "GET") throws -> String {
        try ScriptedPlayer(stage.daemon.baseURL).get("/api/\(target)", method: method).text
    }

    /// A member of a flat JSON text.
    private func member(_ name: String, in text: String) -> String {
        guard let found = text.firstRange(of: "\"\(name)\":") else { return "" }
        return String(text[found.upperBound...].drop { $0 == "\"" }.prefix { !"\",}".contains($0) })
    }

    /// Starts a recording; its id.
    func record() throws -> String {
        let url = stage.cdn.url("/live.m3u8").replacing("/", with: "%2F")
        return member("id", in: try api("recordings?for=1h&url=\(url)", "POST"))
    }

    func has(_ segments: Int, of id: String) throws -> Bool {
        try eventually { member("segments", in: try api("recordings/\(id)")) == "\(segments)" }
    }

    /// Ends a recording; the URL that plays it.
    func stop(_ id: String) throws -> String {
        _ = try api("recordings/\(id)/stop", "POST")
        let isDone = try eventually { member("state", in: try api("recordings/\(id)")) == "done" }
        #expect(isDone)
        return stage.daemon.baseURL + member("play", in: try api("recordings/\(id)"))
    }
}
