import AccessLogFormat
import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// Clients over TLS and HTTP/2 get the same as over HTTP/1.1 in the clear.
extension Stories {
    @Suite(.tags(.timed, .threads)) struct SecurePlayersTests {}
}

extension Stories.SecurePlayersTests {
    @Test(arguments: Carriage.allCases)
    func `responses have the same bytes over every protocol`(_ carriage: Carriage) throws {
        let stage = try SecureStage([Identity("127.0.0.1")])
        let story = stage.story
        story.cdn.put("/l.m3u8", text: vod(["a.ts", "b.ts?c=1"]))
        let list = "/" + story.cdn.url("/l.m3u8")
        let media = segment("same", 2_000_000)
        let path = "/" + story.cdn.url(media)
        // Read by the player, which makes the daemon fetch it.
        let first = try stage.get(path, by: carriage)
        #expect(first.exit == 0 && first.protocolName == carriage.protocolName, "\(first.errors)")
        #expect(first.status == 200 && isContent(first.body, of: media))
        let tag = try #require(first["ETag"])
        let change = ["--request", "POST", "--header", "Sluice-Request: 1"]
        let requests: [(path: String, options: [String], status: Int)] = [
            (list, [], 200), (path, [], 200), (path, ["--head"], 200),
            (path, ["--range", "1000000-1999998"], 206),
            (path, ["--header", "If-None-Match: \(tag)"], 304),
            (path, ["--range", "3000000-"], 416),
            (
                "/api/pin?url=\(percentEncoded(story.cdn.url("/l.m3u8")))", change,
                200
            ),
            ("/s/none/x.ts", [], 404),
        ]
        for request in requests {
            let plain = try stage.get(request.path, by: .clear, request.options)
            let other = try stage.get(request.path, by: carriage, request.options)
            #expect(other.exit == 0 && other.status == request.status, "\(request) \(other.errors)")
            #expect(other.facts == plain.facts, "\(request)")
            #expect(isSame(other.body, plain.body), "\(request)")
        }
        let part = try stage.get(path, by: carriage, ["--range", "1000000-1999998"])
        #expect(isContent(part.body, of: media, from: 1_000_000, count: 999_999))
        let links = links(try stage.get(list, by: carriage).text)
        #expect(links.count == 2 && links.allSatisfy { $0.hasPrefix("/") })
        #expect(story.cdn.requestCount(media) == 1)
    }

    @Test func `absolute links use the scheme of each request`()
        throws
    {
        let stage = try SecureStage(
            [Identity("127.0.0.1")],
            ["--absolute-urls", "--host-name", "player.test", "--loops", "1"])
        stage.story.cdn.put("/l.m3u8", text: vod(["a.ts", "b.ts"]))
        let list = "/" + stage.story.cdn.url("/l.m3u8")
        for _ in 0..<3 {
            for carriage in Carriage.allCases {
                let answer = try stage.get(list, by: carriage, ["--header", "Host: player.test"])
                let start = carriage.isSecure ? "https://player.test/" : "http://player.test/"
                let links = links(answer.text)
                #expect(links.count == 2 && links.allSatisfy { $0.hasPrefix(start) }, "\(links)")
            }
        }
    }

    @Test(arguments: Carriage.allCases)
    func `a page of another site changes nothing over any protocol`(_ carriage: Carriage)
        throws
    {
        let stage = try SecureStage([Identity("127.0.0.1")])
        let path = "/api/clear"
        let change = ["--request", "POST", "--header", "Sluice-Request: 1"]
        let own = change + ["--header", "Origin: \(stage.base(carriage))"]
        #expect(try stage.get(path, by: carriage, own).status == 200)
        let foreign = change + ["--header", "Origin: https://evil.example"]
        #expect(try stage.get(path, by: carriage, foreign).status == 403)
    }

