import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// Feeds while the CDN or the disk fails: clear answers, no hang, and fetched bytes are kept.
extension Stories {
    @Suite(.tags(.crowded)) struct FeedFaultTests {
        @Test func `a CDN that becomes unreachable is reported, and stored items play`() throws {
            let feed = try ShownFeed(items: 6)
            _ = try feed.put()
            #expect(try feed.settles(0, "whole") && feed.settles(1, "ready"))
            let links = uriLines(try feed.player.get(feed.story.url(feed.list(0))).text)
            feed.story.cdn.stop()
            for index in [5, 1, 3, 0] { #expect(try feed.move(to: index).status == 200) }
            for (number, link) in links.enumerated() {
                let body = try feed.player.get(link).body
                #expect(isContent(body, of: feed.segment(0, number)))
            }
            _ = try feed.move(to: 5)
            #expect(try eventually { try feed.state().contains("\"reason\":\"") })
        }

        @Test func `a CDN that cuts every body halfway is retried`() throws {
            let feed = try ShownFeed(items: 3)
            feed.story.cdn.setBehaviour("reset=30000", for: "/bytes/*")
            _ = try feed.put()
            #expect(eventually { feed.count(0, 0) >= 2 })
            #expect(try feed.move(to: 1).status == 200)
            feed.story.cdn.setBehaviour(nil, for: "/bytes/*")
            #expect(try feed.settles(1, "whole"))
            #expect(feed.story.cdn.firstByteServedTwice(feed.segment(1, 0)) == nil)
        }

        @Test func `dead entries are reported and cost one request each`() throws {
            let feed = try ShownFeed(items: 30)
            feed.story.cdn.setBehaviour("status=410", for: "/i*")
            _ = try feed.put()
            #expect(try feed.settles(0, "dead"))
            for index in 1..<30 { _ = try feed.move(to: index) }
            #expect(try feed.settles(29, "dead"))
            #expect((0..<30).allSatisfy { feed.story.cdn.requestCount(feed.list($0)) <= 1 })
        }

        @Test(.enabled(if: Tool.cCompiler != nil, "faults are made by a library built here"))
        func `a full disk ends nothing, and the feed continues once there is room`() throws {
            let folder = try TemporaryFolder()
            let recorder = try DiskRecorder()
            let path = folder.makeFolder("cache")
            let story = try Story(
                ["--min-free", "0"], cacheFolder: path,
                environment: recorder.environment(path, isLogged: false))
            let feed = try ShownFeed(items: 20, on: story)
            _ = try feed.put()
            #expect(try feed.settles(0, "whole"))
            for call in [DiskRecorder.Fault.write, .reserve] {
                try recorder.fail(call, with: ENOSPC)
            }
            #expect(try feed.move(to: 10).status == 200)
            #expect(eventually { feed.count(10, 0) > 0 })
            let links = uriLines(try feed.player.get(story.url(feed.list(0))).text)
            #expect(isContent(try feed.player.get(links[0]).body, of: feed.segment(0, 0)))
            for call in [DiskRecorder.Fault.write, .reserve] { try recorder.fail(call, with: 0) }
            #expect(try feed.settles(10, "whole"))
            #expect(feed.count(0, 0) == 1, "what was got is kept")
        }
    }
}
