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
}
