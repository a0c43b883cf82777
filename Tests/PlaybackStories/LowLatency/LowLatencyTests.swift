import FixtureCDN
import ScenarioSupport
import Testing

/// Low-latency lists: reloads are held, requested once for all players, and passed on as they
/// arrive.
extension Stories {
    @Suite(.tags(.timed, .threads)) struct LowLatencyTests {}
}

/// A stream that the test moves, and the links to its lists.
final class LowLatencyStage: Sendable {
    let story: Story
    let stream: LowLatencyStream
    let list: String

    init(
        _ arguments: [String] = [], segmentBytes: Int = 94_000,
        _ change: (inout LowLatencyStream.Settings) -> Void = { _ in }
    ) throws {
        var settings = LowLatencyStream.Settings()
        change(&settings)
        story = try Story(arguments)
        stream = story.cdn.lowLatency(
            "/ll", LowLatencyStream(segmentBytes: segmentBytes, settings: settings))
        list = try #require(try story.links(in: "/ll/master.m3u8").first)
    }

    /// The link with the directives for the next part.
    var next: String {
        let (segment, part) = stream.position
        return "\(list)?_HLS_msn=\(segment)&_HLS_part=\(part)"
    }

    /// Players that request a link at once; their responses are read on demand.
    func ask(_ link: String, players: Int = 1) -> [Background<PlayerResponse>] {
        let base = story.daemon.baseURL
        return (0..<players).map { _ in Background { try ScriptedPlayer(base).get(link) } }
    }

    /// The number of requests for the list at the origin.
    var reloads: Int { story.cdn.requestCount("/ll/video.m3u8") }
}

/// The origin's names in the tags of a list: parts and the hint.
func partNames(_ list: PlayerResponse) -> [String] {
    list.text.split(separator: "\n").filter { $0.hasPrefix("#") }
        .flatMap { links(String($0)) }.compactMap(originName)
}

extension Stories.LowLatencyTests {
    @Test
    func `a hundred players cost the origin the reloads and parts of one`() throws {
        // A list answers those that come later for as long as a part takes.
        let stage = try LowLatencyStage { $0.partDuration = 10 }
        for _ in 0..<5 {
            let (segment, part) = stage.stream.position
            // Some arrive while it is held, some after it was answered.
            let waiting = stage.ask(stage.next, players: 100)
            #expect(eventually { stage.story.cdn.activeRequests == 1 })
            stage.stream.advance()
            let lists = try waiting.map { try $0.value(within: .seconds(30)) }
            #expect(lists.allSatisfy { lastPart($0) == "s\(segment).p\(part).ts" })
            let link = try #require(lists.first.flatMap(lastPartLink))
            let parts = try stage.ask(link, players: 20).map { try $0.value().body }
            let bytes = stage.stream.bytes(ofPart: part, in: segment)
            #expect(parts.allSatisfy { $0 == bytes })
        }
        #expect(stage.reloads == 5)
        #expect(stage.story.cdn.requests.count { $0.path.contains(".p") } == 5)
    }

    @Test  // 8216bis 6.2.5.2
    func `a playlist answers satisfied and plain reloads while the next one blocks`()
        throws
    {
        // A list answers those that come later for half as long as a part takes.
        let stage = try LowLatencyStage { $0.partDuration = 10 }
        let held = stage.ask(stage.next)
        #expect(eventually { stage.story.cdn.activeRequests == 1 })
        stage.stream.advance()
        let former = stage.next
        #expect(try held[0].value().status == 200)
        let (segment, _) = stage.stream.position
        // The next one is held for one player, and the present list serves the others.
        let waiting = stage.ask(former)
        #expect(eventually { stage.reloads == 2 && stage.story.cdn.activeRequests == 1 })
        for directives in ["?_HLS_msn=\(segment - 1)", "?_HLS_msn=\(segment)&_HLS_part=0", ""] {
            let list = try stage.story.follow(stage.list + directives)
            #expect(list.status == 200 && list["Cache-Status"]?.contains("hit") == true)
        }
        #expect(stage.reloads == 2)
        stage.stream.advance()
        #expect(try waiting[0].value().status == 200)
    }

