import HLS
import Testing
import URISyntax

@testable import Lookahead

/// How far ahead of a player is fetched, and what the player's own words change.
@Suite struct LookaheadDepthTests {
    private func depth(
        _ mode: LookaheadMode = .auto, line: Double?, rate: Double?, _ hints: PlayerHints? = nil
    ) -> Double {
        LookaheadDepth(
            mode: mode, limits: LookaheadLimits(), line: line, rate: rate, hints: hints
        ).seconds
    }

    @Test(arguments: [
        ("off", LookaheadMode.off), ("auto", .auto), ("30", .seconds(30)), ("1.5", .seconds(1.5)),
    ])
    func `modes are read`(text: String, mode: LookaheadMode) {
        #expect(LookaheadMode(text) == mode)
    }

    @Test(arguments: ["", "on", "0", "601", "-3", "nan", "10s"])
    func `what is no mode is refused`(text: String) {
        #expect(LookaheadMode(text) == nil)
    }

    @Test(arguments: [(20.0, 8.0 / 6), (2.0, 24.0), (1.1, 60.0)])
    func `the nearer the line is to the stream the farther ahead`(times: Double, least: Double) {
        let found = depth(line: times * 100, rate: 100)
        #expect(found >= min(least, 60) * 0.7 && found <= 60)
    }

    @Test func `a line that gives less than is played is left to the player`() {
        #expect(depth(line: 90, rate: 100) < 1)
    }

    @Test func `a told depth holds whatever the line gives`() {
        #expect(depth(.seconds(30), line: 10, rate: 100) == 30)
    }

    @Test func `a player that stands still gets nothing`() {
        #expect(depth(line: 500, rate: 100, PlayerHints(["pr=0,bl=4000"])) == 0)
    }

    @Test func `a player that starves has the line for itself`() {
        #expect(depth(line: 200, rate: 100, PlayerHints(["su,bl=0"])) < 1)
    }

    @Test func `what the player holds itself need not be fetched`() {
        let alone = depth(line: 200, rate: 100)
        #expect(depth(line: 200, rate: 100, PlayerHints(["bl=20000"])) == alone - 10)
    }

    @Test func `fields of CMCD are read`() throws {
        let hints = try #require(
            PlayerHints([
                "br=3200,bl=21300,nor=\"..%2Fs%2Fv2.ts\",nrr=\"100-199\"", "sid=\"a,b\",pr=1.25",
            ]))
        #expect(hints.bitRate == 3_200_000 && hints.bufferSeconds == 21.3)
        #expect(hints.nextObject == "../s/v2.ts" && hints.nextRange == 100..<200)
        #expect(hints.playback == "a,b" && hints.speed == 1.25)
    }

    @Test(arguments: ["", "xyz=1", "bl=,br=abc", "nrr=\"9-1\"", ",,,", "bl=-4"])
    func `fields that say nothing are no hints`(text: String) {
        #expect(PlayerHints([text]) == nil)
    }

    @Test func `what the player announces is fetched first`() {
        var story = LookaheadStory()
        story.see("v", LookaheadStory.picture("v", 0..<20))
        var hints = PlayerHints()
        hints.nextObject = LookaheadStory.url("v7.ts").text
        story.read("v0.ts", hints)
        #expect(Set(story.running.keys) == ["v7.ts", "v1.ts"])
    }
}
