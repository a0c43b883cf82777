import AccessLogFormat
import FixtureCDN
import ScenarioSupport
import Testing

/// The costs of requests to origins in the access log, `/metrics`, `/api/origins` and `sluice
/// origins`.
extension Stories {
    @Suite(.tags(.timed)) struct OriginCosts {
        @Test func `the log contains the costs of a miss, and none for a hit`() throws {
            let folder = try TemporaryFolder()
            let log = folder.path + "/access.log"
            let story = try Story(["--access-log", log])
            let path = segment("a", 40_000)
            for count in 1...2 {
                #expect(isContent(try story.get(path).body, of: path))
                _ = accessLines(log, count)
            }
            #expect(try story.get(segment("b", 40_000)).status == 200)
            let lines = accessLines(log, 3)
            #expect(lines.map { $0[.outcome] } == ["miss", "hit", "miss"])
            #expect(lines.map(\.named.count) == [11, 0, 11])
            let (first, second) = (lines[0].named, lines[2].named)
            #expect(first["peer"] == "127.0.0.1" && first["protocol"] == "HTTP/1.1")
            #expect(first["tries"] == "1" && first["handshake"] == "-" && first["tls"] == "-")
            #expect(first["connection"] == "new" && second["connection"] == "reused")
            #expect(second["name"] == "-" && second["connect"] == "-")
            for name in ["slot", "name", "connect", "first_byte", "last_byte"] {
                #expect(Double(first[name] ?? "") != nil, "\(name) in \(lines[0])")
            }
        }

        @Test func `the log contains the attempts of an incomplete body and of a failure`() throws {
            let folder = try TemporaryFolder()
            let log = folder.path + "/access.log"
            let story = try Story(["--access-log", log])
            let path = segment("broken", 300_000)
            story.cdn.setBehaviour("reset=100000&fails=1", for: path)
            #expect(isContent(try story.get(path).body, of: path))
            _ = accessLines(log, 1)
            story.cdn.setBehaviour("status=404", for: "/gone.ts")
            _ = try story.get("/gone.ts")
            let lines = accessLines(log, 2)
            #expect((Int(lines[0].named["tries"] ?? "") ?? 0) > 1, "\(lines[0])")
            #expect(lines[1][.outcome] == "failed" && lines[1].named["tries"] == "1", "\(lines[1])")
        }

        @Test func `the log contains the costs of a request that a mount passes through`() throws {
            let cdn = FixtureCDN()
            try cdn.start()
            defer { cdn.stop() }
            let folder = try TemporaryFolder()
            let log = folder.path + "/access.log"
            let story = try Story(["--access-log", log, "--mount", "/mounted/=\(cdn.baseURL)/"])
            let target = story.daemon.baseURL + "/mounted/bytes/10/a.ts"
            cdn.setBehaviour("delayhead=200", for: "/bytes/10/a.ts")
            _ = try story.player().get(target, method: "POST", body: [1, 2, 3])
            let line = try #require(accessLines(log, 1).first)
            #expect(line[.outcome] == "passed" && line.named["tries"] == "1", "\(line)")
            // Of the response; libcurl's mark is when the body begins to be sent.
            #expect(Double(line.named["first_byte"] ?? "") ?? 0 >= 0.2, "\(line)")
            #expect(try story.player().get("/api/origins").text.contains(cdn.baseURL))
        }

        @Test func `the log names the URL of a request that a mount fails to pass on`() throws {
            let folder = try TemporaryFolder()
            let log = folder.path + "/access.log"
            let story = try MountedStory(["--access-log", log])
            story.origin.stop()
            #expect(try story.ask("POST", "/a", body: [1]).status == 502)
            let line = try #require(accessLines(log, 1).first)
            #expect(line[.outcome] == "failed" && line[.reason] == "origin", "\(line)")
            #expect(line[.url]?.hasSuffix("/o/a") == true, "\(line)")
        }

        @Test func `the log names the URL of a HEAD request that a mount passes on`() throws {
            let folder = try TemporaryFolder()
            let log = folder.path + "/access.log"
            let story = try MountedStory(["--access-log", log])
            story.origin.answer("/o/a", .respond(204))
            #expect(try story.ask("HEAD", "/a").status == 204)
            let line = try #require(accessLines(log, 1).first)
            #expect(line[.outcome] == "passed" && line[.status] == "204", "\(line)")
            #expect(line[.url]?.hasSuffix("/o/a") == true, "\(line)")
        }

        @Test func `origins, metrics and the command agree about two origins`() throws {
            let story = try Story()
            let other = FixtureCDN()
            try other.start()
            defer { other.stop() }
            for number in 0..<3 { _ = try story.get(segment("s\(number)", 5_000)) }
            other.setBehaviour("status=503", for: "/gone.ts")
            _ = try story.player().get(story.url(for: other.url("/gone.ts")))
            let connections = try story.settled("origin_connections_total") { $0 >= 2 }
            #expect(try story.stat("origin_connections_reused_total") >= 2)
            let json = try story.player().get("/api/origins").text
            for place in [story.cdn.baseURL, other.baseURL] {
                #expect(json.contains("\"origin\":\"\(place)\",\"state\":\"up\""), "\(json)")
            }
            let costs = "\"requests\":3,\"errors\":0,\"bytes\":15000,\"reused_percent\":66.667"
            #expect(json.contains(costs), "\(json)")
            #expect(json.contains("\"resumed_percent\":null"))
            let metrics = try story.player().get("/metrics").text
            let labels = "phase=\"connect\",lane=\"playback\""
            #expect(metrics.contains("# TYPE sluice_origin_phase_seconds histogram\n"))
            let name = "sluice_origin_phase_seconds"
            #expect(metrics.contains("\(name)_count{\(labels)} \(connections)\n"))
            #expect(metrics.contains("\(name)_bucket{\(labels),le=\"+Inf\"} \(connections)\n"))
            #expect(metrics.contains("sluice_origin_connections_total \(connections)\n"))
            let asJSON = try sluice("origins", "--json", "--daemon", story.daemon.baseURL)
            #expect(asJSON.status == 0 && asJSON.stdout.hasPrefix("{\"origins\":[{\"origin\":"))
            let table = try sluice("origins", "--daemon", story.daemon.baseURL)
            let rows = table.stdout.split(separator: "\n")
            #expect(table.status == 0 && rows.count == 3, "\(table.stdout)")
            #expect(rows[0].hasPrefix("origin") && rows[0].hasSuffix("resumed  yielding"))
            // The origin of the last request comes first.
            #expect(rows[1].hasPrefix(other.baseURL) && rows[2].hasPrefix(story.cdn.baseURL))
            #expect(rows[2].contains("15 kB") && rows[2].contains(" HTTP/1.1 "))
        }

        @Test func `each hop of a redirect counts, with its bytes, in metrics as in the table`()
            throws
        {
            let origin = try ScriptedOrigin()
            defer { origin.stop() }
            origin.answer("/a.ts", .respond(302, [("Location", "/b.ts")], [1, 2, 3]))
            origin.answer("/b.ts", .respond(200, [], [4]))
            origin.answer("/gone.ts", .respond(404, [], [5, 6]))
            let story = try Story()
            func get(_ path: String) throws -> Int {
                try story.player().get(story.url(for: origin.url(path))).status
            }
            #expect(try get("/a.ts") == 200)
            #expect(try get("/gone.ts") == 404)
            #expect(try story.settled("origin_bytes_total") { $0 == 6 } == 6)
            #expect(try story.stat("origin_requests_total") == 3)
            let costs = "\"requests\":3,\"errors\":0,\"bytes\":6,"
            #expect(try eventually { try story.api("origins").contains(costs) })
        }

        @Test func `an origin that refuses connections is shown as down`() throws {
            let story = try Story()
            let other = FixtureCDN()
            try other.start()
            let place = other.baseURL
            let path = segment("a", 1_000)
            #expect(try story.player().get(story.url(for: place + path)).status == 200)
            other.stop()
            _ = try story.player().get(story.url(for: place + segment("b", 1_000)))
            let wanted = "\"origin\":\"\(place)\",\"state\":\"down\""
            #expect(
                try eventually { try story.player().get("/api/origins").text.contains(wanted) })
        }

