// The console's lists in a real browser: what their buttons order, and for which title.
import FixtureCDN
import ScenarioSupport
import Testing

@Suite(
    .serialized, .timeLimit(.minutes(5)), .tags(.players), .grouped,
    .enabled(if: Tool.exists("chromedriver"), "needs chromium-driver"))
struct ConsoleLibraryPlayers {
    @Test func `a title played with headers is not ordered without them`() throws {
        let stage = try Stage()
        stage.cdn.put(
            "/own.m3u8",
            text: "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\n/bytes/1000/a.ts\n"
                + "#EXT-X-ENDLIST\n")
        let entry = "/proxy?url=\(stage.cdn.url("/own.m3u8"))&h_Referer=http://site.test/"
        #expect(try ScriptedPlayer(stage.daemon.baseURL).get(entry).status == 200)
        let browser = try Browser()
        try browser.open(stage.daemon.baseURL + "/#library")
        let refused = """
            [...document.querySelectorAll('#titles button')].filter((one) => \
            ['Play', 'Download'].includes(one.innerText) && one.disabled \
            && one.title.includes('headers')).length
            """
        #expect(try browser.comes("\(refused) === 2"))
    }

    @Test func `a recording has the buttons of its state`() throws {
        let stage = try Stage()
        let browser = try Browser()
        try browser.open(stage.daemon.baseURL + "/#library")
        #expect(
            try browser.comes(
                "document.getElementById('recordings').innerText === 'No recordings.'"))
        // Recordings as the daemon lists them; each order is kept.
        try browser.run(
            """
            const states = [['running', 1], ['paused', 1], ['finishing', 1], ['done', 1],
              ['failed', 1], ['failed', 0]];
            const recordings = states.map(([state, segments], index) => ({
              id: `r${index}`, name: `${state} ${segments}`, url: 'http://cdn.test/a.m3u8', state,
              segments, reason: '', until: 0, seconds: 2 * segments, bytes: 9, lost: 0, node: null,
              ended: ['done', 'failed'].includes(state) ? 1 : null, play: `/p/r${index}`,
            }));
            const real = window.fetch;
            window.ordered = [];
            window.fetch = (url, options) => {
              if (!String(url).includes('/api/recordings')) return real(url, options);
              if (options.method === 'POST') ordered.push(new URL(url).pathname);
              return Promise.resolve(new Response(JSON.stringify({ recordings })));
            };
            import('/console/library.mjs').then((library) => library.refresh());
            """)
        let shown = """
            [...document.querySelectorAll('#recordings article')].map((item) => \
            [...item.querySelectorAll('button')].map((one) => one.innerText).join(' ')).join(', ')
            """
        #expect(try browser.comes("document.querySelectorAll('#recordings article').length === 6"))
        let expected = [
            "Play Stop", "Play Resume Stop Forget", "Play Forget", "Play Forget", "Play Forget",
            "Forget",
        ]
        #expect(try browser.value(shown) == expected.joined(separator: ", "))
        try browser.run("document.querySelector('[aria-label=\"Resume paused 1\"]').click()")
        #expect(try browser.comes("window.ordered.length"))
        #expect(try browser.value("window.ordered") == "/api/recordings/r1/resume")
    }
}
