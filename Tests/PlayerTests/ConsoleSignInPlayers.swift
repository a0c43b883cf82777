// Signing in and out of the console in a real browser.
import FixtureCDN
import ScenarioSupport
import Testing

@Suite(
    .serialized, .timeLimit(.minutes(5)), .tags(.players), .grouped,
    .enabled(if: Tool.exists("chromedriver"), "needs chromium-driver"))
struct ConsoleSignInPlayers {
    private static let token = "acc3ss-token"

    private func signIn(_ browser: Browser) throws {
        try browser.run(
            """
            document.getElementById('token').value = '\(Self.token)';
            document.getElementById('sign-in-form').requestSubmit();
            """)
    }

    /// A page that asks for the token.
    private func browser(_ stage: Stage, _ view: String) throws -> Browser {
        let browser = try Browser()
        try browser.open(stage.daemon.baseURL + "/#\(view)")
        #expect(try browser.comes("!document.getElementById('sign-in').hidden"))
        return browser
    }

    @Test func `a page that is signed out asks nothing and leaves the focus where it is`() throws {
        let stage = try Stage(["--token", Self.token])
        let browser = try browser(stage, "library")
        try signIn(browser)
        #expect(
            try browser.comes("document.getElementById('feeds').innerText.includes('No feeds')"))
        try browser.run("document.getElementById('sign-out').click()")
        #expect(try browser.comes("!document.getElementById('sign-in').hidden"))
        try browser.run(
            """
            const real = window.fetch;
            window.asked = 0;
            window.fetch = (...all) => { window.asked += 1; return real(...all); };
            window.since = Date.now();
            document.querySelector('.brand').focus();
            dispatchEvent(new Event('sign-in'));
            """)
        // Twice the time in which the library reads its feeds.
        #expect(try browser.comes("Date.now() - window.since > 4500"))
        #expect(try browser.value("window.asked") == "0")
        #expect(try browser.value("document.activeElement.className") == "brand")
    }

    @Test func `only a wrong token is called one, and a cookie that is not kept is told of`()
        throws
    {
        let stage = try Stage(["--token", Self.token])
        let browser = try browser(stage, "play")
        let error = "document.getElementById('sign-in-error').innerText"
        try browser.run("window.real = window.fetch; window.fetch = () => Promise.reject(1);")
        try signIn(browser)
        #expect(try browser.comes("\(error) === 'the daemon does not answer'"))
        // As a browser that keeps no cookies.
        try browser.run(
            "window.fetch = (url, given) => real(url, { ...given, credentials: 'omit' });")
        try signIn(browser)
        #expect(try browser.comes("\(error).includes('kept no cookie')"))
        try browser.run("window.fetch = real;")
        try signIn(browser)
        #expect(try browser.comes("document.querySelector('.dot.connected')"))
        #expect(try browser.value(error) == "")
    }
}
