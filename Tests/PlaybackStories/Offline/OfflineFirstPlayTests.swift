import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// The first play after an outage has begun: the daemon has not noticed it yet, and a list that was
/// served whole cannot be taken back.
extension Stories {
    @Suite(.tags(.timed)) struct OfflineFirstPlayTests {}
}

/// How an origin stops answering.
enum Silence: CaseIterable, Sendable, CustomTestStringConvertible {
    case refuses, swallows

    var testDescription: String {
        self == .refuses ? "connections are refused" : "connections are swallowed"
    }
}

extension Stories.OfflineFirstPlayTests {
    /// A story that has stored one of two variants, and that without its third segment.
    private func partlyKept() throws -> Story {
        let story = try Story(["--connect-timeout", "1"])
        try story.keep(master: variant("low") + variant("high"))
        for name in ["low", "high"] { story.put(list: name) }
        try story.keep("low", 0..<2, 3..<6)
        return story
    }

    private func played(_ story: Story) throws -> (variants: [String], low: String) {
        let (master, lists) = try OfflinePlayer(story.player(), story.cdn).title()
        guard master.status == 200 else { return (["\(master.status)"], "") }
        return (links(master.text).map(fileName), outline(lists["low"]))
    }

    private func silence(_ story: Story, _ how: Silence) throws -> BlackHole? {
        story.cdn.stop()
        return how == .swallows ? try BlackHole(port: story.cdn.port) : nil
    }

    @Test(arguments: Silence.allCases)
    func `the first play after a restart is shortened like the second`(_ how: Silence) throws {
        let story = try partlyKept()
        let hole = try silence(story, how)
        defer { hole?.end() }
        try story.restart()
        for _ in 0..<2 {
            let (variants, low) = try played(story)
            #expect(variants == ["low"] && low == "low0 low1 | low3 low4 low5 .")
        }
        #expect(try story.stat("origin_outages_total") == 1)
    }

