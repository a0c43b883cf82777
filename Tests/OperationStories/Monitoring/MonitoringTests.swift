import AccessLogFormat
import FixtureCDN
import ScenarioSupport
import Testing

/// Interfaces to monitoring systems: the metrics, the dashboard and the alert rules made for them,
/// and the daemon's log as JSON.
extension Stories {
    @Suite(.tags(.crowded)) struct MonitoringTests {}
}

extension Stories.MonitoringTests {
    // MARK: Metrics

    @Test(arguments: ["grafana/sluice.json", "prometheus/alerts.yml"])
    func `every metric that dashboard and alert rules name is exported`(file: String) throws {
        let story = try Story()
        let exported = try Self.metrics(story)
        let named = Self.names(in: try Fixture.text(file))
        #expect(!named.isEmpty)
        for name in named {
            let family = ["_bucket", "_sum", "_count"].first(where: name.hasSuffix)
                .map { String(name.dropLast($0.count)) }
            let isPart = family.map { exported[$0] == "histogram" } ?? false
            #expect(exported[name] != nil || isPart, "\(name) is in \(file) only")
        }
    }

    @Test func `the counters of outcomes add up to the requests`() throws {
        let folder = try TemporaryFolder()
        let log = folder.file("access.log")
        let story = try Story(["--access-log", log])
        let (kept, held) = (segment("kept", 4_000), segment("held", 4_000))
        for _ in 0..<2 { #expect(try story.get(kept).status == 200) }
        #expect(try story.get(kept, method: "POST").status == 405)
        #expect(try story.player().get("/nothing/here").status == 404)
        story.cdn.hold(held)
        let player = try story.open(held)
        #expect(eventually { story.cdn.requestCount(held) == 1 })
        player.abort()
        #expect(try story.settled("left_total") { $0 == 1 } == 1)
        let text = try story.player().get("/api/stats").text
        let names = [
            "hits", "partial_hits", "misses", "collapsed", "live_streams_joined", "revalidated",
            "stale", "bypassed", "own", "left", "client_errors", "origin_errors", "own_errors",
        ]
        let sum = try names.reduce(0) { try $0 + figure("\($1)_total", in: text) }
        // The request for the figures has no outcome yet.
        #expect(try figure("requests_total", in: text) == sum + 1, "\(text)")
        let refused = eventually {
            let lines = accessLines(log, 5)
            return lines.count { $0[.outcome] == "refused" && $0[.reason] == "client" } == 2
        }
        #expect(refused)
    }

    @Test func `what players report of playback is counted and logged`() throws {
        let folder = try TemporaryFolder()
        let log = folder.file("access.log")
        let story = try Story(["--access-log", log, "--loops", "1"])
        let path = segment("a", 4_000)
        let player = story.player()
        // The head of a request that was received before is not parsed again.
        let stalled: [WireHead.Field] = [
            ("CMCD-Request", "bl=1200,mtp=25400,su"), ("CMCD-Status", "bs"),
        ]
        for count in 1...4 {
            #expect(try player.get(story.url(path), headers: stalled).status == 200)
            _ = accessLines(log, count)
        }
        let query = "CMCD=bl%3D8000%2Csid%3D%22its-session%22"
        #expect(try player.get(story.url("\(path)?\(query)")).status == 200)
        _ = accessLines(log, 5)
        #expect(try player.get(story.url(path)).status == 200)
        let lines = accessLines(log, 6)
        #expect(lines.map { $0[.outcome] } == ["miss", "hit", "hit", "hit", "hit", "hit"])
        let reports = lines.map { line in ["bl", "bs", "mtp"].map { line.named[$0] ?? "" } }
        #expect(reports[..<4].allSatisfy { $0 == ["1200", "true", "25400"] }, "\(reports)")
        #expect(reports[4...] == [["8000", "false", "-"], ["", "", ""]])
        #expect(lines[0].named["tries"] == "1")
        let text = String(decoding: try readFile(log), as: UTF8.self)
        #expect(!text.contains("its-session"))
        let metrics = try story.follow("/metrics").text
        #expect(metrics.contains("\nsluice_player_stalls_total 4\n"))
        #expect(metrics.contains("\nsluice_player_startup_requests_total 4\n"))
    }

    /// https://prometheus.io/docs/practices/naming: counters end in `_total`, units are base units.
    @Test func `metrics follow the naming conventions`() throws {
        let story = try Story()
        let exported = try Self.metrics(story)
        #expect(exported.count > 50)
        // A documented name from before there was a histogram in seconds.
        let kept = ["sluice_longest_loop_hold_milliseconds"]
        let scaled = ["_milliseconds", "_microseconds", "_minutes", "_kilobytes", "_percent"]
        for (name, type) in exported {
            #expect((type == "counter") == name.hasSuffix("_total"), "\(name) is a \(type)")
            #expect(kept.contains(name) || !scaled.contains(where: name.hasSuffix), "\(name)")
        }
    }

    @Test func `every sample has a type and a help text before it, given once`() throws {
        let story = try Story()
        var described: Set<String> = [], typed: Set<String> = []
        for line in try story.follow("/metrics").text.split(separator: "\n") {
            let words = line.split(separator: " ", maxSplits: 3).map(String.init)
            if line.hasPrefix("# HELP ") {
                #expect(words.count == 4 && described.insert(words[2]).inserted, "\(line)")
            } else if line.hasPrefix("# TYPE ") {
                #expect(described.contains(words[2]) && typed.insert(words[2]).inserted, "\(line)")
            } else {
                let name = String(line.prefix { $0 != " " && $0 != "{" })
                let family = name.replacing(/_(bucket|sum|count)$/, with: "")
                #expect(typed.contains(name) || typed.contains(family), "\(line)")
            }
        }
    }

    @Test(.enabled(if: Tool.exists("promtool"), "needs promtool of prometheus"))
    func `promtool accepts the alert rules and the metrics`() throws {
        let rules = try Tool.run(
            ["promtool", "check", "rules", Fixture.path("prometheus/alerts.yml")])
        #expect(rules.status == 0, "\(rules.stderr)")
        let story = try Story()
        let folder = try TemporaryFolder()
        try writeFile(folder.file("metrics"), Array(story.follow("/metrics").text.utf8))
        let check = ["sh", "-c", "promtool check metrics <\"$0\"", folder.file("metrics")]
        let said = try Tool.run(check)
        let complaints = (said.stdout + said.stderr).split(separator: "\n")
            .filter { !$0.hasPrefix("sluice_longest_loop_hold_milliseconds ") }
        #expect(complaints.isEmpty)
    }

    @Test func `gauges show origins that are down, slots and the disk`() throws {
        let story = try Story(["--slots", "7", "--min-free", "1MB"])
        let before = try story.follow("/metrics").text
        #expect(before.contains("\nsluice_slots_limit 7\n"))
        #expect(before.contains("\nsluice_origins_down 0\n"))
        #expect(before.contains("\nsluice_store_suspended 0\n"))
        #expect(before.contains("\nsluice_store_min_free_bytes 1000000\n"))
        #expect(before.contains("\nsluice_lane_transfers_waiting{lane=\"playback\"} 0\n"))
        #expect(before.contains(/\nsluice_store_free_bytes [1-9][0-9]*\n/))
        story.cdn.stop()
        #expect(
            try eventually {
                _ = try story.get("/gone.ts")
                return try story.follow("/metrics").text.contains("\nsluice_origins_down 1\n")
            })
    }