        /// Segments that are all requested before the first one answers.
        private func burst(_ names: [String], _ get: @escaping @Sendable (String) throws -> Bool)
            throws
        {
            let areWhole = try inParallel(names.count) { try get(names[$0]) }
            #expect(areWhole.allSatisfy { $0 })
        }

        @Test(
            .enabled(if: NginxFront.isAvailable, "needs nginx and openssl"),
            arguments: ["TLSv1.2", "TLSv1.3"])
        func `new connections to a known host resume its TLS session, also behind redirects`(
            version: String
        ) throws {
            let cdn = FixtureCDN()
            try cdn.start()
            defer { cdn.stop() }
            let front = try NginxFront(.proxy(cdn), http2: false, protocols: version)
            defer { front.stop() }
            let story = try Story(["--ca-file", front.caFile])
            let elsewhere = "https://localhost:\(front.port)"
            let get: @Sendable (String) throws -> Bool = { name in
                let path = segment(name, 9_000)
                return isContent(
                    try story.player().get(story.url(for: front.url(path))).body, of: path)
            }
            let getMoved: @Sendable (String) throws -> Bool = { name in
                let answer = try story.player().get(story.url(for: front.url("/to/\(name).ts")))
                return isContent(answer.body, of: segment(name, 9_000))
            }
            let (near, far) = ((0..<6).map { "near\($0)" }, (0..<6).map { "far\($0)" })
            for name in near + far { cdn.setBehaviour("fb=500", for: segment(name, 9_000)) }
            for name in far + ["first-far"] {
                let target = elsewhere + segment(name, 9_000)
                cdn.setBehaviour(Behaviour(query: "location=\(target)"), for: "/to/\(name).ts")
            }
            #expect(try get("first-near"))
            try burst(near, get)
            // At most one of them found an idle connection.
            #expect(eventually { front.handshakes.resumed > 0 }, "\(front.handshakes)")
            #expect(front.handshakes.full == 1)
            #expect(try getMoved("first-far"))
            #expect(eventually { front.handshakes.full == 2 }, "\(front.handshakes)")
            let before = front.handshakes.resumed
            try burst(far, getMoved)
            #expect(eventually { front.handshakes.resumed > before }, "\(front.handshakes)")
            #expect(front.handshakes.full == 2)
            #expect(try story.settled("origin_tls_full_total") { $0 == 2 } == 2)
            let resumed = front.handshakes.resumed
            #expect(try story.settled("origin_tls_resumed_total") { $0 == resumed } == resumed)
        }
    }
}
