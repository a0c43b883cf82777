import FixtureCDN
import ScenarioSupport
import Testing

/// Feeds: what is fetched around the item that a viewer sees, and invalid orders.
extension Stories {
    @Suite(.tags(.crowded)) struct FeedTests {
        @Test func `the active item is fetched whole, its neighbours' beginnings too`() throws {
            let feed = try ShownFeed(items: 6)
            #expect(try feed.put().status == 200)
            #expect(try feed.settles(0, "whole") && feed.settles(1, "ready"))
            #expect(feed.count(0, 4) == 1 && feed.count(1, 0) == 1)
            #expect(feed.count(1, 4) == 0, "beyond the beginning")
        }

        @Test func `a neighbour that is swiped to plays from the store`() throws {
            let feed = try ShownFeed(items: 6)
            _ = try feed.put()
            #expect(try feed.settles(1, "ready"))
            #expect(try feed.move(to: 1).status == 200)
            let links = uriLines(try feed.player.get(feed.story.url(feed.list(1))).text)
            #expect(try feed.isHit(links[0]))
            #expect(feed.story.cdn.requestCount(feed.list(1)) == 1)
        }

        @Test func `a swipe far away ends running transfers and keeps their bytes`() throws {
            let feed = try ShownFeed(items: 40, size: 2_000_000)
            let first = feed.segment(0, 0)
            feed.story.cdn.hold(first, afterBytes: 100_000)
            _ = try feed.put()
            #expect(eventually { feed.story.cdn.bytesSent(first) == 100_000 })
            // Bytes in flight at the end of a transfer are repeated, so the test waits for them.
            #expect(try feed.story.get(first, range: "bytes=0-99999").body.count == 100_000)
            _ = try feed.move(to: 30)
            #expect(try feed.settles(30, "whole"))
            #expect(feed.story.cdn.bytesSent(first) == 100_000)
            // Else the ended transfer would be sent more.
            #expect(eventually { feed.story.cdn.activeRequests == 0 })
            feed.story.cdn.release(first)
            #expect(isContent(try feed.story.get(first).body, of: first))
            #expect(feed.story.cdn.firstByteServedTwice(first) == nil)
        }

        @Test func `the next items are preloaded in the rendition that was played`() throws {
            let feed = try ShownFeed(items: 4, isMultivariant: true)
            _ = try feed.put()
            #expect(try feed.settles(1, "ready"))
            let master = try feed.player.get(feed.story.url(feed.entry(0))).text
            _ = try feed.player.get(uriLines(master)[1])
            #expect(eventually { feed.story.cdn.requestCount("/i1/high.m3u8") == 1 })
        }

        @Test func `a rendition chosen while another one is read is fetched instead`() throws {
            let feed = try ShownFeed(items: 2, isMultivariant: true)
            feed.story.cdn.hold("/i1/low.m3u8")
            _ = try feed.put(#","height":360"#)
            #expect(eventually { feed.story.cdn.requestCount("/i1/low.m3u8") == 1 })
            // The player of the next item asks before the swipe is reported.
            let master = try feed.player.get(feed.story.url(feed.entry(1))).text
            _ = try feed.player.get(uriLines(master)[1])
            feed.story.cdn.release("/i1/low.m3u8")
            _ = try feed.move(to: 1)
            #expect(try feed.settles(1, "whole"))
            #expect(feed.story.cdn.requestCount(feed.segment(1, 4, "high")) == 1)
        }

        @Test func `a reported height selects the rendition immediately`() throws {
            let feed = try ShownFeed(items: 2, isMultivariant: true)
            _ = try feed.put(#","height":720"#)
            #expect(try feed.settles(1, "ready"))
            #expect(feed.story.cdn.requestCount("/i1/low.m3u8") == 0)
        }

        @Test func `an entry's headers are sent with every fetch for it`() throws {
            let feed = try ShownFeed(items: 1)
            feed.story.cdn.setBehaviour("needheader=Referer:https://app.test/", for: "/*")
            let entry = #"{"url":"\#(feed.story.cdn.url(feed.list(0)))","headers":"#
            let body = #"{"entries":[\#(entry){"Referer":"https://app.test/"}}]}"#
            #expect(try feed.send("PUT", "", body).status == 200)
            #expect(try feed.settles(0, "whole"))
        }

        @Test func `the daemon's own URL of an entry means the origin's`() throws {
            let feed = try ShownFeed(items: 2)
            let urls = (0..<2).map { feed.story.url(feed.list($0)) }
            let own = urls + [feed.story.daemon.baseURL + "/metrics"]
            let body = #"{"entries":["\#(own.joined(separator: #"",""#))"]}"#
            let answer = try feed.send("PUT", "", body)
            #expect(answer.status == 200)
            #expect(answer.text.contains(#""faults":[{"index":2,"#), "\(answer.text)")
            #expect(try feed.settles(0, "whole") && feed.settles(1, "ready"))
            let links = uriLines(try feed.player.get(feed.story.url(feed.list(1))).text)
            #expect(try feed.isHit(links[0]))
        }

        @Test func `a dead entry is reported, and its neighbours are fetched`() throws {
            let feed = try ShownFeed(items: 4)
            feed.story.cdn.setBehaviour("status=404", for: feed.list(1))
            _ = try feed.put()
            #expect(try feed.settles(0, "whole") && feed.settles(2, "ready"))
            _ = try feed.move(to: 1)
            #expect(try feed.settles(1, "dead"))
            #expect(try feed.state().contains("404"))
        }

        @Test func `a stored playlist whose URLs have expired is read past the cache`() throws {
            let statuses = [401, 403, 410]
            // Side by side: each daemon waits before it reads a playlist again.
            let feeds = try statuses.map { try Self.expired($0) }
            for (status, feed) in zip(statuses, feeds) {
                #expect(try feed.settles(0, "whole"), "\(status)")
                _ = try feed.move(to: 1)
            }
            for (status, feed) in zip(statuses, feeds) {
                #expect(try feed.settles(1, "whole"), "\(status)")
                let lists = [feed.entry(0), "/i1/low.m3u8"]
                #expect(lists.map { feed.story.cdn.requestCount($0) } == [2, 2], "\(status)")
            }
        }

        /// A feed of two stored playlists whose URLs are refused by now.
        private static func expired(_ status: Int) throws -> ShownFeed {
            let feed = try ShownFeed(items: 2, isMultivariant: true)
            let cdn = feed.story.cdn
            let expired = "?token=a&status=\(status)"
            // One names a playlist that is refused, the other one segments.
            let (title, list) = (feed.entry(0), "/i1/low.m3u8")
            func name(_ query: String) {
                let stream = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=240000\nlow.m3u8\(query)\n"
                cdn.put(title, text: stream)
                cdn.put(list, text: vod((0..<5).map { feed.segment(1, $0) + query }))
            }
            name(expired)
            for path in [title, list] { _ = try feed.story.get(path) }
            name("?token=b")
            let urls = [title, list].map { #""\#(cdn.url($0))""# }.joined(separator: ",")
            #expect(try feed.send("PUT", "", #"{"entries":[\#(urls)]}"#).status == 200)
            return feed
        }

        @Test func `what is refused with new URLs too is given up`() throws {
            let feed = try ShownFeed(items: 1, isMultivariant: true)
            feed.story.cdn.setBehaviour("status=403", for: "/i0/low.m3u8")
            _ = try feed.put(#","height":360"#)
            #expect(try feed.settles(0, "dead"))
            #expect(feed.story.cdn.requestCount("/i0/low.m3u8") == 2)
            #expect(feed.story.cdn.requestCount(feed.entry(0)) == 2)
        }

        @Test func `an unreachable origin is retried, and stored bytes are kept`() throws {
            let feed = try ShownFeed(items: 3)
            feed.story.cdn.setBehaviour("status=503", for: feed.segment(0, 2))
            _ = try feed.put()
            #expect(eventually { feed.count(0, 2) >= 1 })
            feed.story.cdn.setBehaviour(nil, for: feed.segment(0, 2))
            #expect(try feed.settles(0, "whole"))
            #expect(feed.count(0, 0) == 1)
        }

        @Test func `what was cleared is fetched again for the items around the viewer`() throws {
            let feed = try ShownFeed(items: 3)
            _ = try feed.put()
            #expect(try feed.settles(0, "whole") && feed.settles(2, "ready"))
            #expect(try feed.story.follow("/api/clear", method: "POST").status == 200)
            _ = try feed.move(to: 1)
            #expect(eventually { feed.count(1, 0) == 2 && feed.count(2, 0) == 2 })
            #expect(try feed.settles(1, "whole") && feed.settles(2, "ready"))
            #expect(feed.story.cdn.requestCount(feed.list(2)) == 2)
            let links = uriLines(try feed.player.get(feed.story.url(feed.list(2))).text)
            #expect(try feed.isHit(links[0]))
            #expect(feed.count(2, 0) == 2)
        }

        @Test func `look-ahead goes on for an active item that the feed has given up`() throws {
            let feed = try ShownFeed(items: 1, on: Story(["--look-ahead", "8"]))
            feed.story.cdn.setBehaviour("status=404", for: feed.segment(0, 1))
            feed.story.cdn.hold(feed.segment(0, 1))
            _ = try feed.put()
            #expect(eventually { feed.count(0, 1) == 1 })
            // Its list comes while the feed still sees to the stream.
            let links = uriLines(try feed.player.get(feed.story.url(feed.list(0))).text)
            feed.story.cdn.release(feed.segment(0, 1))
            #expect(try feed.settles(0, "dead"))
            feed.story.cdn.setBehaviour(nil, for: feed.segment(0, 1))
            _ = try feed.player.get(links[0])
            #expect(eventually { feed.story.cdn.bytesSent(feed.segment(0, 2)) == 60_000 })
        }

        @Test func `look-ahead goes on for an active item that is live`() throws {
            let feed = try ShownFeed(items: 1, on: Story(["--look-ahead", "8"]))
            let cdn = feed.story.cdn
            for number in 0..<8 { cdn.put("/s\(number).ts", text: "segment \(number)") }
            let window = cdn.live("/live.m3u8", liveWindow())
            let entries = #"{"entries":["\#(cdn.url("/live.m3u8"))"]}"#
            #expect(try feed.send("PUT", "", entries).status == 200)
            #expect(try feed.settles(0, "whole"))
            func links() throws -> [String] {
                uriLines(try feed.player.get(feed.story.url("/live.m3u8")).text)
            }
            let before = try links()
            window.advance(by: 1)
            #expect(try eventually { try links().last != before.last })
            #expect(cdn.requestCount("/s3.ts") == 0)
            _ = try feed.player.get(before[2])
            #expect(eventually { cdn.requestCount("/s3.ts") == 1 })
        }

        @Test func `repeated items are fetched once`() throws {
            let feed = try ShownFeed(items: 1)
            let url = #""\#(feed.story.cdn.url(feed.list(0)))""#
            #expect(
                try feed.send("PUT", "", #"{"entries":[\#(url),\#(url),\#(url)]}"#).status == 200)
            #expect(try feed.settles(0, "whole"))
            _ = try feed.move(to: 2)
            #expect(try feed.settles(2, "whole"))
            #expect(feed.count(0, 0) == 1)
        }

        @Test(arguments: ["costBudget", "byteBudget"])
        func `a budget of zero fetches nothing`(name: String) throws {
            let feed = try ShownFeed(items: 3)
            let answer = try feed.put(#","parameters":{"\#(name)":0}"#)
            #expect(answer.status == 200)
            _ = try feed.move(to: 1)
            _ = try feed.state()
            #expect(feed.count(0, 0) == 0 && feed.count(1, 0) == 0)
        }

        @Test func `ten thousand items are accepted and traversed`() throws {
            let feed = try ShownFeed(items: 1)
            let base = feed.story.cdn.url("/missing")
            let urls = (0..<10_000).map { "\"\(base)/\($0).m3u8\"" }.joined(separator: ",")
            let body = "{\"entries\":[\(urls)]}"
            #expect(try feed.send("PUT", "", body).status == 200)
            for index in stride(from: 0, to: 10_000, by: 501) {
                #expect(try feed.move(to: index).status == 200)
            }
            #expect(try feed.settles(9_519, "dead"))
        }

        @Test func `a feed that is ended costs nothing more`() throws {
            let feed = try ShownFeed(items: 6, size: 2_000_000)
            feed.story.cdn.setBehaviour("rate=200000", for: "/bytes/*")
            _ = try feed.put()
            #expect(eventually { feed.story.cdn.activeRequests > 0 })
            #expect(try feed.send("DELETE", "").status == 200)
            #expect(eventually { feed.story.cdn.activeRequests == 0 })
            #expect(try feed.send("GET", "").status == 404)
        }

        @Test func `a feed survives a restart and continues at its viewer's position`() throws {
            let feed = try ShownFeed(items: 6)
            _ = try feed.put()
            #expect(try feed.settles(0, "whole"))
            feed.story.stop()
            #expect(eventually { feed.story.cdn.activeRequests == 0 })
            try feed.story.restart()
            let before = feed.story.cdn.requestCount()
            #expect(try feed.state().contains(#""entries":6"#))
            #expect(feed.story.cdn.requestCount() == before)
            _ = try feed.move(to: 3)
            #expect(try feed.settles(3, "whole"))
        }
    }
}
