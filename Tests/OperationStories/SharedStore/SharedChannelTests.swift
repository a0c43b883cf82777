import FixtureCDN
import ScenarioSupport
import Testing

/// Stories of channel lists, whose films and channels belong to one session.
extension Stories.SharedStoreTests {
    @Test func `a film of a channel list is shared, whatever else its session plays`() throws {
        let tier = try Tier()
        tier.cdn.put(
            "/live.m3u8", text: "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\n/bytes/9000/l.ts\n")
        let film = "/bytes/5000/film.mp4"
        let entries = ["/live.m3u8", film].map { "#EXTINF:-1,A\n\(tier.cdn.url($0))\n" }
        tier.cdn.put("/c.m3u", text: "#EXTM3U\n" + entries.joined())
        /// Plays the channel, then the film, as a fresh node.
        func play() throws -> Tier.Node {
            let node = try tier.patientNode()
            let found = uriLines(try node.get("/c.m3u").text)
            let live = uriLines(try node.follow(found[0]).text)
            _ = try node.follow(live[0])
            #expect(isContent(try node.follow(found[1]).body, of: film))
            return node
        }
        let first = try play()
        #expect(try first.settled("writes_total") { $0 >= 1 } == 1)
        #expect(tier.bucket.cached.count == 1)
        let second = try play()
        #expect(try second.stat("hits_total") == 1)
        #expect(tier.cdn.requestCount(film) == 1)
    }
}
