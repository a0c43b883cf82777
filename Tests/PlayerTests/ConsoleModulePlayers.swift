// The console's modules in a real browser, called as its page calls them.
import FixtureCDN
import ScenarioSupport
import Testing

@Suite(
    .serialized, .timeLimit(.minutes(5)), .tags(.players), .grouped,
    .enabled(if: Tool.exists("chromedriver"), "needs chromium-driver"))
struct ConsoleModulePlayers {
    /// A browser on the page of a stage, with one of the page's modules as `window.module`.
    private func browser(_ stage: Stage, _ module: String) throws -> Browser {
        let browser = try Browser()
        try browser.open(stage.daemon.baseURL + "/#library")
        #expect(try browser.comes("document.querySelector('.dot.connected')"))
        try browser.run(
            "import('/console/\(module).mjs').then((found) => { window.module = found; })")
        #expect(try browser.comes("window.module"))
        return browser
    }

    @Test(arguments: [
        ("/p/x/a.m3u8", "http://tv/", "http://tv/p/x/a.m3u8"),
        ("/p/x/a.m3u8", "http://tv/hls/", "http://tv/hls/p/x/a.m3u8"),
        ("/hls/p/x/a.m3u8", "http://tv/hls/", "http://tv/hls/p/x/a.m3u8"),
        ("//other/a.m3u8", "http://tv/", "http://tv/other/a.m3u8"),
    ])
    func `a path of the daemon has the base path once`(
        _ path: String, _ base: String, _ url: String
    ) throws {
        let stage = try Stage()
        let browser = try browser(stage, "api")
        #expect(try browser.value("window.module.ownURL('\(path)', new URL('\(base)')).href") == url)
    }
}
