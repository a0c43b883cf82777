import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// What a swipe costs: no more bytes for items that the viewer left, and no time.
extension Stories {
    @Suite(.tags(.timed)) struct FeedSwipeTests {
        /// Bytes sent of an item's segments.
        private func sent(_ feed: ShownFeed, _ item: Int) -> Int {
            (0..<5).reduce(0) { $0 + feed.story.cdn.bytesSent(feed.segment(item, $1)) }
        }

        @Test func `an item that was left takes at most a tenth of a second of the link`() throws {
            let feed = try ShownFeed(items: 40, size: 3_000_000)
            feed.story.cdn.shape(LinkShape(shared: 875_000))
            _ = try feed.put()
            let link = uriLines(try feed.player.get(feed.story.url(feed.list(0))).text)[0]
            let stream = try feed.player.open(link)
            _ = try stream.read(100_000)
            #expect(eventually { feed.story.cdn.activeRequests > 2 })
            let inAll = { (0..<10).reduce(0) { $0 + sent(feed, $1) } }
            _ = try feed.move(to: 30)
            stream.abort()
            let before = inAll()
            let left = { feed.story.cdn.requests.filter { !$0.isFinished && $0.path.isOfFirstTen } }
            #expect(eventually { sent(feed, 30) > 0 })
            // Two socket buffers for each of the transfers, and a tenth of a second.
            let sockets = 5 * 2 * 65_536
            #expect(inAll() - before <= 87_500 + sockets, "\(inAll() - before) bytes")
            #expect(left().allSatisfy { $0.bodyBytes < 3_000_000 })
        }

        @Test func `an abandoned transfer of a feed is not finished like others`() throws {
            let feed = try ShownFeed(items: 40, size: 1_200_000)
            let first = feed.segment(0, 0)
            feed.story.cdn.setBehaviour("rate=1000000", for: first)
            feed.story.cdn.hold(first, afterBytes: 700_000)
            _ = try feed.put()
            let link = uriLines(try feed.player.get(feed.story.url(feed.list(0))).text)[0]
            let stream = try feed.player.open(link)
            _ = try stream.read(700_000)
            _ = try feed.move(to: 30)
            stream.abort()
            #expect(try feed.settles(30, "whole"))
            #expect(eventually { feed.story.cdn.activeRequests == 0 })
            #expect(feed.story.cdn.bytesSent(first) < 1_200_000)
            #expect(isContent(try feed.player.get(link).body, of: first))
            // Only bytes in flight when the transfer was cancelled are repeated.
            #expect(feed.story.cdn.firstByteServedTwice(first) ?? .max >= 700_000)
        }

        @Test func `a player that stays is not cut off by a swipe`() throws {
            let feed = try ShownFeed(items: 40, size: 900_000)
            let first = feed.segment(0, 0)
            feed.story.cdn.hold(first, afterBytes: 250_000)
            _ = try feed.put()
            let link = uriLines(try feed.player.get(feed.story.url(feed.list(0))).text)[0]
            let stream = try feed.player.open(link)
            let start = try stream.read(250_000)
            _ = try feed.move(to: 30)
            #expect(eventually { feed.story.cdn.requestCount(feed.list(30)) == 1 })
            feed.story.cdn.release(first)
            #expect(isContent(start + (try stream.readRest()), of: first))
        }

        @Test func `swipes are answered while the CDN gives nothing`() throws {
            let feed = try ShownFeed(items: 40)
            feed.story.cdn.setBehaviour("stall=0", for: "/bytes/*")
            _ = try feed.put()
            for index in 1..<40 { #expect(try feed.move(to: index).status == 200) }
            #expect(try feed.state().contains(#""index":39"#))
            feed.story.cdn.setBehaviour(nil, for: "/bytes/*")
            _ = try feed.move(to: 5)
            #expect(try feed.settles(5, "whole"))
        }
    }
}

extension String {
    /// Whether this is the path of a segment of items 0 to 9.
    fileprivate var isOfFirstTen: Bool {
        let name = split(separator: "/").last ?? ""
        return name.hasPrefix("i") && name.dropFirst(2).first == "v"
    }
}
