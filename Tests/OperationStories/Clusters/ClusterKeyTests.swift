import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// Stories of daemons that share a file of keys: any of them answers what another one wrote.
extension Stories {
    @Suite(.tags(.crowded)) struct ClusterKeyTests {}
}

/// Two daemons with the same file of keys, without a balancer: a story asks the one that it means.
private final class Pair {
    let cdn = FixtureCDN()
    let folder: TemporaryFolder
    let key: String
    private(set) var nodes: [DaemonProcess] = []
    private let arguments: [String]

    init(_ arguments: [String] = []) throws {
        folder = try TemporaryFolder()
        key = try Cluster.key(folder.file("cluster.key"))
        self.arguments = arguments
        try cdn.start()
        nodes = try (0..<2).map { try serve("node\($0)") }
    }

    deinit {
        for node in nodes { node.kill(SIGKILL) }
        for node in nodes { _ = try? node.waitForExit() }
        cdn.stop()
    }

    private func serve(_ name: String) throws -> DaemonProcess {
        try Story.serve(folder.makeFolder(name), arguments + ["--cluster-key", key])
    }

    /// Ends a node and starts another one in its place that knows nothing.
    func replace(_ number: Int) throws {
        try nodes[number].terminate()
        nodes[number] = try serve("fresh\(number)")
    }

    func get(_ target: String, from node: Int) throws -> PlayerResponse {
        try ScriptedPlayer(nodes[node].baseURL).get(target)
    }

    func entry(_ path: String, _ arguments: String) -> String {
        "/proxy?url=\(percentEncoded(cdn.url(path)))&\(arguments)"
    }

    /// The targets of the URI lines of a list.
    func links(_ target: String, from node: Int) throws -> [String] {
        let answer = try get(target, from: node)
        #expect(answer.status == 200, "\(answer.text)")
        return uriLines(answer.text).map { resolved($0, at: target) }
    }

    /// A stream whose playlists and segments need a header.
    func putGuarded(_ count: Int = 3) {
        cdn.put("/g/m.m3u8", text: "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nl.m3u8\n")
        cdn.put("/g/l.m3u8", text: vod((0..<count).map { "s\($0).ts" }))
        for number in 0..<count { cdn.put("/g/s\(number).ts", text: "guarded \(number)") }
        for path in ["m.m3u8", "l.m3u8"] + (0..<count).map({ "s\($0).ts" }) {
            cdn.setBehaviour("needheader=X-Pass:open", for: "/g/\(path)")
        }
    }

    var guarded: String { entry("/g/m.m3u8", "h_X-Pass=open&h_Referer=https%3A%2F%2Fa.example%2F") }
}

extension Stories.ClusterKeyTests {
    @Test func `headers travel with links, to another node and to one that has just begun`() throws
    {
        let pair = try Pair()
        pair.putGuarded()
        let list = try #require(try pair.links(pair.guarded, from: 0).first)
        let links = try pair.links(list, from: 1)
        #expect(links.count == 3)
        for (number, link) in links.enumerated() {
            #expect(try pair.get(link, from: number % 2).text == "guarded \(number)")
        }
        try pair.replace(0)
        try pair.replace(1)
        #expect(try pair.get(links[2], from: 0).text == "guarded 2")
        #expect(try pair.get(list, from: 1).status == 200)
        // Both write the same text, and what a list was asked with is not written a second time.
        let texts = try (0..<2).map { try pair.get(list, from: $0).text }
        #expect(texts[0] == texts[1] && texts[0].contains("\n../../s/"))
    }

    @Test func `no link of headers is written that another could lead elsewhere`() throws {
        let pair = try Pair()
        pair.putGuarded()
        let list = try #require(try pair.links(pair.guarded, from: 0).first)
        let link = try #require(try pair.links(list, from: 0).first)
        let parts = link.split(separator: "/").map(String.init)
        let bare = "/" + parts.dropFirst(2).joined(separator: "/")
        #expect(try pair.get(bare, from: 0).status == 403)
        // At a node that does not know the session it has no headers.
        #expect(try pair.get(bare, from: 1).status == 403)
        #expect(pair.cdn.requests.allSatisfy { $0.path != "/g/s0.ts" || $0.status != 200 })
        var status: Set<Int> = []
        for index in stride(from: 0, to: parts[1].count, by: 7) {
            let cut = parts[1].prefix(index)
            var changed = Array(parts[1])
            changed[index] = changed[index] == "A" ? "B" : "A"
            for text in [String(cut), String(changed)] {
                let answer = try pair.get(
                    "/c/\(text)/" + parts.dropFirst(2).joined(separator: "/"), from: 0)
                status.insert(answer.status)
            }
        }
        #expect(status.isSubset(of: [403, 404, 410]))
        #expect(try pair.get(link, from: 1).text == "guarded 0")
    }

