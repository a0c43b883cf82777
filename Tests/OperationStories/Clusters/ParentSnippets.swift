import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// The manual's settings for other caches, each in the program that it is for.
extension Stories {
    @Suite(.tags(.crowded)) struct ParentSnippets {}
}

extension Stories.ParentSnippets {
    private static let nginx = "/usr/sbin/nginx"
    private static let varnish = "/usr/sbin/varnishd"

    private static func snippet(_ name: String) throws -> String {
        String(decoding: try readFile(Fixture.path("cluster/\(name)")), as: UTF8.self)
    }

    /// Plays a stream through a daemon and its parent, and verifies that a second daemon gets it
    /// from the parent.
    private func expectPlays(_ parent: String, _ cdn: FixtureCDN) throws {
        let path = "/bytes/90000/a%20b.ts"
        for name in [path, "/bytes/90000/a b.ts", "/l.m3u8", "/s.ts"] {
            cdn.setBehaviour("cc=max-age=60", for: name)
        }
        cdn.put("/l.m3u8", text: vod(["s.ts?x=a//b&y=%2F"]))
        cdn.put("/s.ts", text: "a segment")
        let template = "\(parent)/{scheme}/{host}{path}"
        for _ in 0..<2 {
            let story = try Story(["--parent", template])
            let whole = try story.player().get(story.url(for: cdn.url(path)))
            #expect(whole.status == 200 && isContent(whole.body, of: "/bytes/90000/a b.ts"))
            let list = try story.player().get(story.url(for: cdn.url("/l.m3u8")))
            #expect(try story.follow(uriLines(list.text)[0]).text == "a segment")
            let said = list.fields.filter { $0.name.lowercased() == "cache-status" }
            #expect(said.count == 2 && said.last?.value.hasPrefix("sluice") == true)
            let missing = try story.player().get(story.url(for: cdn.url("/none.ts")))
            #expect(missing.status == 404)
            #expect(try story.stat("parent_requests_total") == 4)
            #expect(try story.stat("parent_failures_total") == 0)
        }
        for target in [path, "/l.m3u8", "/s.ts?x=a//b&y=%2F"] {
            #expect(cdn.requests.count { $0.target == target } == 1, "\(target)")
        }
        #expect(cdn.requests.allSatisfy { $0["CDN-Loop"] != nil && $0["Via"] != nil })
    }

    @Test(.enabled(if: access(nginx, X_OK) == 0, "needs nginx"))
    func `nginx is a parent with the settings of the manual`() throws {
        let cdn = FixtureCDN()
        try cdn.start()
        defer { cdn.stop() }
        let folder = try TemporaryFolder()
        let port = try freePort()
        let settings = try Self.snippet("nginx-parent.conf")
            .replacing("127.0.0.1:8081", with: "127.0.0.1:\(port)")
            .replacing("/var/cache/nginx/parent", with: folder.makeFolder("parent"))
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map {
            "\($0)_temp_path \(folder.makeFolder($0));"
        }
        let text = """
            daemon off; master_process off; pid \(folder.file("pid"));
            events {}
            http { access_log off; \(temporary.joined(separator: " "))
            \(settings)
            }
            """
        try writeFile(folder.file("nginx.conf"), text.utf8)
        let child = try ChildProcess(
            [Self.nginx, "-p", folder.path, "-c", folder.file("nginx.conf"), "-e", "stderr"])
        defer { child.end() }
        try expectStarted(child, port)
        try expectPlays("http://127.0.0.1:\(port)", cdn)
    }

    @Test(.enabled(if: access(varnish, X_OK) == 0, "needs varnish"))
    func `Varnish is a parent with the settings of the manual`() throws {
        let cdn = FixtureCDN()
        try cdn.start()
        defer { cdn.stop() }
        let folder = try TemporaryFolder()
        let port = try freePort()
        let settings = try Self.snippet("varnish-parent.vcl")
            .replacing("192.0.2.1", with: "127.0.0.1")
            .replacing(".port = \"80\"", with: ".port = \"\(cdn.port)\"")
            .replacing("cdn.example.com", with: "127.0.0.1:\(cdn.port)")
        try writeFile(folder.file("parent.vcl"), settings.utf8)
        let child = try ChildProcess([
            Self.varnish, "-F", "-j", "none", "-n", folder.makeFolder("work"), "-f",
            folder.file("parent.vcl"), "-a", "127.0.0.1:\(port)", "-s", "malloc,16m",
        ])
        defer { child.end() }
        try expectStarted(child, port)
        try expectPlays("http://127.0.0.1:\(port)", cdn)
    }

    private func expectStarted(_ child: ChildProcess, _ port: UInt16) throws {
        let isUp = eventually(within: .seconds(30)) {
            child.exit != nil
                || (try? ScriptedPlayer("http://127.0.0.1:\(port)").get("/")) != nil
        }
        guard isUp, child.exit == nil else {
            throw ScenarioFailure(String(decoding: child.standardError, as: UTF8.self))
        }
    }
}
