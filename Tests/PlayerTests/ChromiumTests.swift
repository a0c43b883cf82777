// Chromium without a window: the page reports the end of a video to its server.
import FixtureCDN
import ScenarioSupport
import Testing

/// Beside the other players: most of its time it waits for the clock of the media.
@Suite(
    .timeLimit(.minutes(5)), .tags(.players), .grouped,
    .enabled(if: Tool.exists("chromium"), "needs chromium"))
struct ChromiumTests {
    @Test func `Chromium plays every stream to its end, also without the origin`() throws {
        let stage = try Stage()
        // A page on the streams' own server, because some do not play across origins without CORS.
        let direct = try Self.show(Stream.allCases.map(\.path), on: stage.cdn)
        #expect(direct.count { $0.hasPrefix("ended") } == Stream.allCases.count, "\(direct)")

        let site = FixtureCDN()
        try site.start()
        defer { site.stop() }
        let urls = Stream.allCases.map { stage.through($0) }
        #expect(try Self.show(urls, on: site) == direct)

        // The browser may switch to another variant the next time, so all are stored.
        for url in urls { _ = try Tool.framemd5(url) }
        let asked = try stage.figure("origin_requests_total")
        stage.cdn.stop()
        #expect(try Self.show(urls, on: site) == direct)
        #expect(try stage.figure("origin_requests_total") == asked)
    }

    /// Plays all `urls` concurrently at four times the speed, on a page that `site` serves.
    ///
    /// Returns for each how it ended: position, duration and decoded frames.
    private static func show(_ urls: [String], on site: FixtureCDN) throws -> [String] {
        let profile = try TemporaryFolder()
        site.resetLog()
        site.put("/player.html", text: page(urls))
        let browser = try ChildProcess([
            "chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
            "--autoplay-policy=no-user-gesture-required", "--user-data-dir=\(profile.path)",
            site.url("/player.html"),
        ])
        defer { browser.end() }
        _ = eventually(within: .seconds(40)) { reports(site).count == urls.count }
        return reports(site).sorted()
    }

    private static func reports(_ site: FixtureCDN) -> [String] {
        site.requests.filter { $0.path == "/report" }
            .map { String($0.target.dropFirst("/report?".count)) }
    }

    private static func page(_ urls: [String]) -> String {
        """
        <!doctype html><meta charset="utf-8"><title>Players</title><script>
        const urls = [\(urls.map { "\"\($0)\"" }.joined(separator: ","))];
        urls.forEach((url, index) => {
          const video = document.createElement("video");
          const report = what => fetch("/report?" + what + ":" + index + ":" + video.currentTime
            + ":" + video.duration + ":" + video.getVideoPlaybackQuality().totalVideoFrames);
          video.muted = true;
          video.crossOrigin = "anonymous";
          video.onended = () => report("ended");
          video.onerror = () => report("error" + video.error.code);
          video.src = url;
          video.defaultPlaybackRate = video.playbackRate = 4;
          document.documentElement.append(video);
          video.play();
        });
        </script>
        """
    }
}