    @Test func `entries of a channel list take their headers to another node`() throws {
        let pair = try Pair()
        pair.putGuarded()
        pair.cdn.put(
            "/channels.m3u",
            text: "#EXTM3U\n#EXTINF:-1,One\n\(pair.cdn.url("/g/l.m3u8"))|X-Pass=open\n"
                + "#EXTINF:-1,Two\n\(pair.cdn.url("/g/l.m3u8"))\n")
        let links = try pair.links("/\(pair.cdn.url("/channels.m3u"))", from: 0)
        #expect(try pair.links(links[0], from: 1).count == 3)
        // That node has stored nothing yet: it would answer a list that is shared.
        #expect(try pair.get(links[1], from: 0).status == 403)
    }

    @Test func `a window of time shift is kept by the node that reads its list`() throws {
        let pair = try Pair()
        let window = ShiftedStream.window()
        _ = pair.cdn.live("/l.m3u8", window)
        pair.cdn.put("/m.m3u8", text: "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nl.m3u8\n")
        let entry = "/dvr=1h/\(pair.cdn.url("/m.m3u8"))"
        let list = try #require(try pair.links(entry, from: 0).first)
        #expect(try pair.links(list, from: 1).count == 3)
        for count in 4...6 {
            window.advance(by: 1)
            #expect(try eventually { try pair.links(list, from: 1).count == count })
        }
        let first = try #require(try pair.links(list, from: 1).first)
        #expect(try pair.get(first, from: 0).status == 200)
    }

