import FixtureCDN
import ScenarioSupport
import Testing

/// Connections to the origins in a playlist, opened before the player requests its segments.
extension Stories {
    @Suite(.tags(.timed)) struct EarlyConnections {
        /// A playlist on the story's CDN with its segments elsewhere.
        private func list(_ story: Story, _ segments: [String]) throws -> [String] {
            let entries = segments.map { "#EXTINF:4,\n\($0)\n" }.joined()
            story.cdn.put(
                "/list.m3u8", text: "#EXTM3U\n#EXT-X-TARGETDURATION:4\n\(entries)#EXT-X-ENDLIST\n")
            return try story.get("/list.m3u8").text.split(separator: "\n").map(String.init)
                .filter { !$0.hasPrefix("#") }
        }

        private func count(_ story: Story, _ result: String) throws -> Int {
            let name = "sluice_origin_early_connections_total{result=\"\(result)\"} "
            let text = try story.player().get("/metrics").text
            let line = text.split(separator: "\n").first { $0.hasPrefix(name) }
            return try #require(line.flatMap { Int($0.dropFirst(name.count)) }, "no \(name)")
        }

        private func started(address: String = "127.0.0.1") throws -> FixtureCDN {
            let cdn = FixtureCDN(address: address)
            try cdn.start()
            return cdn
        }

        @Test
        func `the first segment finds a connection to its host, which carried no request`() throws {
            let story = try Story()
            let other = try started(address: "127.0.0.2")
            defer { other.stop() }
            let path = segment("a", 40_000)
            let links = try list(story, [other.url(path)])
            #expect(try eventually { try count(story, "opened") == 1 })
            #expect(eventually { other.acceptedConnections == 1 } && other.requestCount() == 0)
            #expect(isContent(try story.player().get(links[0]).body, of: path))
            #expect(other.acceptedConnections == 1 && other.requestCount() == 1)
        }

        @Test(
            .enabled(if: NginxFront.isAvailable, "needs nginx and openssl"),
            arguments: [true, false])
        func `over TLS the first segment finds the handshake done`(http2: Bool) throws {
            let other = try started()
            defer { other.stop() }
            let front = try NginxFront(.proxy(other), http2: http2)
            defer { front.stop() }
            let folder = try TemporaryFolder()
            let log = folder.path + "/access.log"
            let story = try Story(["--ca-file", front.caFile, "--access-log", log])
            let path = segment("a", 40_000)
            let links = try list(story, [front.url(path)])
            #expect(try eventually { try count(story, "opened") == 1 })
            #expect(isContent(try story.player().get(links[0]).body, of: path))
            #expect(try story.stat("origin_tls_full_total") == 1)
            #expect(other.requestCount() == 1)
            #expect(
                eventually {
                    let text = String(decoding: (try? readFile(log)) ?? [], as: UTF8.self)
                    let line = text.split(separator: "\n").first { $0.contains("/a.ts") }
                    return line?.contains("connection=reused") == true
                })
        }

        @Test func `a segment waits for the pending connection and opens no other`() throws {
            let gate = Barrier("the connection to the origin")
            let proxy = try WayOutProxy(.socks5, gate: gate)
            defer { proxy.stop() }
            let story = try Story(["--origin-proxy", "localhost=socks5h://127.0.0.1:\(proxy.port)"])
            let other = try started()
            defer { other.stop() }
            let path = segment("a", 40_000)
            let url = "http://localhost:\(other.port)\(path)"
            let links = try list(story, [url])
            let answer = Background { try story.player().get(links[0]) }
            // The pending connection holds a slot, and so does the segment that waits for it.
            #expect(try story.settled("slots_in_use") { $0 == 2 } == 2)
            gate.arrive()
            #expect(isContent(try answer.value().body, of: path))
            #expect(proxy.asked.count == 1 && other.acceptedConnections == 1)
        }

        @Test func `no more than two hosts of a playlist are connected to`() throws {
            let story = try Story()
            let others = try (0..<3).map { _ in try started() }
            defer { for other in others { other.stop() } }
            _ = try list(story, others.map { $0.url(segment("a", 1_000)) })
            #expect(try eventually { try count(story, "opened") == 2 })
            #expect(eventually { others.map(\.acceptedConnections) == [1, 1, 0] })
        }

        @Test func `an idle connection is left as it is`() throws {
            let story = try Story()
            _ = try list(story, [segment("a", 1_000)])
            #expect(try eventually { try count(story, "present") == 1 })
            #expect(story.cdn.acceptedConnections == 1)
            #expect(try count(story, "opened") == 0)
        }

        @Test func `nothing is connected to early with the setting off or a single slot`() throws {
            for option in [["--early-connect", "off"], ["--slots", "1"]] {
                let story = try Story(option)
                let other = try started()
                defer { other.stop() }
                let path = segment("a", 1_000)
                let links = try list(story, [other.url(path)])
                #expect(isContent(try story.player().get(links[0]).body, of: path))
                #expect(try count(story, "opened") == 0)
                #expect(try count(story, "skipped") == (option[0] == "--slots" ? 1 : 0))
            }
        }

        @Test func `bytes that a server sends on an unused connection are not a response`() throws {
            let story = try Story()
            let other = try ScriptedOrigin()
            let late = "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n"
            other.connection(.send(Array(late.utf8)), .stall)
            let links = try list(story, [other.url("/a.ts")])
            #expect(try eventually { try count(story, "opened") == 1 })
            other.answer("/a.ts", .respond(200, [("Content-Type", "video/mp2t")], [1, 2, 3]))
            let answer = try story.player().get(links[0])
            #expect(answer.status == 200 && answer.body == [1, 2, 3])
        }

        @Test func `a host that refuses connections costs the player nothing`() throws {
            let story = try Story()
            let gone = try started()
            let url = gone.url(segment("a", 1_000))
            gone.stop()
            _ = try list(story, [url])
            #expect(try eventually { try count(story, "failed") == 1 })
            #expect(try story.stat("origin_outages_total") == 0)
        }
    }
}
