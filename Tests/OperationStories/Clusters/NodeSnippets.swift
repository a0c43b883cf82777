import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// The manual's settings for other programs before several daemons.
extension Stories {
    @Suite(.tags(.crowded)) struct NodeSnippets {}
}

extension Stories.NodeSnippets {
    private static let nginx = "/usr/sbin/nginx"
    private static let varnish = "/usr/sbin/varnishd"

    /// Starts three daemons that share a file of keys; returns the text of a snippet with their ports.
    private func stage(
        _ name: String, _ folder: TemporaryFolder
    ) throws -> (nodes: [DaemonProcess], settings: String) {
        let key = try Cluster.key(folder.file("cluster.key"))
        let nodes = try (1...3).map {
            try Story.serve(folder.makeFolder("node\($0)"), ["--cluster-key", key])
        }
        var text = String(
            decoding: try readFile(Fixture.path("cluster/\(name)")), as: UTF8.self)
        for (number, node) in nodes.enumerated() {
            let port = node.baseURL.split(separator: ":").last.map(String.init) ?? ""
            text = text.replacing("900\(number + 1)", with: port)
        }
        return (nodes, text)
    }

    /// Plays guarded streams, whose sessions have headers, and verifies that each segment was fetched
    /// once, and by several nodes; then that a node's end is seen by nobody.
    private func expectPlays(_ url: String, _ nodes: [DaemonProcess], _ cdn: FixtureCDN) throws {
        let names = (0..<12).map { "s\($0).ts" }
        cdn.put("/m.m3u8", text: "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nl.m3u8\n")
        cdn.put("/l.m3u8", text: vod(names.map { $0 + "?x=a//b&y=%2F" }))
        for name in names {
            cdn.put("/\(name)", text: name)
            cdn.setBehaviour("needheader=X-Pass:open", for: "/\(name)")
        }
        func play(_ viewer: Int) throws -> Int {
            let player = ScriptedPlayer(url)
            // One after the other: a new header makes another session with another text in front.
            let entry =
                "/proxy?url=\(percentEncoded(cdn.url("/m.m3u8")))&h_X-Pass=open&h_X-Name=\(viewer)"
            let master = try player.get(entry)
            let list = try #require(uriLines(master.text).first, "\(master.text)")
            let links = uriLines(try player.get(list).text).map { resolved($0, at: list) }
            return try links.enumerated().filter { number, link in
                try player.get(link).text == names[number]
            }.count
        }
        #expect(try play(1) == 12)
        #expect(try play(1) == 12)
        let counts = names.map { cdn.requestCount("/\($0)") }
        #expect(counts.allSatisfy { $0 == 1 }, "\(counts)")
        nodes[1].kill(SIGKILL)
        _ = try nodes[1].waitForExit()
        #expect(try play(1) == 12)
        #expect(try play(2) == 12)
    }

    @Test(.enabled(if: access(nginx, X_OK) == 0, "needs nginx"))
    func `nginx spreads players over nodes with the settings of the manual`() throws {
        let cdn = FixtureCDN()
        try cdn.start()
        defer { cdn.stop() }
        let folder = try TemporaryFolder()
        let (nodes, settings) = try stage("nginx-nodes.conf", folder)
        let port = try freePort()
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map {
            "\($0)_temp_path \(folder.makeFolder($0));"
        }
        let text = """
            daemon off; master_process off; pid \(folder.file("pid"));
            events {}
            http { access_log off; \(temporary.joined(separator: " "))
            \(settings.replacing("listen 8080", with: "listen 127.0.0.1:\(port)"))
            }
            """
        try writeFile(folder.file("nginx.conf"), text.utf8)
        let child = try ChildProcess(
            [Self.nginx, "-p", folder.path, "-c", folder.file("nginx.conf"), "-e", "stderr"])
        defer { child.end() }
        try expectStarted(child, port)
        try expectPlays("http://127.0.0.1:\(port)", nodes, cdn)
    }

    @Test(.enabled(if: access(varnish, X_OK) == 0, "needs varnish"))
    func `Varnish spreads players over nodes with the settings of the manual`() throws {
        let cdn = FixtureCDN()
        try cdn.start()
        defer { cdn.stop() }
        let folder = try TemporaryFolder()
        let (nodes, settings) = try stage("varnish-nodes.vcl", folder)
        let port = try freePort()
        try writeFile(folder.file("nodes.vcl"), settings.utf8)
        let child = try ChildProcess([
            Self.varnish, "-F", "-j", "none", "-n", folder.makeFolder("work"), "-f",
            folder.file("nodes.vcl"), "-a", "127.0.0.1:\(port)", "-s", "malloc,16m",
        ])
        defer { child.end() }
        try expectStarted(child, port)
        try expectPlays("http://127.0.0.1:\(port)", nodes, cdn)
    }

    private func expectStarted(_ child: ChildProcess, _ port: UInt16) throws {
        let isUp = eventually(within: .seconds(30)) {
            child.exit != nil
                || (try? ScriptedPlayer("http://127.0.0.1:\(port)").get("/api/health"))?.status
                    == 200
        }
        guard isUp, child.exit == nil else {
            throw ScenarioFailure(String(decoding: child.standardError, as: UTF8.self))
        }
    }
}
