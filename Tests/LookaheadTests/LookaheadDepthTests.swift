import HLS
import Testing
import URISyntax

@testable import Lookahead

/// How far ahead of a player is fetched, and the effect of CMCD.
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
    func `modes are parsed`(text: String, mode: LookaheadMode) {
        #expect(LookaheadMode(text) == mode)
    }

    @Test(arguments: ["", "on", "0", "601", "-3", "nan", "10s"])
    func `rejects an unknown mode`(text: String) {
        #expect(LookaheadMode(text) == nil)
    }

    @Test(arguments: [(20.0, 8.0 / 6), (2.0, 24.0), (1.1, 60.0)])
    func `look-ahead is deeper the closer the link's rate is to the stream's`(
        times: Double, least: Double
    ) {
        let found = depth(line: times * 100, rate: 100)
        #expect(found >= min(least, 60) * 0.7 && found <= 60)
    }

    @Test func `a link slower than the stream is left to the player`() {
        #expect(depth(line: 90, rate: 100) < 1)
    }

    @Test func `a fixed depth does not depend on the link`() {
        #expect(depth(.seconds(30), line: 10, rate: 100) == 30)
    }

    @Test func `a stopped player gets no look-ahead`() {
        #expect(depth(line: 500, rate: 100, PlayerHints(["pr=0,bl=4000"])) == 0)
    }

    @Test func `a starved player has the link for itself`() {
        #expect(depth(line: 200, rate: 100, PlayerHints(["su,bl=0"])) < 1)
    }

    @Test func `segments in the player's buffer are not fetched`() {
        let alone = depth(line: 200, rate: 100)
        #expect(depth(line: 200, rate: 100, PlayerHints(["bl=20000"])) == alone - 10)
    }

    @Test func `CMCD fields are parsed`() throws {
        let hints = try #require(
            PlayerHints([
                "br=3200,bl=21300,nor=\"..%2Fs%2Fv2.ts\",nrr=\"100-199\"", "sid=\"a,b\",pr=1.25",
                "mtp=25400", "bs",
            ]))
        #expect(hints.bitRate == 3_200_000 && hints.bufferSeconds == 21.3)
        #expect(hints.nextObject == "../s/v2.ts" && hints.nextRange == 100..<200)
        #expect(hints.playback == "a,b" && hints.speed == 1.25)
        #expect(hints.hasStalled && hints.throughput == 25_400_000)
    }

    @Test(arguments: [
        "", "xyz=1", "bl=,br=abc", "nrr=\"9-1\"", ",,,", "bl=-4", "bs=false", "mtp=1e13", "bl=inf",
    ])
    func `fields without information give no hints`(text: String) {
        #expect(PlayerHints([text]) == nil)
    }

    @Test func `the object that the player announces is fetched first`() {
        var story = LookaheadStory()
        story.see("v", LookaheadStory.picture("v", 0..<20))
        var hints = PlayerHints()
        hints.nextObject = LookaheadStory.url("v7.ts").text
        story.read("v0.ts", hints)
        #expect(Set(story.running.keys) == ["v7.ts", "v1.ts"])
    }
}