    @Test(arguments: Carriage.allCases)
    func `the token opens the daemon over every protocol`(_ carriage: Carriage) throws {
        let stage = try SecureStage([Identity("127.0.0.1")], ["--token", "acc3ss-token"])
        let given = ["--header", "Authorization: Bearer acc3ss-token", "--request", "POST"]
        #expect(try stage.get("/api/clear", by: carriage, given).status == 200)
        #expect(try stage.get("/api/clear", by: carriage, ["--request", "POST"]).status == 401)
    }

    @Test(arguments: Carriage.allCases)
    func `a body that the origin cuts is an error at the client`(_ carriage: Carriage) throws {
        let stage = try SecureStage([Identity("127.0.0.1")])
        let media = segment("cut", 2_000_000)
        let fault = "trunc=1000000&chunked=1&noetag=1&lastmod=&fails=1"
        stage.story.cdn.setBehaviour(Behaviour(query: fault), for: media)
        let answer = try stage.get("/" + stage.story.cdn.url(media), by: carriage)
        // An incomplete transfer, a reset connection, or a reset stream (curl(1)).
        #expect([18, 56, 92].contains(answer.exit), "\(answer.exit) \(answer.errors)")
        #expect(answer.status == 200 && answer.body.count < 2_000_000)
        #expect(isContent(answer.body, of: media, count: answer.body.count))
        let again = try stage.get("/" + stage.story.cdn.url(media), by: carriage)
        #expect(again.exit == 0 && isContent(again.body, of: media))
    }

    @Test(.enabled(if: Tool.exists("haproxy"), "needs haproxy"), arguments: ["1.1", "2"])
    func `HAProxy that terminates TLS speaks HTTP/2 to the plain port`(_ version: String) throws {
        let identity = try Identity("tv.example")
        let story = try Story(["--trust-forwarded", "--absolute-urls", "--host-name", "tv.example"])
        let folder = try TemporaryFolder()
        let pair = try readFile(identity.certificate) + readFile(identity.key)
        try writeFile(folder.file("pair.pem"), pair)
        let socket = folder.file("socket")
        let settings = """
            defaults
                mode http
                timeout client 20s
                timeout server 20s
                timeout connect 5s
            frontend tls
                bind unix@\(socket) ssl crt \(folder.file("pair.pem")) alpn h2,http/1.1
                http-request set-header X-Forwarded-Proto https
                default_backend sluice
            backend sluice
                server sluice \(story.daemon.baseURL.dropFirst("http://".count)) proto h2

            """
        try writeFile(folder.file("settings"), settings.utf8)
        let proxy = try ChildProcess(["haproxy", "-db", "-f", folder.file("settings")])
        defer { proxy.end() }
        #expect(eventually { access(socket, F_OK) == 0 })
        let media = segment("proxied", 2_000_000)
        story.cdn.put("/l.m3u8", text: vod(["\(media)"]))
        func get(_ url: String) throws -> CurlAnswer {
            try CurlAnswer(
                Tool.run([
                    "curl", "--silent", "--show-error", "--include", "--http\(version)",
                    "--cacert", identity.authority, "--unix-socket", socket, url,
                ]))
        }
        let list = try get("https://tv.example/" + story.cdn.url("/l.m3u8"))
        #expect(list.exit == 0 && list.protocolName == "HTTP/\(version)", "\(list.errors)")
        let link = try #require(links(list.text).first)
        #expect(link.hasPrefix("https://tv.example/"))
        #expect(isContent(try get(link).body, of: media))
        #expect(try story.stat("http2_requests_total") == 2)
    }

    @Test func `an upgrade to HTTP/2 in the clear is not followed`() throws {
        let stage = try SecureStage([Identity("127.0.0.1")])
        // With --http2 curl requests an upgrade without TLS; the last option counts.
        let answer = try stage.get("/api/health", by: .clear, ["--http2"])
        #expect(answer.status == 200 && answer.protocolName == "HTTP/1.1")
    }

