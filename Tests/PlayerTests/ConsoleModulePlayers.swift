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

    @Test func `a path of the daemon has the base path once`() throws {
        let stage = try Stage()
        let browser = try browser(stage, "api")
        for (path, own, base, url) in Self.paths {
            let found = "window.module.ownURL('\(path)', '\(own)', new URL('\(base)')).href"
            #expect(try browser.value(found) == url, "\(path) \(own) \(base)")
        }
    }

    /// A path as the daemon gives it, the base path that it knows, the page's, and the URL.
    private static let paths = [
        ("/p/x/a.m3u8", "", "http://tv/", "http://tv/p/x/a.m3u8"),
        ("/p/x/a.m3u8", "", "http://tv/hls/", "http://tv/hls/p/x/a.m3u8"),
        ("/hls/p/x/a.m3u8", "/hls", "http://tv/hls/", "http://tv/hls/p/x/a.m3u8"),
        // The daemon is reached without the proxy that removes the base path.
        ("/hls/p/x/a.m3u8", "/hls", "http://tv/", "http://tv/p/x/a.m3u8"),
        // A proxy removes a prefix that the daemon does not know, and that is a role too.
        ("/p/x/a.m3u8", "", "http://tv/p/", "http://tv/p/p/x/a.m3u8"),
        ("/p/p/x/a.m3u8", "/p", "http://tv/p/", "http://tv/p/p/x/a.m3u8"),
        ("//other/a.m3u8", "", "http://tv/", "http://tv/other/a.m3u8"),
        ("/https://cdn/a.m3u8", "", "http://tv/hls/", "http://tv/hls/https://cdn/a.m3u8"),
    ]

    @Test func `a URL of the daemon is played as it is, and any other one through the daemon`()
        throws
    {
        let stage = try Stage()
        let browser = try browser(stage, "api")
        for (given, own, base, url) in Self.given {
            let found = "window.module.playable('\(given)', '\(own)', new URL('\(base)')).href"
            #expect(try browser.value(found) == url, "\(given) \(own) \(base)")
        }
    }

    /// What somebody types, the base path that the daemon knows, the page's, and the URL.
    private static let given = [
        ("/p/x/a.m3u8", "", "http://tv/", "http://tv/p/x/a.m3u8"),
        ("http://tv/https://cdn/a.m3u8?t=1", "", "http://tv/", "http://tv/https://cdn/a.m3u8?t=1"),
        ("http://TV:80/dvr=2m/http://cdn/a", "", "http://tv/", "http://tv/dvr=2m/http://cdn/a"),
        ("http://tv/hls/p/x/a.m3u8", "", "http://tv/hls/", "http://tv/hls/p/x/a.m3u8"),
        ("http://tv/hls/p/x/a.m3u8", "/hls", "http://tv/hls/", "http://tv/hls/p/x/a.m3u8"),
        // The daemon is reached without the proxy that removes the base path.
        ("http://tv/hls/p/x/a.m3u8", "/hls", "http://tv/", "http://tv/p/x/a.m3u8"),
        // Beside the daemon, behind the same proxy.
        ("http://tv/v/a", "", "http://tv/hls/", "http://tv/hls/proxy?url=http%3A%2F%2Ftv%2Fv%2Fa"),
        ("http://tv:81/a", "", "http://tv/", "http://tv/proxy?url=http%3A%2F%2Ftv%3A81%2Fa"),
        ("no url", "", "http://tv/", "http://tv/proxy?url=no+url"),
    ]

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

    @Test func `two orders to play in a row make one player`() throws {
        let folder = try TemporaryFolder()
        let path = folder.file("hls.mjs")
        let library = """
            export class Hls {
              static Events = {};
              static isSupported() { return true; }
              constructor() { (window.made ??= []).push(this); }
              on() {}
              loadSource(url) { this.url = url; }
              attachMedia() {}
              destroy() { this.isOver = true; }
            }

            """
        try writeFile(path, Array(library.utf8))
        let stage = try Stage(["--console-player", path])
        let browser = try Browser()
        try browser.open(stage.daemon.baseURL + "/")
        #expect(try browser.comes("document.querySelector('.dot.connected')"))
        try browser.run(
            """
            document.getElementById('play-with').value = 'hls.js';
            for (const name of ['first', 'second']) {
              document.getElementById('play-url').value = `http://cdn.test/${name}.m3u8`;
              document.getElementById('play-form').requestSubmit();
            }
            """)
        #expect(try browser.comes("window.made"))
        let urls = "window.made.filter((one) => !one.isOver).map((one) => one.url.slice(-11))"
        #expect(try browser.value(urls) == "second.m3u8")
    }

    @Test func `a page that nobody sees does not listen, whatever it still waits for`() throws {
        let stage = try Stage()
        let browser = try browser(stage, "api")
        // Sources that are refused once, and questions that are answered on demand.
        try browser.run(
            """
            module.close();
            \(Self.ownStream)
            window.made = 0;
            window.states = [];
            window.EventSource = class {
              static CLOSED = 2;
              constructor() {
                window.made += 1;
                this.readyState = 2;
                window.refuse = () => this.onerror();
              }
              addEventListener() {}
              close() {}
            };
            const answer = { status: 200, ok: true, text: async () => '{}' };
            window.fetch = (url) => new Promise((resolve) => {
              if (String(url).endsWith('api/settings')) window.release = () => resolve(answer);
            });
            window.see = (isSeen) => Object.defineProperty(
              document, 'hidden', { value: !isSeen, configurable: true });
            window.listen = () => module.listen((state) => states.push(state));
            see(false);
            listen();
            """)
        #expect(try browser.value("`${made} ${states}`") == "0 paused")
        // It is closed while a refused source waits for the daemon's answer.
        try browser.run("see(true); listen(); refuse();")
        #expect(try browser.comes("window.release"))
        try browser.run("module.close(); release(); setTimeout(() => { window.isOver = true; });")
        #expect(try browser.comes("window.isOver"))
        #expect(try browser.value("`${made} ${states}`") == "1 paused,connecting,away")
    }

    @Test func `a daemon that answers but takes no listener is not called away`() throws {
        let stage = try Stage()
        let browser = try browser(stage, "api")
        // Sources that are refused or opened, and questions that are answered, on demand.
        try browser.run(
            """
            module.close();
            \(Self.ownStream)
            window.states = [];
            window.EventSource = class {
              static CLOSED = 2;
              constructor() {
                this.readyState = 2;
                window.source = this;
              }
              addEventListener() {}
              close() {}
            };
            const answer = (status) => ({ status, ok: status === 200, text: async () => '{}' });
            window.fetch = (url) => new Promise((resolve) => {
              if (!String(url).endsWith('api/settings')) return;
              window.release = (status) => {
                window.release = null;
                resolve(answer(status));
              };
            });
            Object.defineProperty(document, 'hidden', { value: false, configurable: true });
            module.listen((state) => states.push(state));
            source.onerror();
            """)
        #expect(try browser.value("`${states}`") == "connecting,away")
        // Once it may have been a proxy in front of a daemon that restarts.
        #expect(try browser.comes("window.release"))
        try browser.run("window.states = []; window.former = source; release(200);")
        #expect(try browser.comes("source !== former"))
        try browser.run("source.onerror();")
        #expect(try browser.value("`${states}`") == "connecting,crowded")
        #expect(try browser.comes("window.release"))
        try browser.run("window.states = []; window.former = source; release(200);")
        #expect(try browser.comes("source !== former"))
        #expect(try browser.value("`${states}`") == "crowded")
        // A daemon that goes away meanwhile is called so.
        try browser.run("source.onerror();")
        #expect(try browser.comes("window.release"))
        try browser.run("window.states = []; release(503);")
        #expect(try browser.comes("window.states.length > 1"))
        try browser.run("source.onopen();")
        #expect(try browser.value("`${states}`") == "away,connecting,connected")
    }

    /// Gives the window a stream of its own, as over plain http from another machine.
    private static let ownStream = "Object.defineProperty(navigator, 'locks', { value: null });"

    @Test func `the windows of a browser share a stream, which passes to another one`() throws {
        let stage = try Stage()
        let browser = try browser(stage, "api")
        // Another window, which has the stream.
        try browser.run(
            """
            module.close();
            window.made = 0;
            window.EventSource = class {
              static CLOSED = 2;
              constructor() {
                window.made += 1;
                this.hear = {};
                window.source = this;
              }
              addEventListener(kind, hear) { this.hear[kind] = hear; }
              close() { this.isClosed = true; }
            };
            window.said = [];
            window.heard = [];
            window.states = [];
            module.on('lost', ({ events }) => heard.push(events));
            window.other = new BroadcastChannel('sluice events /');
            other.onmessage = ({ data }) => said.push(JSON.stringify(data));
            window.wait = () => new Promise((resolve) => { window.leave = resolve; });
            navigator.locks.request('sluice events /', wait);
            """)
        #expect(try browser.comes("window.leave"))
        try browser.run("module.listen((state) => states.push(state));")
        #expect(try browser.comes("said.length"))
        #expect(try browser.value("said") == "{\"isNew\":true}")
        try browser.run(
            """
            other.postMessage({ state: 'connected' });
            other.postMessage({ kind: 'lost', data: { v: 1, events: 3 } });
            """)
        #expect(try browser.comes("heard.length"))
        #expect(try browser.value("`${made} ${states} ${heard}`") == "0 connecting,connected 3")
        // The other window is closed, or hidden.
        try browser.run("leave(); leave = null;")
        #expect(try browser.comes("window.source"))
        try browser.run(
            """
            source.onopen();
            source.hear.hello({ data: JSON.stringify({ v: 1, version: '1', token: false }) });
            """)
        #expect(try browser.comes("said.at(-1).includes('hello')"))
        // A window that comes later learns what was sent before.
        try browser.run("said.length = 0; other.postMessage({ isNew: true });")
        #expect(try browser.comes("said.length === 2"))
        let known = "{\"state\":\"connected\"},{\"kind\":\"hello\",\"data\":{\"v\":1,"
        #expect(try browser.value("said").hasPrefix(known))
        try browser.run("module.close(); navigator.locks.request('sluice events /', wait);")
        #expect(try browser.comes("source.isClosed"))
        #expect(try browser.comes("window.leave"))
        #expect(try browser.value("made") == "1")
    }
}
