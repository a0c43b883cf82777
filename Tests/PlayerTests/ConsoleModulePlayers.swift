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
        let found = "window.module.ownURL('\(path)', new URL('\(base)')).href"
        #expect(try browser.value(found) == url)
    }

    @Test func `the focus stays in its row though others have controls of that name`() throws {
        let stage = try Stage()
        let browser = try browser(stage, "dom")
        try browser.run(
            """
            const { h, button, replace } = window.module;
            const place = h('div', null);
            document.body.append(place);
            window.draw = (...rows) => replace(place, ...rows.map(([id, name]) =>
              h('article', { 'data-id': id }, button('Cancel', () => {}, {}, name))));
            window.buttons = () => [...place.querySelectorAll('button')];
            window.at = () => document.activeElement.closest('[data-id]')?.dataset.id;
            draw(['1', 'a'], ['2', 'a']);
            buttons()[1].focus();
            """)
        #expect(try browser.value("(draw(['1', 'a'], ['2', 'a']), at())") == "2")
        #expect(try browser.value("(draw(['3', 'a'], ['1', 'a'], ['2', 'a']), at())") == "2")
        #expect(try browser.value("(draw(['2', 'a'], ['1', 'a']), at())") == "2")
        // Of rows that are not named, the one at the same position.
        try browser.run("draw([null, 'b'], [null, 'b']); buttons()[1].focus();")
        let index = "buttons().indexOf(document.activeElement)"
        #expect(try browser.value("(draw([null, 'b'], [null, 'b']), \(index))") == "1")
    }
}
