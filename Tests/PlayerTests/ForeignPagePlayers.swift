// What scripts of pages can read through the daemon, in a browser: decision 18.
import FixtureCDN
import ScenarioSupport
import Testing

@Suite(
    .timeLimit(.minutes(5)), .tags(.players), .grouped,
    .enabled(if: Tool.exists("chromium"), "needs chromium"))
struct ForeignPagePlayers {
    @Test func `Chromium lets a foreign page read nothing of a private network`() throws {
        let stage = try Stage()
        stage.cdn.put("/secret.html", text: "<html>secret", contentType: "text/html")
        let urls = [
            stage.through(.transportStream), stage.through(stage.cdn.url("/secret.html")),
            stage.daemon.baseURL + "/api/stats",
        ]
        #expect(try read(urls, on: "localhost") == "200 no no")
        #expect(try read(urls, on: "evil.example") == "no no no")
    }

    /// What a page of a host can read of some URLs: the status of each, or `no`.
    private func read(_ urls: [String], on host: String) throws -> String {
        let site = FixtureCDN()
        try site.start()
        defer { site.stop() }
        let list = urls.map { "\"\($0)\"" }.joined(separator: ",")
        site.put(
            "/page.html",
            text: """
                <!doctype html><meta charset="utf-8"><title>Reader</title><script>
                onload = async () => {
                  const found = [];
                  for (const url of [\(list)]) {
                    try { found.push((await fetch(url)).status); } catch { found.push("no"); }
                  }
                  fetch("/report?" + found.join("+"));
                };
                </script>
                """)
        let profile = try TemporaryFolder()
        let browser = try ChildProcess([
            "chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
            "--user-data-dir=\(profile.path)", "--host-resolver-rules=MAP evil.example 127.0.0.1",
            "http://\(host):\(site.port)/page.html",
        ])
        defer { browser.end() }
        let report = { site.requests.first { $0.path == "/report" }?.target }
        _ = eventually(within: .seconds(40)) { report() != nil }
        let words = report()?.dropFirst("/report?".count).split(separator: "+") ?? []
        return words.joined(separator: " ")
    }
}
