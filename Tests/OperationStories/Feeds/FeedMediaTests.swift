import FixtureCDN
import ScenarioSupport
import Testing

/// Feeds of pictures and files, whatever their URLs look like.
extension Stories {
    @Suite(.tags(.timed)) struct FeedMediaTests {
        private func put(_ feed: ShownFeed, _ paths: [String], _ more: String = "") throws {
            let urls = paths.map { "\"\(feed.story.cdn.url($0))\"" }.joined(separator: ",")
            let answer = try feed.send("PUT", "", "{\"entries\":[\(urls)]\(more)}")
            #expect(answer.status == 200, "\(answer.text)")
        }

        @Test func `pictures and files without an extension are items`() throws {
            let feed = try ShownFeed(items: 1)
            let paths = ["/bytes/p/60000", "/bytes/70000/q.jpg", "/bytes/v/80000", "/i0/list"]
            feed.story.cdn.setBehaviour("type=image/webp", for: "/bytes/p/*")
            feed.story.cdn.setBehaviour("type=application/octet-stream", for: "/bytes/v/*")
            feed.story.cdn.put("/i0/list", text: "")
            feed.story.cdn.setBehaviour("as=/i0/v.m3u8", for: "/i0/list")
            try put(feed, paths, ",\"scheme\":\"published\"")
            for index in 0..<4 {
                _ = try feed.move(to: index)
                #expect(try feed.settles(index, "whole"), "\(paths[index])")
            }
            for path in paths.prefix(3) {
                #expect(feed.story.cdn.firstByteServedTwice(path) == nil, "\(path)")
            }
            #expect(feed.count(0, 4) == 1, "the playlist was read as one")
            let size = 60_000 + 70_000 + 80_000
            let sent = paths.prefix(3).map { feed.story.cdn.bytesSent($0) }.reduce(0, +)
            #expect(sent == size)
        }

        @Test func `an item that is not media is requested once, however often near`() throws {
            let feed = try ShownFeed(items: 4)
            let page = "/page"
            feed.story.cdn.put(
                page, text: "<!doctype html><title>No</title>", contentType: "text/html")
            feed.story.cdn.put(
                "/bad.m3u8", text: "<!doctype html><title>No</title>", contentType: "text/html")
            try put(feed, ["/i0/v.m3u8", page, "/bad.m3u8", "/i1/v.m3u8", "/i2/v.m3u8"])
            for round in 0..<6 {
                _ = try feed.move(to: 1 + round % 3)
                #expect(try feed.settles(1 + round % 3, round % 3 == 2 ? "whole" : "dead"))
            }
            #expect(feed.story.cdn.requestCount(page) == 1)
            #expect(feed.story.cdn.requestCount("/bad.m3u8") == 1)
            _ = try feed.move(to: 1)
            #expect(try feed.state().contains("neither a playlist nor media"))
        }

        @Test func `an order without a usable entry does not change the feed`() throws {
            let feed = try ShownFeed(items: 2)
            _ = try feed.put()
            let answer = try feed.send("PUT", "", #"{"entries":["ftp://x/","nothing"]}"#)
            #expect(answer.status == 400)
            #expect(try feed.state().contains("\"entries\":2"))
        }
    }
}