    @Test
    func `delta updates are collapsed, and never replace the full playlist`() throws {
        let stage = try LowLatencyStage {
            // A list answers those that come later for as long as a part takes.
            $0.partDuration = 10
            $0.windowSize = 20
            $0.firstParts = 80
        }
        let waiting = stage.ask(stage.next + "&_HLS_skip=YES", players: 10)
        #expect(eventually { stage.story.cdn.activeRequests == 1 })
        stage.stream.advance()
        let lists = try waiting.map { try $0.value() }
        #expect(lists.allSatisfy { $0.text.contains("#EXT-X-SKIP:SKIPPED-SEGMENTS=") })
        #expect(Set(lists.map(\.text)).count == 1 && stage.reloads == 1)
        let whole = try stage.story.follow(stage.list)
        #expect(!whole.text.contains("#EXT-X-SKIP") && stage.reloads == 2)
        #expect(uriLines(whole.text).count == 20)
    }

    @Test
    func `an origin that does not block reloads gets two requests per part, not a loop`() throws {
        let stage = try LowLatencyStage {
            $0.blocks = false
            $0.partDuration = 0.4
        }
        let begin = ContinuousClock.now
        let waiting = stage.ask(stage.next, players: 10)
        #expect(eventually { stage.reloads >= 4 })
        let reloads = stage.reloads
        let limit = (ContinuousClock.now - begin) / .milliseconds(200) + 1
        #expect(Double(reloads) <= limit)
        stage.stream.advance()
        #expect(try waiting.allSatisfy { try $0.value().status == 200 })
        #expect(try stage.story.stat("blocking_reloads_repeated_total") >= 3)
    }

    @Test func `a reload too far ahead is refused as the origin refuses it`() throws {
        let stage = try LowLatencyStage()
        let (segment, _) = stage.stream.position
        let answer = try stage.story.follow("\(stage.list)?_HLS_msn=\(segment + 5)")
        #expect(answer.status == 400 && answer.text.hasPrefix("origin error: "))
    }

    @Test  // 8216bis 6.2.5.2
    func `an origin that ends a blocking reload is asked once, and players keep their playlist`()
        throws
    {
        let stage = try LowLatencyStage { $0.partDuration = 0.2 }
        _ = try stage.story.follow(stage.list)
        let cdn = stage.story.cdn
        cdn.setBehaviour("status=503", for: "/ll/video.m3u8")
        cdn.hold("/ll/video.m3u8")
        let known = try stage.story.stat("requests_total")
        let waiting = stage.ask(stage.next, players: 5)
        #expect(try stage.story.haveArrived(5, since: known))
        cdn.release("/ll/video.m3u8")
        let answers = try waiting.map { try $0.value() }
        #expect(answers.allSatisfy { $0.status == 200 && $0["Age"] != nil })
        #expect(stage.reloads == 2)
    }

    @Test func `a blocking reload is aborted when the last player leaves`() throws {
        let stage = try LowLatencyStage()
        let players = (0..<2).map { _ in stage.story.player() }
        let streams = try players.map { try $0.open(stage.next) }
        #expect(try stage.story.settled("requests_total") { $0 >= 4 } >= 4)
        #expect(eventually { stage.story.cdn.activeRequests == 1 })
        streams[0].close()
        #expect(stage.story.cdn.activeRequests == 1)
        streams[1].close()
        #expect(eventually { stage.story.cdn.activeRequests == 0 })
        #expect(stage.reloads == 1)
    }

