// The console's tools in a real browser: which answer is shown, and what is read for it.
import FixtureCDN
import ScenarioSupport
import Testing

@Suite(
    .serialized, .timeLimit(.minutes(5)), .tags(.players), .grouped,
    .enabled(if: Tool.exists("chromedriver"), "needs chromium-driver"))
struct ConsoleToolPlayers {
    /// The tools of a stage, where answers about a URL with `first` wait for `release()`.
    private func tools(_ stage: Stage) throws -> Browser {
        let browser = try Browser()
        try browser.open(stage.daemon.baseURL + "/#tools")
        #expect(try browser.comes("document.querySelector('.dot.connected')"))
        try browser.run(
            """
            const real = window.fetch;
            window.fetch = (url, options) => !String(url).includes('first') ? real(url, options)
              : new Promise((resolve) => {
                options.signal?.addEventListener('abort', () => { window.isAborted = true; });
                window.release = () => real(url, { ...options, signal: null }).then((answer) => {
                  resolve(answer.clone());
                  return answer.text();
                }).then(() => setTimeout(() => { window.isReleased = true; }));
              });
            """)
        return browser
    }

    private func ask(_ browser: Browser, _ tool: String, _ url: String) throws {
        try browser.run(
            """
            document.getElementById('\(tool)-url').value = \(Browser.quoted(url));
            document.getElementById('\(tool)-form').requestSubmit();
            """)
    }

    @Test(arguments: ["why", "inspect"])
    func `a late answer is not shown for the URL that was asked for after it`(_ tool: String)
        throws
    {
        let stage = try Stage()
        for name in ["first", "second"] {
            stage.cdn.put(
                "/\(name).m3u8",
                text: "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\n/bytes/1000/\(name).ts\n")
        }
        let browser = try tools(stage)
        try ask(browser, tool, stage.cdn.url("/first.m3u8"))
        #expect(try browser.comes("window.release"))
        try ask(browser, tool, stage.cdn.url("/second.m3u8"))
        let text = "document.getElementById('\(tool)').innerText"
        #expect(try browser.comes("\(text).includes('second')"))
        if tool == "inspect" { #expect(try browser.value("window.isAborted") == "true") }
        try browser.run("window.release()")
        #expect(try browser.comes("window.isReleased"))
        #expect(try browser.value("\(text).includes('second')") == "true")
        #expect(try browser.value("\(text).includes('first')") == "false")
    }

    @Test func `media is not read to find that it is no playlist`() throws {
        let stage = try Stage()
        let browser = try tools(stage)
        try ask(browser, "inspect", stage.cdn.url(Stream.plainFile.path))
        #expect(
            try browser.comes(
                "document.getElementById('alarm').innerText.includes('its type is video/mp4')"))
        #expect(try browser.value("document.getElementById('inspect').innerText") == "")
    }
}