    @Test func `long URLs are read by every node`() throws {
        let pair = try Pair()
        let token = (0..<300).map { "\($0 * 7_919)" }.joined()
        pair.cdn.put("/l.m3u8", text: vod(["a.ts?token=\(token)", "b.ts?token=\(token)"]))
        for name in ["a", "b"] { pair.cdn.put("/\(name).ts", text: name) }
        let links = try pair.links("/\(pair.cdn.url("/l.m3u8"))", from: 0)
        #expect(links.allSatisfy { $0.utf8.count < token.utf8.count })
        #expect(try pair.get(links[1], from: 1).text == "b")
        #expect(
            try sluice("decode", links[0]).stdout == pair.cdn.url("/a.ts?token=\(token)") + "\n")
        #expect(
            pair.cdn.requests.contains { $0.target == "/b.ts?token=\(token)" })
    }

    @Test func `variables of a multivariant playlist reach the node that reads the media playlist`()
        throws
    {
        let pair = try Pair()
        pair.cdn.put(
            "/m.m3u8",
            text: """
                #EXTM3U
                #EXT-X-VERSION:8
                #EXT-X-DEFINE:NAME="folder",VALUE="deep"
                #EXT-X-STREAM-INF:BANDWIDTH=1
                l.m3u8

                """)
        pair.cdn.put(
            "/l.m3u8", text: vod(["{$folder}/a.ts"], head: ["#EXT-X-DEFINE:IMPORT=\"folder\""]))
        pair.cdn.put("/deep/a.ts", text: "deep")
        let list = try #require(try pair.links("/\(pair.cdn.url("/m.m3u8"))", from: 0).first)
        let link = try #require(try pair.links(list, from: 1).first)
        #expect(try pair.get(link, from: 0).text == "deep")
    }

    @Test(arguments: [false, true])
    func `a cookie of the playlist is known where segments are asked for`(_ isLive: Bool) throws {
        let pair = try Pair()
        let names = (0..<3).map { "s\($0).ts" }
        if isLive {
            _ = pair.cdn.live("/l.m3u8", liveWindow())
        } else {
            pair.cdn.put("/l.m3u8", text: vod(names))
        }
        pair.cdn.setBehaviour("cookie=pass=secret; Path=/; Max-Age=600", for: "/l.m3u8")
        for name in names {
            pair.cdn.put("/\(name)", text: name)
            pair.cdn.setBehaviour("needcookie=pass=secret", for: "/\(name)")
        }
        let entry = "/\(pair.cdn.url("/l.m3u8"))"
        let links = try pair.links(entry, from: 0)
        for (number, link) in links.enumerated() {
            #expect(!link.contains("secret"))
            #expect(try pair.get(link, from: 1).text == names[number])
        }
        // Of another session, or changed, it is as none; and it goes to its own host alone.
        let other = try #require(try pair.links(entry + "?other", from: 1).first)
        #expect(other.split(separator: "c=").last != links[0].split(separator: "c=").last)
        let plain = try pair.get(String(links[0].prefix { $0 != "?" }), from: 0)
        #expect(plain.status == 200)
        try pair.replace(0)
        #expect(try pair.get(links[2].dropLast(9) + "AAAAAAAAA", from: 0).status == 403)
        #expect(try pair.get(links[1], from: 0).text == names[1])
    }

    @Test func `a cookie goes on to the node that reads the next playlist`() throws {
        let pair = try Pair()
        pair.cdn.put("/m.m3u8", text: "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nl.m3u8\n")
        pair.cdn.setBehaviour("cookie=pass=secret; Path=/", for: "/m.m3u8")
        pair.cdn.put("/l.m3u8", text: vod(["a.ts"]))
        pair.cdn.put("/a.ts", text: "a")
        for path in ["/l.m3u8", "/a.ts"] {
            pair.cdn.setBehaviour("needcookie=pass=secret", for: path)
        }
        let list = try #require(try pair.links("/\(pair.cdn.url("/m.m3u8"))", from: 0).first)
        let link = try #require(try pair.links(list, from: 1).first)
        try pair.replace(0)
        #expect(try pair.get(link, from: 0).text == "a")
    }

    @Test func `a list that is requested again has the cookies that were set since`() throws {
        // One loop, which repeats its responses to heads that it has received before.
        let pair = try Pair(["--loops", "1"])
        pair.cdn.put("/l.m3u8", text: vod(["a.ts", "b.ts"]))
        pair.cdn.setBehaviour("cookie=pass=old; Path=/", for: "/l.m3u8")
        pair.cdn.put("/a.ts", text: "a")
        pair.cdn.setBehaviour("cookie=pass=new; Path=/", for: "/a.ts")
        pair.cdn.put("/b.ts", text: "b")
        pair.cdn.setBehaviour("needcookie=pass=new", for: "/b.ts")
        let entry = "/\(pair.cdn.url("/l.m3u8"))"
        let before = try (0..<4).map { _ in try pair.links(entry, from: 0) }
        #expect(try pair.get(before[3][0], from: 0).text == "a")
        let after = try pair.links(entry, from: 0)
        #expect(try pair.get(after[1], from: 1).text == "b")
    }

    @Test func `keys change in three steps without an error for anybody`() throws {
        let pair = try Pair()
        pair.putGuarded()
        let window = liveWindow()
        _ = pair.cdn.live("/live.m3u8", window)
        for number in 0..<100 { pair.cdn.put("/s\(number).ts", text: "\(number)") }
        let entry = pair.entry("/live.m3u8", "h_X-Pass=open")
        pair.cdn.put("/lm.m3u8", text: "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nlive.m3u8\n")
        let master = pair.entry("/lm.m3u8", "h_X-Pass=open")
        let list = try #require(try pair.links(master, from: 0).first)
        let before = try pair.links(list, from: 0)
        let text = try pair.get(entry, from: 0).text

        func step(_ flag: String) throws {
            let done = try sluice("cluster", "key", pair.key, flag)
            #expect(done.status == 0, "\(done.stderr)")
            for node in pair.nodes {
                let count = node.standardError.ranges(of: "cluster keys in force").count
                node.kill(SIGHUP)
                #expect(
                    eventually {
                        node.standardError.ranges(of: "cluster keys in force").count > count
                    })
            }
        }
        try step("--add")
        #expect(try pair.get(entry, from: 0).text == text)
        try step("--promote")
        // New players get the new key; one that plays a live list keeps its paths.
        #expect(try pair.get(entry, from: 0).text != text)
        #expect(try pair.links(list, from: 0) == before)
        #expect(try pair.get(before[0], from: 1).text == "0")
        let renewed = try #require(try pair.links(master, from: 1).first)
        #expect(renewed != list)
        #expect(try pair.get(try pair.links(renewed, from: 0)[0], from: 1).text == "0")
        try step("--retire")
        let retired = try pair.get(before[0], from: 1)
        #expect(retired.status == 410 && retired.text.contains("open the entry URL again"))
        #expect(try pair.get(renewed, from: 0).status == 200)
    }

    @Test func `decode shows what a link carries, without secrets`() throws {
        let pair = try Pair()
        pair.putGuarded()
        let entry = pair.entry(
            "/g/m.m3u8", "h_X-Pass=open&h_User-Agent=Player%2F1&dvr=2h&h_Cookie=a%3Dsecret")
        let link = try #require(try pair.links(entry, from: 0).first)
        let shown = try sluice("decode", "--cluster-key", pair.key, link)
        #expect(shown.status == 0)
        #expect(shown.stdout.contains(pair.cdn.url("/g/l.m3u8") + "\n"))
        #expect(shown.stdout.contains("  dvr: 7200s\n  X-Pass: ***\n  User-Agent: Player/1\n"))
        #expect(!shown.stdout.contains("secret") && !shown.stdout.contains("open"))
        let other = try Cluster.key(pair.folder.file("other.key"))
        let refused = try sluice("decode", "--cluster-key", other, link)
        #expect(refused.status == 1 && refused.stderr.contains("sealed with the key"))
        #expect(try sluice("decode", link).stdout == pair.cdn.url("/g/l.m3u8") + "\n")
    }

    @Test func `a file of keys that is not usable ends the start, and says what to do`() throws {
        let folder = try TemporaryFolder()
        let key = try Cluster.key(folder.file("key"))
        func start(_ path: String) throws -> Tool.Result {
            try sluice(
                "serve", "--port", "0", "--cache-dir", folder.file("c"), "--cluster-key", path)
        }
        #expect(try sluice("cluster", "key", key).stderr.contains("--add appends"))
        var found = stat()
        #expect(stat(key, &found) == 0 && found.st_mode & 0o777 == 0o600)
        chmod(key, 0o644)
        let open = try start(key)
        #expect(open.status == 78 && open.stderr.contains("chmod 600"))
        #expect(open.stderr.contains("chown it to the user of the daemon"), "\(open.stderr)")
        let missing = try start(folder.file("missing"))
        #expect(missing.status == 78 && missing.stderr.contains("sluice cluster key"))
        try writeFile(folder.file("short"), Array("abc\n".utf8))
        chmod(folder.file("short"), 0o600)
        #expect(try start(folder.file("short")).stderr.contains("line 1"))
        #expect(try start(folder.file("c")).status == 78)
        let pair = try Pair()
        chmod(pair.key, 0o644)
        pair.nodes[0].kill(SIGHUP)
        #expect(eventually { pair.nodes[0].standardError.contains("configuration not changed") })
        pair.putGuarded()
        #expect(try pair.get(pair.guarded, from: 0).status == 200)
    }

    @Test func `more headers than links carry are refused at the entry`() throws {
        let pair = try Pair()
        pair.putGuarded()
        let long = String(repeating: "x", count: 6_000)
        let refused = try pair.get(pair.entry("/g/l.m3u8", "h_X-Pass=\(long)"), from: 0)
        #expect(refused.status == 400 && refused.text.contains("hold at most"))
    }

    @Test func `a daemon without keys refuses what a cluster sealed, in words`() throws {
        let pair = try Pair()
        pair.putGuarded()
        let link = try #require(try pair.links(pair.guarded, from: 0).first)
        let story = try Story()
        let answer = try story.follow(link)
        #expect(answer.status == 404 && answer.text.contains("--cluster-key"))
        // It writes links as ever.
        let entry = "/proxy?url=\(percentEncoded(pair.cdn.url("/g/m.m3u8")))&h_X-Pass=open"
        #expect(try story.follow(entry).text.contains("\n/p/"))
    }
}
