// The console in a real browser: what a person does there, and hostile titles.
import FixtureCDN
import ScenarioSupport
import Testing

@Suite(
    .serialized, .timeLimit(.minutes(5)), .tags(.players), .grouped,
    .enabled(if: Tool.exists("chromedriver"), "needs chromium-driver"))
struct ConsolePlayers {
    /// Fills in a field and submits its form.
    private func submit(_ browser: Browser, _ form: String, _ field: String, _ text: String) throws
    {
        try browser.run(
            """
            document.getElementById("\(field)").value = \(Browser.quoted(text));
            document.getElementById("\(form)").requestSubmit();
            """)
    }

    /// Opens the page with a player chosen.
    private func console(_ stage: Stage, playingWith player: String) throws -> Browser {
        // The file is where setup puts it, and is loaded from no third party.
        _ = try HLSJS.module()
        let browser = try Browser()
        try browser.open(stage.daemon.baseURL + "/")
        #expect(try browser.comes("document.querySelector('.dot.connected')"))
        try browser.run("document.getElementById('play-with').value = '\(player)'")
        return browser
    }

    private static let rows = "[...document.querySelectorAll('#fall tbody tr')]"

    @Test(arguments: ["auto", "hls.js"])
    func `a pasted URL plays on the page, and each request is shown`(_ how: String) throws {
        let stage = try Stage()
        let browser = try console(stage, playingWith: how)
        try submit(browser, "play-form", "play-url", stage.cdn.url(Stream.transportStream.path))
        #expect(try browser.comes("document.getElementById('video').currentTime > 1"))
        #expect(try browser.comes("\(Self.rows).some((row) => row.dataset.outcome === 'miss')"))
        #expect(
            try browser.value("\(Self.rows).some((row) => row.innerText.includes('.ts'))") == "true"
        )
        #expect(try browser.value("document.querySelector('[data-fact=Buffer]').innerText") != "–")
        #expect(try browser.comes("document.querySelectorAll('#play-log li').length >= 2"))
        // A second time, from the store.
        try submit(browser, "play-form", "play-url", stage.cdn.url(Stream.transportStream.path))
        #expect(try browser.comes("\(Self.rows).some((row) => row.dataset.outcome === 'hit')"))
        let foreign = """
            performance.getEntriesByType('resource').map((entry) => entry.name)
              .filter((name) => !name.startsWith(location.origin) && !/^(data|blob):/.test(name))
            """
        #expect(try browser.value(foreign) == "")
        try browser.picture("play-\(how)")
    }

    @Test(arguments: ["native", "hls.js"])
    func `the page plays URLs of the daemon, and tells why it refused one`(_ how: String) throws {
        let stage = try Stage()
        let browser = try console(stage, playingWith: how)
        // The same daemon under a name that the page does not know as its own.
        let other = stage.daemon.baseURL.replacing("127.0.0.1", with: "localhost")
        try submit(browser, "play-form", "play-url", other + "/a.m3u8")
        let note = "document.getElementById('play-note').innerText"
        #expect(try browser.comes("\(note).endsWith(': the URL leads back to this daemon')"))
        try submit(browser, "play-form", "play-url", stage.through(.transportStream))
        #expect(try browser.comes("document.getElementById('video').currentTime > 1"))
        #expect(try browser.value(note) == "")
    }

    @Test func `a daemon without hls.js shows a message on the page`() throws {
        let stage = try Stage(["--console-player", "/nowhere/hls.mjs"])
        let browser = try Browser()
        try browser.open(stage.daemon.baseURL + "/")
        #expect(try browser.comes("document.querySelector('.dot.connected')"))
        try browser.run("document.getElementById('play-with').value = 'hls.js'")
        try submit(browser, "play-form", "play-url", stage.cdn.url(Stream.transportStream.path))
        #expect(
            try browser.comes(
                "document.getElementById('play-note').innerText.includes('--console-player')"))
    }

    @Test func `names of a stream are shown as text, never as markup`() throws {
        let stage = try Stage()
        let name = "<img src=x onerror=document.title='hurt'>"
        stage.cdn.put(
            "/evil/master.m3u8",
            text: """
                #EXTM3U
                #EXT-X-SESSION-DATA:DATA-ID="com.example.title",VALUE="\(name)"
                #EXT-X-STREAM-INF:BANDWIDTH=100000
                <img src=x onerror=document.title='hurt'>.m3u8

                """)
        let player = ScriptedPlayer(stage.daemon.baseURL)
        #expect(try player.get(stage.through(stage.cdn.url("/evil/master.m3u8"))).status == 200)
        let browser = try Browser()
        try browser.open(stage.daemon.baseURL + "/#library")
        #expect(
            try browser.comes("document.getElementById('titles').innerText.includes('<img src=x')"))
        // A request whose name is markup, and a `why` query for one.
        _ = try player.get(stage.through(stage.cdn.url("/evil/%3Cimg%20src=x%20onerror=1%3E.ts")))
        try browser.run("location.hash = '#tools'")
        let url = "https://cdn.example.com/<img src=x onerror=document.title='hurt'>.m3u8"
        try submit(browser, "why-form", "why-url", url)
        #expect(
            try browser.comes("document.getElementById('why').innerText.includes('next request')"))
        #expect(try browser.comes("\(Self.rows).length > 0"))
        #expect(
            try browser.value("document.querySelectorAll('img, script:not([src])').length") == "0")
        #expect(try browser.value("document.title") == "Tools · Sluice")
    }

    @Test func `an outage appears on the page and ends`() throws {
        let stage = try Stage()
        let browser = try Browser()
        try browser.open(stage.daemon.baseURL + "/#network")
        #expect(try browser.comes("document.querySelector('.dot.connected')"))
        stage.cdn.stop()
        let url = stage.through(stage.cdn.url("/bytes/1000/a.ts"))
        #expect(try ScriptedPlayer(stage.daemon.baseURL).get(url).status >= 500)
        let outage =
            "document.querySelector('#outages [data-state=down], #outages [data-state=suspected]')"
        #expect(
            try browser.comes(
                "\(outage)?.innerText.includes(':\(stage.cdn.port) has not answered')"))
        try browser.picture("outage")
        // A hidden page does not listen, and is current immediately when it is shown again.
        let seen = { (isHidden: Bool) in
            "Object.defineProperty(document, 'hidden', { value: \(isHidden), configurable: true });"
                + "document.dispatchEvent(new Event('visibilitychange'));"
        }
        try browser.run(seen(true))
        #expect(try browser.comes("document.querySelector('.dot.paused')"))
        try browser.run(seen(false))
        #expect(try browser.comes("document.querySelector('.dot.connected')"))
        try stage.cdn.start()
        #expect(try browser.comes("document.querySelector('#outages [data-state=ended]')"))
        // It is shown for 12 seconds more, by the page's clock.
        try browser.run("const now = Date.now; Date.now = () => now() + 12_000;")
        #expect(try browser.comes("document.getElementById('outages').hidden"))
        // The time line has it, after a restart too.
        let line = "document.querySelector('#outage-line .outage-bar')?.ariaLabel"
        #expect(try browser.comes("\(line)?.startsWith('1 outages of')"))
        try browser.picture("outage-line")
        let history = try ScriptedPlayer(stage.daemon.baseURL).get("/api/history").text
        #expect(history.contains("\"outages\":[{\"origin\":\"http://127.0.0.1:\(stage.cdn.port)\""))
        #expect(!history.contains("\"end\":null"))
    }

    @Test func `titles are pinned and purged with the page's buttons`() throws {
        let stage = try Stage()
        try stage.keepWhole(stage.through(.transportStream))
        let browser = try Browser()
        try browser.open(stage.daemon.baseURL + "/#library")
        let button = { (label: String) in
            "[...document.querySelectorAll('#titles button')].find((one) => one.innerText === '\(label)')"
        }
        #expect(try browser.comes(button("Pin")))
        #expect(
            try browser.value("document.querySelector('#titles .meter').ariaLabel").hasPrefix("100")
        )
        try browser.run("document.querySelector('#titles summary').click()")
        #expect(try browser.comes("document.querySelector('#titles .shares')?.checkVisibility()"))
        #expect(
            try browser.value("document.querySelector('#titles .shares').innerText").contains(
                "100 %"))
        try browser.run("\(button("Pin")).click()")
        #expect(try browser.comes(button("Unpin")))
        #expect(
            try ScriptedPlayer(stage.daemon.baseURL).get("/api/titles").text
                .contains("\"pinned\":true"))
        try browser.run("\(button("Purge")).click()")
        #expect(try browser.comes("document.getElementById('ask').open"))
        try browser.run("document.querySelector('#ask [value=no]').click()")
        #expect(try browser.comes("\(button("Purge")).ariaDisabled !== 'true'"))  // Takes clicks.
        #expect(try stage.figure("stored_objects") > 0)
        try browser.run("\(button("Purge")).click()")
        #expect(try browser.comes("document.getElementById('ask').open"))
        try browser.run("document.getElementById('ask-yes').click()")
        #expect(
            try browser.comes("document.getElementById('toast').innerText.startsWith('Removed')"))
        #expect(try eventually { try stage.figure("stored_objects") == 0 })
    }

    @Test func `a title is exported into a folder of the browser`() throws {
        let stage = try Stage()
        try stage.keepWhole(stage.through(.transportStream))
        let browser = try Browser()
        try browser.open(stage.daemon.baseURL + "/#library")
        let button =
            "[...document.querySelectorAll('#titles button')].find((one) => one.innerText === 'Export')"
        #expect(try browser.comes(button))
        // Nobody can choose a folder here: the browser's private one takes its place.
        try browser.run(
            "window.showDirectoryPicker = async () => { window.chosen = await (await navigator.storage.getDirectory()).getDirectoryHandle('out', { create: true }); return window.chosen; }"
        )
        try browser.run("\(button).click()")
        let toast = "document.getElementById('toast').innerText"
        #expect(try browser.comes("\(toast).includes('is exported')"))
        try browser.run(
            "(async () => { const found = []; for await (const [name, file] of window.chosen.entries()) found.push(name + ' ' + (await file.getFile()).size); window.found = found.join(', '); })()"
        )
        #expect(try browser.comes("window.found?.includes('index.m3u8')"))
        let found = try browser.value("window.found")
        let count = found.split(separator: ",").count
        #expect(count > 10 && !found.contains(" 0,"), "\(found)")
        // Where a browser cannot write folders, the command is named.
        try browser.run("window.showDirectoryPicker = undefined")
        try browser.run("\(button).click()")
        #expect(try browser.comes("document.getElementById('copy').open"))
        let command = try browser.value("document.getElementById('copy-text').value")
        #expect(command.hasPrefix("sluice export "))
    }

    @Test func `settings name their source, and a proposal is accepted or refused`() throws {
        let stage = try Stage(["--keys", "standard"])
        for number in 0..<4 {
            for token in ["a", "b", "c"] {
                let url = stage.cdn.url("/bytes/2000/p\(number).ts?sess=\(token)\(number)")
                let player = ScriptedPlayer(stage.daemon.baseURL)
                #expect(try player.get(stage.through(url)).status == 200)
            }
        }
        let browser = try Browser()
        try browser.open(stage.daemon.baseURL + "/#tools")
        let settings = "document.getElementById('settings').innerText"
        #expect(try browser.comes("\(settings).includes('keys') && \(settings).includes('flag')"))
        try browser.run("document.querySelector('#settings summary').click()")
        #expect(try browser.comes("\(settings).includes('drain-timeout')"))
        let button = { (label: String) in
            "[...document.querySelectorAll('#keys button')].find((one) => one.innerText === '\(label)')"
        }
        #expect(try browser.comes(button("Accept")))
        try browser.run("\(button("Accept")).click()")
        let rule = "document.getElementById('copy-text').value"
        #expect(try browser.comes("document.getElementById('copy').open"))
        #expect(try browser.value(rule) == "\"key-rule\": [\"127.0.0.1=drop sess\"]")
        try browser.picture("proposal")
        try browser.run("document.querySelector('#copy button').click()")
        #expect(try browser.comes("!\(button("Accept")).disabled"))
        try browser.run("\(button("Refuse")).click()")
        #expect(try browser.comes("document.getElementById('keys').innerText.includes('vetoed')"))
        #expect(try browser.comes("!\(button("Accept")) && !\(button("Refuse"))"))
    }

    @Test func `downloads and recordings are ordered on the page`() throws {
        let stage = try Stage()
        let browser = try Browser()
        try browser.open(stage.daemon.baseURL + "/#library")
        #expect(
            try browser.comes("document.getElementById('downloads').innerText === 'No downloads.'"))
        try submit(
            browser, "download-form", "download-url", stage.cdn.url(Stream.transportStream.path))
        #expect(
            try browser.comes(
                "document.querySelector('#downloads .item')?.innerText.includes('complete')"))
        stage.cdn.put(
            "/live.m3u8",
            text: "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\n/bytes/1000/live.ts\n")
        try submit(browser, "record-form", "record-url", stage.cdn.url("/live.m3u8"))
        let stop =
            "[...document.querySelectorAll('#recordings button')].find((one) => one.innerText === 'Stop')"
        #expect(try browser.comes(stop))
        try browser.run("\(stop).click()")
        #expect(try browser.comes("!\(stop)"))
        try browser.picture("library")
    }

    @Test func `a playlist is shown with its errors and links to the playlists in it`() throws {
        let stage = try Stage()
        stage.cdn.put(
            "/odd/main.m3u8",
            text: "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=100000\nodd.m3u8?t=5ecret\n")
        stage.cdn.put(
            "/odd/odd.m3u8",
            text: "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:9.5,\n<img src=x>.ts\n#EXT-X-ENDLIST\n"
        )
        let browser = try Browser()
        try browser.open(stage.daemon.baseURL + "/#tools")
        try submit(browser, "inspect-form", "inspect-url", stage.cdn.url("/odd/main.m3u8"))
        let button = "document.querySelector('#inspect .listing button')"
        #expect(
            try browser.comes("\(button)?.closest('li').innerText.startsWith('#EXT-X-STREAM-INF')"))
        try browser.run("\(button).click()")
        let fault = "[...document.querySelectorAll('#inspect .faulty')]"
        let extinf = "\(fault).find((line) => line.innerText.includes('#EXTINF:9.5'))"
        #expect(try browser.comes("\(extinf)?.querySelector('.must')"))
        #expect(
            try browser.value(
                "document.querySelector('#inspect').innerText.includes('<img src=x>.ts')")
                == "true")
        #expect(try browser.value("document.querySelectorAll('img').length") == "0")
        try browser.picture("inspect")
        try submit(browser, "inspect-form", "inspect-url", stage.cdn.url("/bytes/1000/a.ts"))
        #expect(
            try browser.comes("document.getElementById('alarm').innerText.includes('no playlist')"))
    }

    @Test func `a feed is started, moved and ended on the page`() throws {
        let stage = try Stage()
        let browser = try Browser()
        try browser.open(stage.daemon.baseURL + "/#library")
        #expect(
            try browser.comes("document.getElementById('feeds').innerText.includes('No feeds')"))
        // One a line, also with a blank in it.
        let entries = (0..<4).map { stage.cdn.url("/bytes/1000/\($0).mp4?name=a b") }
        try browser.run(
            "document.getElementById('feed-name').value = 'evening';"
                + "document.getElementById('feed-entries').value = "
                + "\(Browser.quoted(entries.joined(separator: "\n")));"
                + "document.getElementById('feed-form').requestSubmit();")
        let feed = "document.querySelector('#feeds .item')"
        #expect(try browser.comes("\(feed)?.innerText.includes('index 0, 4 entries')"))
        let button = { (label: String) in
            "[...document.querySelectorAll('#feeds button')].find((one) => one.innerText === '\(label)')"
        }
        try browser.run("\(button("Next")).click()")
        #expect(try browser.comes("\(feed)?.innerText.includes('index 1, 4 entries')"))
        #expect(try browser.comes("document.querySelectorAll('#feeds .window li').length > 1"))
        try browser.picture("feeds")
        try browser.run("\(button("End")).click()")
        #expect(try browser.comes("document.getElementById('ask').open"))
        try browser.run("document.getElementById('ask-yes').click()")
        #expect(
            try browser.comes("document.getElementById('feeds').innerText.includes('No feeds')"))
        #expect(try ScriptedPlayer(stage.daemon.baseURL).get("/api/feeds").text == "[]\n")
    }

    @Test func `requests are shown on one time axis on request`() throws {
        let stage = try Stage()
        let browser = try Browser()
        try browser.open(stage.daemon.baseURL + "/")
        #expect(try browser.comes("document.querySelector('.dot.connected')"))
        let player = ScriptedPlayer(stage.daemon.baseURL)
        for name in ["first", "second"] {
            let url = stage.through(stage.cdn.url("/bytes/1000/\(name).ts"))
            #expect(try player.get(url).status == 200)
            #expect(
                try browser.comes(
                    "\(Self.rows).some((row) => row.innerText.includes('\(name).ts'))"))
            // The starts of the two bars are then several pixels apart.
            if name == "first" {
                #expect(try browser.comes("Date.now() - (window.seen ??= Date.now()) > 1000"))
            }
        }
        #expect(try browser.value("document.querySelectorAll('#fall .before').length") == "0")
        try browser.run(
            "const axis = document.getElementById('fall-axis'); axis.value = '60';"
                + "axis.dispatchEvent(new Event('change'));")
        // The newest request is on top; earlier ones begin further to the left.
        #expect(
            try browser.value(
                "\(Self.rows).map((row) => row.querySelector('.phase').getBoundingClientRect().left)"
                    + ".filter((left, place, all) => place === 0 || left < all[place - 1]).length")
                == "2")
        try browser.picture("waterfall")
    }

    @Test func `the token is requested, and a session ends with a click`() throws {
        let stage = try Stage(["--token", "acc3ss-token"])
        let browser = try Browser()
        try browser.open(stage.daemon.baseURL + "/")
        #expect(try browser.comes("!document.getElementById('sign-in').hidden"))
        try browser.picture("sign-in")
        try submit(browser, "sign-in-form", "token", "not-the-token")
        #expect(try browser.comes("document.getElementById('sign-in-error').innerText !== ''"))
        try submit(browser, "sign-in-form", "token", "acc3ss-token")
        #expect(try browser.comes("document.querySelector('.dot.connected')"))
        #expect(try browser.value("document.cookie") == "")
        try submit(browser, "play-form", "play-url", stage.cdn.url(Stream.transportStream.path))
        #expect(try browser.comes("document.getElementById('video').currentTime > 1"))
        #expect(try browser.comes("!document.getElementById('sign-out').hidden"))
        try browser.run("document.getElementById('sign-out').click()")
        #expect(try browser.comes("!document.getElementById('sign-in').hidden"))
        #expect(try browser.value("fetch('/api/stats').then(() => 1) && 1") == "1")
        // An entry's token in the address signs in, and is removed from the address.
        try browser.open(stage.daemon.baseURL + "/?token=acc3ss-token")
        #expect(try browser.comes("document.querySelector('.dot.connected')"))
        #expect(try browser.value("location.search") == "")
    }

    @Test(arguments: [("light", 1_280, 900), ("dark", 1_280, 900), ("phone", 360, 740)])
    func `no element is wider than the window`(_ name: String, _ width: Int, _ height: Int) throws {
        let stage = try Stage()
        try stage.keepWhole(stage.through(.transportStream))
        let browser = try Browser(size: (width, height), isDark: name == "dark")
        try browser.open(stage.daemon.baseURL + "/")
        #expect(try browser.comes("document.querySelector('.dot.connected')"))
        try submit(browser, "play-form", "play-url", stage.cdn.url(Stream.transportStream.path))
        #expect(try browser.comes("document.getElementById('video').currentTime > 1"))
        for view in ["play", "library", "network", "tools"] {
            try browser.run("location.hash = '#\(view)'")
            #expect(try browser.comes("!document.getElementById('view-\(view)').hidden"))
            if view == "library" {
                #expect(try browser.comes("document.querySelector('#titles tbody')"))
            }
            if view == "network" {
                #expect(try browser.comes("document.querySelector('#origins tbody')"))
                // What was stored before counts, whoever requested it.
                #expect(
                    try browser.comes(
                        "document.querySelector('#plot-history .line.one').getAttribute('d')"))
            }
            if view == "tools" {
                let url = stage.cdn.url(Stream.transportStream.path)
                try submit(browser, "why-form", "why-url", url)
                #expect(try browser.comes("document.querySelector('#why .lead')"))
            }
            let over = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            #expect(try browser.value(over) == "0", "\(view)")
            // Every control has an accessible name.
            let nameless = """
                [...document.querySelectorAll('button, input, select, [role=img], [role=region]')]
                  .filter((one) => one.checkVisibility() && !one.ariaLabel && !one.innerText && !one.labels?.length)
                  .map((one) => one.outerHTML)
                """
            #expect(try browser.value(nameless) == "", "\(view)")
            try browser.picture("\(name)-\(view)")
        }
    }
}
