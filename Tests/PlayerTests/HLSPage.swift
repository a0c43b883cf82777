// hls.js in Chromium: a page that plays one stream and reports the result.
import FixtureCDN
import ScenarioSupport

/// hls.js, which is not part of the repository: `Fixtures/tools/get-hlsjs` fetches it.
enum HLSJS {
    /// The ES module, fetched if setup has not done so; throws if that fails.
    static func module() throws -> [UInt8] { try fetched.get() }

    private static let fetched = Result { () throws -> [UInt8] in
        let folder = Fixture.path("../.build/players")
        let result = try Tool.run([Fixture.path("tools/get-hlsjs"), folder], within: .seconds(260))
        guard result.status == 0 else {
            throw ScenarioFailure("hls.js cannot be had: \(result.stderr.suffix(400))")
        }
        return try readFile(folder + "/hls.mjs")
    }
}

/// A page that `site` serves.
struct HLSPage {
    private let site: FixtureCDN

    /// Plays the stream at `rate` times its speed.
    init(_ url: String, _ site: FixtureCDN, rate: Int = 1) throws {
        self.site = site
        site.put("/hls.mjs", try HLSJS.module(), contentType: "text/javascript")
        site.put(
            "/hls.html",
            text: """
                <!doctype html><meta charset="utf-8"><title>hls.js</title><script type="module">
                import { Hls } from "/hls.mjs";
                const video = document.createElement("video");
                const report = what => fetch("/hls?" + what + "="
                  + video.getVideoPlaybackQuality().totalVideoFrames);
                video.muted = true;
                video.defaultPlaybackRate = video.playbackRate = \(rate);
                video.onended = () => report("ended");
                setInterval(() => report("shown"), 500);
                document.documentElement.append(video);
                const hls = new Hls();
                // A list that does not match the previous one is parsed again and again, and
                // finally reported as a fatal error.
                hls.on(Hls.Events.ERROR, (_, data) => {
                  if (data.fatal || data.details === "levelParsingError")
                    report("error:" + encodeURIComponent(data.details + " "
                      + String(data.error).slice(0, 60)));
                });
                hls.loadSource("\(url)");
                hls.attachMedia(video);
                video.play();
                </script>
                """)
    }

    /// Plays until this many frames were shown, or the stream has ended, or the page stands still
    /// and has shown `least` frames.
    ///
    /// Throws what hls.js reports as an error; `options` are further ones of the browser. -
    /// Returns: the number of frames.
    func watch(frames: Int, least: Int? = nil, _ options: [String] = []) throws -> Int {
        let profile = try TemporaryFolder()
        let browser = try ChildProcess(
            [
                "chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
                "--autoplay-policy=no-user-gesture-required", "--user-data-dir=\(profile.path)",
            ] + options + [site.url("/hls.html")])
        defer { browser.end() }
        _ = eventually(within: .seconds(40)) {
            isOver(reports, least: least ?? frames, most: frames)
        }
        if let error = reports.first(where: { $0.what.hasPrefix("error") }) {
            throw ScenarioFailure("hls.js: \(error.what)")
        }
        return reports.map(\.frames).max() ?? 0
    }

    private var reports: [(what: Substring, frames: Int)] {
        site.requests.filter { $0.path == "/hls" }.compactMap { request in
            let parts = request.target.dropFirst("/hls?".count).split(separator: "=")
            return parts.count == 2 ? (parts[0], Int(parts[1]) ?? 0) : nil
        }
    }
}

/// Whether a page that reports its frames each half second has nothing more to report: it said so,
/// it has shown `most` frames, or it has shown `least` and no further one for four seconds.
func isOver(_ reports: [(what: Substring, frames: Int)], least: Int, most: Int) -> Bool {
    if reports.contains(where: { $0.what != "shown" || $0.frames >= most }) { return true }
    let latest = reports.suffix(9)
    guard latest.count == 9, let last = latest.last, last.frames >= least else { return false }
    return latest.allSatisfy { $0.frames == last.frames }
}