    @Test
    func `blocking reloads take no slot`() throws {
        let stage = try LowLatencyStage(["--slots", "1"]) {
            $0.renditions = ["video", "b", "c"]
        }
        let lists = try stage.story.links(in: "/ll/master.m3u8")
        let (segment, part) = stage.stream.position
        let held = lists.flatMap { stage.ask("\($0)?_HLS_msn=\(segment)&_HLS_part=\(part)") }
        #expect(eventually { stage.story.cdn.activeRequests == 3 })
        let media = try #require(
            uriLines(try stage.story.follow(stage.list).text).first { $0.hasPrefix("/s/") })
        #expect(try stage.story.follow(media).body == stage.stream.bytes(ofSegment: 0))
        stage.stream.advance()
        #expect(try held.allSatisfy { try $0.value().status == 200 })
    }

    /// An account for one viewer takes a held reload for the first, and a segment for the second.
    @Test func `a reload that waits leaves a host's only connection to segments`() throws {
        let stage = try LowLatencyStage(["--host-limit", "1"]) { $0.partDuration = 0.4 }
        let media = try #require(
            uriLines(try stage.story.follow(stage.list).text).first { $0.hasPrefix("/s/") })
        let held = stage.ask(stage.next) + stage.ask(stage.next + "&_HLS_skip=YES")
        #expect(eventually { stage.reloads >= 5 })
        #expect(try stage.story.follow(media).body == stage.stream.bytes(ofSegment: 0))
        let (segment, part) = stage.stream.position
        stage.stream.advance()
        for list in held {
            #expect(try lastPart(list.value()) == "s\(segment).p\(part).ts")
        }
        let cdn = stage.story.cdn
        #expect(cdn.peakConcurrentRequests == 1)
        #expect(!cdn.requests.contains { $0.target.contains("_HLS_msn") })
        #expect(cdn.requests.contains { $0.target.hasSuffix("?_HLS_skip=YES") })
    }

    @Test
    func `a blocking reload outlasts the timeout of other requests, and makes no list older`()
        throws
    {
        let stage = try LowLatencyStage(["--first-byte-timeout", "1"])
        let held = stage.ask(stage.next)
        #expect(eventually { stage.story.cdn.activeRequests == 1 })
        // Only elapsed time shows that the timeout has passed.
        let begin = ContinuousClock.now
        _ = eventually(within: .seconds(5)) { ContinuousClock.now - begin > .seconds(2.3) }
        stage.stream.advance()
        let list = try held[0].value()
        #expect(list.status == 200)
        // Dates are in whole seconds.
        let age = try #require(list["Age"].flatMap { Int($0) })
        #expect(age < 2)
        #expect(stage.reloads == 1)
    }

    @Test func `an origin that dies with a reload held leaves the players the list they had`()
        throws
    {
        let stage = try LowLatencyStage { $0.partDuration = 0.4 }
        _ = try stage.story.follow(stage.list)
        let held = stage.ask(stage.next, players: 3)
        #expect(eventually { stage.story.cdn.activeRequests == 1 })
        stage.story.cdn.stop()
        let answers = try held.map { try $0.value() }
        #expect(answers.allSatisfy { $0.status == 200 })
        #expect(
            answers.allSatisfy { $0["Cache-Status"]?.contains("origin-unreachable") == true })
    }

    @Test func `a short outage ends no stream for players that know more than the stored list`()
        throws
    {
        let stage = try LowLatencyStage(segmentBytes: 9_400) {
            // A list stays unchanged for three target durations: longer than any machine takes.
            $0.partDuration = 10
            $0.windowSize = 20
            $0.firstParts = 80
        }
        let (story, cdn) = (stage.story, stage.story.cdn)
        for link in uriLines(try story.follow(stage.list).text).suffix(3) {
            #expect(try story.follow(link).status == 200)
        }
        let held = stage.ask(stage.next + "&_HLS_skip=YES")
        #expect(eventually { cdn.activeRequests == 1 })
        stage.stream.advance()
        #expect(try held[0].value().text.contains("#EXT-X-SKIP"))
        let reload = stage.next + "&_HLS_skip=YES"
        cdn.stop()
        // Two refused connections that are far enough apart.
        let isDown = try eventually {
            _ = try story.follow(reload)
            return try story.stat("origin_outages_total") == 1
        }
        #expect(isDown)
        let refused = try story.follow(reload)
        #expect(refused.status >= 502, "\(refused.text)")
        let plain = try story.follow(stage.list)
        #expect(plain.status == 200 && !plain.text.contains("#EXT-X-ENDLIST"))
        stage.stream.advance()
        try cdn.start()
        let goesOn = try eventually {
            let list = try story.follow(reload)
            return list.status == 200 && list.text.contains("#EXT-X-SKIP")
        }
        #expect(goesOn)
    }

    @Test
    func `the end of a stream ends the wait for its next part`() throws {
        let stage = try LowLatencyStage()
        let held = stage.ask(stage.next)
        #expect(eventually { stage.story.cdn.activeRequests == 1 })
        stage.stream.end()
        #expect(try held[0].value().text.contains("#EXT-X-ENDLIST"))
        let count = stage.reloads
        #expect(try stage.story.follow(stage.list).text.contains("#EXT-X-ENDLIST"))
        #expect(try stage.story.follow(stage.next).text.contains("#EXT-X-ENDLIST"))
        #expect(stage.reloads == count)
    }

    @Test func `rendition reports lead to the daemon and keep their numbers`() throws {
        let stage = try LowLatencyStage { $0.renditions = ["video", "audio"] }
        let text = try stage.story.follow(stage.list).text
        let report = try #require(text.split(separator: "\n").first { $0.contains("REPORT") })
        #expect(report.hasSuffix(",LAST-MSN=1,LAST-PART=3"))
        let link = try #require(links(String(report)).first)
        #expect(link.hasPrefix("/p/") && link.hasSuffix("/audio.m3u8"))
        #expect(try stage.story.follow(link + "?_HLS_msn=1").status == 200)
    }

    @Test func `a list under a mount is one resource, whatever it is asked to wait for`() throws {
        let site = try Story()
        var settings = LowLatencyStream.Settings()
        // A list answers what it satisfies for as long as a part takes.
        settings.partDuration = 10
        let stream = site.cdn.lowLatency(
            "/ll", LowLatencyStream(segmentBytes: 9_400, settings: settings))
        let daemon = try site.succeed(["--mount", "/demo/=\(site.cdn.url("/ll/"))"])
        defer { daemon.kill(9) }
        let player = ScriptedPlayer(daemon.baseURL)
        let plain = try player.get("/demo/video.m3u8").text
        #expect(try player.get("/demo/video.m3u8?_HLS_msn=1&_HLS_part=3").text == plain)
        let base = daemon.baseURL
        let held = Background {
            try ScriptedPlayer(base).get("/demo/video.m3u8?_HLS_msn=2&_HLS_part=0").text
        }
        #expect(eventually { site.cdn.activeRequests == 1 })
        stream.advance()
        let next = try held.value()
        #expect(next != plain && links(next).first == links(plain).first)
        #expect(site.cdn.requestCount("/ll/video.m3u8") == 2)
    }

    @Test func `why shows a playlist's last reload, and what a part waits for`() throws {
        let stage = try LowLatencyStage()
        let text = try stage.story.follow(stage.list).text
        let why = { (link: String) in
            let url = percentEncoded(stage.story.daemon.baseURL + link)
            return try stage.story.follow("/api/why?url=\(url)").text
        }
        let list = try why(stage.list)
        #expect(list.contains("\"live\":{\"reading\":\"first\",\"epoch\":0,\"first\":0,\"last\":1"))
        let hint = try #require(text.split(separator: "\n").first { $0.contains("PRELOAD") })
        let part = try why(try #require(links(String(hint)).first))
        #expect(part.contains("\"announced\":true") && part.contains("\"epoch\":0"))
    }

    @Test func `directives beside an entry go to the origin, and make no new session`() throws {
        let stage = try LowLatencyStage()
        let plain = try stage.story.get("/ll/video.m3u8")
        let text = try stage.story.get("/ll/video.m3u8?_HLS_msn=1").text
        #expect(text == plain.text)
        let argument = stage.story.entry("/ll/video.m3u8", "_HLS_msn=1&_HLS_part=3")
        #expect(try stage.story.follow(argument).text == plain.text)
        let isForwarded = stage.ask(stage.story.entry("/ll/video.m3u8", "_HLS_msn=2&_HLS_part=0"))
        let target = "/ll/video.m3u8?_HLS_msn=2&_HLS_part=0"
        #expect(eventually { stage.story.cdn.requestCount(target) == 1 })
        stage.stream.advance()
        #expect(try isForwarded[0].value().status == 200)
    }

    @Test func `a longer window is read from whole lists, whatever its player asks for`() throws {
        let stage = try LowLatencyStage()
        let entry = stage.story.entry("/ll/video.m3u8", "dvr=1h&_HLS_skip=YES")
        let list = try stage.story.follow(entry)
        #expect(list.status == 200 && !list.text.contains("#EXT-X-SKIP"))
        #expect(stage.story.cdn.requestCount("/ll/video.m3u8?_HLS_skip=YES") == 0)
        #expect(stage.story.cdn.requestCount("/ll/video.m3u8") > 0)
    }
}