    @Test func `a host that refuses connections cuts no wait for one that swallows them`() throws {
        let story = try Story(["--connect-timeout", "1"])
        let other = FixtureCDN()
        try other.start()
        let own = (0..<3).map { segment("a\($0)", 300) }
        story.cdn.put(
            "/l.m3u8", text: vod(own + (0..<3).map { other.url(segment("b\($0)", 300)) }))
        let media = try story.links(in: "/l.m3u8")
        for number in [0, 1, 3, 4] { #expect(try story.follow(media[number]).status == 200) }
        story.cdn.stop()
        other.stop()
        let hole = try BlackHole(port: other.port)
        defer { hole.end() }
        try story.restart()
        for _ in 0..<2 { #expect(outline(try story.get("/l.m3u8")) == "a0 a1 | b0 b1 .") }
    }

    @Test func `the first play after refused connections is shortened like the second`() throws {
        let story = try partlyKept()
        story.cdn.stop()
        for _ in 0..<2 {
            let (variants, low) = try played(story)
            #expect(variants == ["low"] && low == "low0 low1 | low3 low4 low5 .")
        }
    }

    @Test func `a media playlist by itself is shortened at its first play`() throws {
        let story = try Story()
        story.put(list: "l")
        try story.keep("l", 0..<2, 3..<6)
        // Its response was remembered, and must not be repeated.
        for _ in 0..<2 { #expect(outline(try story.get("/l.m3u8")) == "l0 l1 l2 l3 l4 l5 .") }
        story.cdn.stop()
        // The origin's previous response is trusted for half a second.
        #expect(try eventually { outline(try story.get("/l.m3u8")) == "l0 l1 | l3 l4 l5 ." })
    }

    @Test func `a playlist that needs revalidation is shortened once its origin is unreachable`()
        throws
    {
        let story = try Story(["--policy", "refresh"])
        story.put(list: "l")
        try story.keep("l", 0..<2, 3..<6)
        story.cdn.stop()
        #expect(outline(try story.get("/l.m3u8")) == "l0 l1 | l3 l4 l5 .")
    }

    @Test func `an origin's health is judged by the origin of the segments, not of the list`()
        throws
    {
        let story = try partlyKept()
        let other = FixtureCDN()
        try other.start()
        other.stop()
        // Two refused connections that are far enough apart.
        let isDown = try eventually {
            _ = try story.player().get(story.url(for: other.url("/a.ts")))
            return try story.stat("origin_outages_total") == 1
        }
        story.cdn.stop()
        #expect(isDown)
        #expect(try played(story).low == "low0 low1 | low3 low4 low5 .")
    }

    @Test(arguments: Silence.allCases)
    func `a completely stored title waits for no origin`(_ how: Silence) throws {
        let story = try Story(["--connect-timeout", "4"])
        try story.keep(master: variant("l"))
        story.put(list: "l")
        try story.keep("l", 0..<6)
        let hole = try silence(story, how)
        defer { hole?.end() }
        try story.restart()
        for _ in 0..<2 {
            let (master, lists) = try OfflinePlayer(story.player(), story.cdn).title()
            #expect(outline(lists["l"]) == "l0 l1 l2 l3 l4 l5 .")
            #expect(master.duration < .seconds(2))
        }
        #expect(try story.stat("origin_probes_total") == 0)
    }

    @Test func `a key that only a key system can get is not missing`() throws {
        let story = try Story()
        let key = "#EXT-X-KEY:METHOD=SAMPLE-AES,URI=\"/bytes/16/"
        story.put(
            list: "l", head: [key + "own.key\"", key + "system.key\",KEYFORMAT=\"com.widevine\""])
        for link in try story.links(in: "/l.m3u8") where !link.contains("system") {
            #expect(try story.follow(link).status == 200)
        }
        let url = percentEncoded(story.cdn.url("/l.m3u8"))
        let report = try story.player().get("/api/why?url=\(url)").text
        #expect(report.contains("\"lacks\":[]"), "\(report)")
        story.cdn.stop()
        try story.restart()
        #expect(outline(try story.get("/l.m3u8")) == "l0 l1 l2 l3 l4 l5 .")
        #expect(try story.stat("origin_probes_total") == 0)
    }

    @Test func `a partly stored playlist is served whole while its origin answers`() throws {
        let story = try partlyKept()
        try story.restart()
        story.cdn.resetLog()
        let (variants, low) = try played(story)
        #expect(variants == ["low", "high"] && low == "low0 low1 low2 low3 low4 low5 .")
        let asked = story.cdn.requests.filter { $0.path != "/high.m3u8" }
        #expect(!asked.isEmpty && asked.allSatisfy { $0.method == "HEAD" && $0.path == "/" })
    }

    @Test func `a playlist is checked again after a purge of one of its segments`() throws {
        let story = try Story()
        story.put(list: "l")
        try story.keep("l", 0..<6)
        #expect(outline(try story.get("/l.m3u8")) == "l0 l1 l2 l3 l4 l5 .")
        let third = percentEncoded(story.cdn.url("/bytes/3000/l2.ts"))
        #expect(try story.follow("/api/purge?url=\(third)", method: "POST").status == 200)
        story.cdn.stop()
        #expect(outline(try story.get("/l.m3u8")) == "l0 l1 | l3 l4 l5 .")
    }

    @Test(arguments: [["--policy", "offline"], []])
    func `why shows the answer for a playlist that lacks segments`(_ policy: [String]) throws {
        let story = try Story()
        story.put(list: "l")
        story.put(list: "empty")
        try story.keep("l", 0..<2, 3..<6)
        try story.keep("empty", 0..<0)
        story.put(list: "full")
        try story.keep("full", 0..<6)
        let why = { (player: ScriptedPlayer, name: String) in
            let url = percentEncoded(story.cdn.url("/\(name).m3u8"))
            return try player.get("/api/why?url=\(url)").text
        }
        #expect(try why(story.player(), "l").contains("\"lacks\":[\""))
        #expect(try why(story.player(), "full").contains("\"lacks\":[]"))
        story.cdn.stop()
        let daemon = try story.succeed(policy)
        let player = ScriptedPlayer(daemon.baseURL)
        let answers = try ["l", "empty", "full"].map { name in
            try player.get("/" + story.cdn.url("/\(name).m3u8"))
        }
        #expect(answers.map(\.status) == [200, 504, 200])
        #expect(answers[1].text.contains("nothing that"))
        let expected = ["offline", "failed", "hit"]
        for (name, outcome) in zip(["l", "empty", "full"], expected) {
            let report = try why(player, name)
            #expect(report.contains("\"next\":{\"outcome\":\"\(outcome)\""), "\(report)")
        }
    }
}