    @Test func `an HTTP/2 head is not reused for HTTP/1.1, however often it occurred`() throws {
        // Repeated heads are known to the loop that parsed them.
        let stage = try SecureStage([Identity("127.0.0.1")], ["--loops", "1"])
        let options = ["--user-agent", "player", "--header", "Accept: */*"]
        for _ in 0..<4 {
            #expect(try stage.get("/api/health", by: .clearHTTP2, options).status == 200)
        }
        let host = stage.story.daemon.baseURL.dropFirst("http://".count)
        // The server's log format of the fields.
        let head =
            "GET /api/health HTTP/2.0\r\nhost: \(host)\r\nuser-agent: player\r\naccept: */*\r\n\r\n"
        #expect(try stage.story.player().sendRaw(head.utf8).readHead().status == 505)
    }

    @Test func `log and figures contain the protocol of each request`() throws {
        let stage = try SecureStage([Identity("127.0.0.1")])
        let media = segment("told", 5_000)
        let path = "/" + stage.story.cdn.url(media)
        var count = 0
        for carriage in Carriage.allCases {
            for _ in 0..<3 {
                #expect(try stage.get(path, by: carriage).status == 200)
                count += 1
                // Each loop writes its line after the response, which the player may see before.
                _ = stage.accessLog(count)
            }
        }
        let lines = stage.accessLog(12)
        let wanted = Carriage.allCases.flatMap { Array(repeating: $0, count: 3) }
        #expect(lines.map { $0[.protocol] } == wanted.map(\.protocolName))
        #expect(lines.map { $0[.tls] } == wanted.map { $0.isSecure ? "TLSv1.3" : nil })
        #expect(lines.allSatisfy { $0[.client] == "127.0.0.1" })
        // Including the one that requests the figures.
        #expect(try stage.story.stat("http1_requests_total") == 7)
        #expect(try stage.story.stat("http2_requests_total") == 6)
        #expect(try stage.story.stat("tls_handshakes_full_total") == 6)
        let metrics = try stage.story.follow("/metrics").text
        #expect(metrics.contains("# TYPE sluice_http2_requests_total counter"))
        #expect(metrics.contains("\nsluice_tls_handshakes_full_total 6\n"))
        #expect(metrics.contains("\nsluice_tls_handshakes_resumed_total 0\n"))
        #expect(metrics.contains("\nsluice_tls_handshakes_failed_total 0\n"))
    }

    @Test(arguments: [Carriage.clearHTTP2, .secureHTTP2])
    func `a hundred HTTP/2 connections wait for one reload of the origin`(
        _ carriage: Carriage
    ) throws {
        let identity = try Identity("127.0.0.1")
        let stage = try LowLatencyStage(["--tls-port", "0"] + identity.options)
        let daemon = stage.story.daemon
        let base = carriage.isSecure ? try #require(daemon.secureURL) : daemon.baseURL
        let (number, part) = stage.stream.position
        let folder = try TemporaryFolder()
        let files = (0..<100).map { folder.file("\($0)") }
        let transfers = files.flatMap { ["--output", $0, base + stage.next] }
        let command =
            ["curl", "--silent", "--show-error", "--noproxy", "*", "--parallel"]
            + ["--parallel-immediate", "--parallel-max", "100"]
            + carriage.options(identity.authority) + transfers
        let waiting = Background { try Tool.run(command) }
        // All of them, and the one that requests the figures.
        #expect(try stage.story.settled("connections", within: .seconds(30)) { $0 == 101 } == 101)
        let arePending = try stage.story.settled("http2_requests_total") { $0 == 100 }
        #expect(arePending == 100)
        #expect(eventually { stage.story.cdn.activeRequests == 1 })
        stage.stream.advance()
        let result = try waiting.value(within: .seconds(30))
        #expect(result.status == 0, "\(result.stderr)")
        let lists = try files.map { String(decoding: try readFile($0), as: UTF8.self) }
        #expect(Set(lists).count == 1 && lists[0].hasPrefix("#EXTM3U"))
        let last = links(
            lists[0].split(separator: "\n").last { $0.hasPrefix("#EXT-X-PART:") }
                .map(String.init) ?? ""
        ).first.flatMap(originName)
        #expect(last == "s\(number).p\(part).ts")
        #expect(stage.reloads == 1)
    }
}