    /// The type of each metric by its name.
    private static func metrics(_ story: Story) throws -> [String: String] {
        let lines = try story.follow("/metrics").text.split(separator: "\n")
        return lines.filter { $0.hasPrefix("# TYPE ") }.reduce(into: [:]) { types, line in
            let words = line.split(separator: " ")
            types[String(words[2])] = String(words[3])
        }
    }

    private static func names(in text: String) -> Set<String> {
        Set(text.matches(of: /\bsluice_[a-z0-9_]+/).map { String($0.output) })
    }

    // MARK: The log

    @Test func `the JSON log has one object per line with time, level, message and metadata`()
        throws
    {
        let story = try Story(["--log-format", "json", "--log-level", "debug"])
        story.cdn.setBehaviour("status=503", for: "/a.ts")
        #expect(try story.get("/a.ts").status == 502)
        #expect(eventually { story.daemon.standardError.contains(#""fault":"origin""#) })
        #expect(try story.daemon.terminate() == .code(0))
        let lines = story.daemon.standardError.split(separator: "\n")
        for line in lines { #expect(line.wholeMatch(of: Self.object) != nil, "\(line)") }
        #expect(
            lines.contains { $0.contains(#""message":"stopping","metadata":{"signal":"15"}}"#) })
    }

    /// An event: every value in `metadata` is a string.
    private static var object: Regex<(Substring, Substring, Substring)> {
        /\{"time":"[0-9T:-]{19}Z","level":"([a-z]+)","message":"(?:[^"\\]|\\.)+","metadata":\{((?:,?"[^"]+":"(?:[^"\\]|\\.)*")*)\}\}/
    }

    @Test func `an unknown log format is refused with the valid ones`() throws {
        let result = try sluice("check", "--log-format", "xml")
        #expect(result.status != 0)
        #expect(result.stderr.contains("log-format is text or json, not 'xml'"))
    }
}
