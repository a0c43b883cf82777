import FixtureCDN
import ScenarioSupport
import Testing

/// Lists of channels and films in M3U, which are not playlists of HLS.
extension Stories {
    @Suite(.tags(.timed, .threads)) struct ChannelLists {
        /// Puts a list of these URLs on the CDN, `/c.m3u`.
        private func put(_ urls: [String], on cdn: FixtureCDN, inf: String = "#EXTINF:-1,A") {
            let entries = urls.map { "\(inf)\n\($0)\n" }
            cdn.put("/c.m3u", text: "#EXTM3U\n" + entries.joined())
        }

        /// A live stream of segments of a second.
        private func window() -> LiveWindow {
            LiveWindow(
                segments: (0..<40).map { .init(uri: segment("s\($0)", 1_000), duration: 1) },
                targetDuration: 1, windowSize: 3)
        }

        @Test(arguments: ["/live/7", "/live/7.ts", "/play.php"], ["#EXTINF:-1,A", "#EXTINF:0,A"])
        func `a channel not named as a playlist is followed as one`(path: String, inf: String)
            throws
        {
            let story = try Story()
            let stream = window()
            _ = story.cdn.live("/hls/index.m3u8", stream)
            story.cdn.setBehaviour(
                Behaviour(query: "status=302&location=/hls/index.m3u8"), for: path)
            put([story.cdn.url(path)], on: story.cdn, inf: inf)
            let link = try #require(try story.links(in: "/c.m3u").first)
            let first = try story.follow(link)
            #expect(first["Content-Type"] == "application/vnd.apple.mpegurl")
            let found = links(first.text)
            #expect(found.count == 3)
            #expect(isContent(try story.follow(found[0]).body, of: segment("s0", 1_000)))
            stream.advance(by: 2)
            for target in [link, "/" + story.cdn.url(path)] {
                let isFollowed = try eventually {
                    try story.follow(target).text.contains("#EXT-X-MEDIA-SEQUENCE:2\n")
                }
                #expect(isFollowed, "\(target)")
            }
        }

        @Test func `a film of a list is served in parts, and the ones behind it are not fetched`()
            throws
        {
            let story = try Story(["--look-ahead", "60"])
            let films = (0..<5).map { "/bytes/40000/film\($0).mp4" } + ["/films/5"]
            story.cdn.put("/films/5", Array("film".utf8), contentType: "application/octet-stream")
            put(films.map { story.cdn.url($0) }, on: story.cdn)
            let found = try story.links(in: "/c.m3u")
            let part = try story.follow(found[1], headers: [("Range", "bytes=100-199")])
            #expect(part.status == 206)
            #expect(isContent(part.body, of: films[1], from: 100, count: 100))
            #expect(isContent(try story.follow(found[1]).body, of: films[1]))
            let end = try story.follow(found[5], headers: [("Range", "bytes=2-")])
            #expect(end.status == 206 && end.text == "lm")
            let runsOn = eventually(within: .seconds(1)) { story.cdn.requestCount(films[2]) > 0 }
            #expect(!runsOn)
        }

        @Test(arguments: ["#EXTINF:-1,A", "#EXTINF:90,A"])
        func `a film stays stored when its list is sorted anew`(inf: String) throws {
            let story = try Story()
            let films = (0..<4).map { "/bytes/4000/film\($0).mp4" }
            for order in [films, films.reversed()] {
                put(order.map { story.cdn.url($0) }, on: story.cdn, inf: inf)
                var found: [String] = []
                let isSorted = try eventually {
                    found = try story.links(in: "/c.m3u")
                    return found.first?.contains(order[0].suffix(9)) == true
                }
                #expect(isSorted)
                for (film, link) in zip(order, found) {
                    #expect(isContent(try story.follow(link).body, of: film))
                }
            }
            #expect(films.allSatisfy { story.cdn.requestCount($0) == 1 })
        }

        @Test func `a window reaches the channels that are watched, and no other is opened`() throws
        {
            let story = try Story()
            let stream = window()
            for name in ["a", "b"] { _ = story.cdn.live("/\(name).m3u8", stream) }
            let urls = ["/a.m3u8|User-Agent=Kodi", "/b.m3u8", "/live/7"].map { story.cdn.url($0) }
            put(urls, on: story.cdn)
            let entry = "/proxy?url=\(percentEncoded(story.cdn.url("/c.m3u")))&dvr=60s"
            let list = try story.follow(entry)
            #expect(list["Content-Type"] == "audio/mpegurl" && !list.text.contains("#EXT-X"))
            let found = links(list.text)
            #expect(found.count == 3)
            for link in found.prefix(2) {
                #expect(try story.follow(link).status == 200)
                stream.advance(by: 3)
                let isLonger = try eventually { links(try story.follow(link).text).count > 3 }
                #expect(isLonger, "\(link)")
            }
            #expect(story.cdn.requestCount("/live/7") == 0)
        }

        @Test func `a recording of a list is refused`() throws {
            let stream = try RecordedStream()
            put([stream.story.cdn.url("/l.m3u8")], on: stream.story.cdn)
            try stream.record("/c.m3u")
            let end = try stream.told { $0.contains("failed") }
            #expect(end.contains("is a list of channels"), "\(end)")
            #expect(stream.story.cdn.requestCount("/l.m3u8") == 0)
        }

        @Test func `a list stays whole when its host is away, and under the policy offline`() throws
        {
            let story = try Story()
            let other = FixtureCDN(folder: nil)
            try other.start()
            defer { other.stop() }
            other.put("/film.mp4", Array("film".utf8))
            let urls = ["/film.mp4", "/7.m3u8"].map { other.url($0) }
            put(urls, on: story.cdn)
            let found = try story.links(in: "/c.m3u")
            #expect(found.count == 2)
            #expect(try story.follow(found[0]).text == "film")
            story.cdn.stop()
            let isStale = try eventually {
                let list = try story.get("/c.m3u")
                return list.status == 200
                    && list["Cache-Status"]?.contains("origin-unreachable") == true
            }
            #expect(isStale)
            let offline = try story.offline()
            let list = try offline.player.get("/c.m3u")
            #expect(list.status == 200 && links(list.text).count == 2)
            #expect(!list.text.contains("#EXT-X"))
            #expect(try offline.player.player.get(links(list.text)[0]).text == "film")
        }

        @Test func `a channel in DASH or Smooth Streaming keeps its origin's URL`() throws {
            let story = try Story()
            let manifests = ["/dash/a.mpd?x=1", "/b.ism/Manifest", "/c.MPD|User-Agent=A"]
                .map { story.cdn.url($0) }
            let others = ["dash/d.mpd", story.cdn.url("/live/7.ts|User-Agent=A")]
            put(manifests + others, on: story.cdn)
            let found = links(try story.get("/c.m3u").text)
            #expect(Array(found.prefix(4)) == manifests + [story.cdn.url("/dash/d.mpd")])
            #expect(found.count == 5 && found[4].hasPrefix("/f/"))
        }

        @Test func `an entry of another scheme costs only itself`() throws {
            let story = try Story()
            let urls = [story.cdn.url("/a.m3u8"), "rtmp://h.test/b", story.cdn.url("/c.m3u8")]
            put(urls, on: story.cdn)
            let list = try story.get("/c.m3u")
            #expect(list.status == 200 && links(list.text).count == 2)
            #expect(!list.text.contains("rtmp"))
            #expect(story.daemon.standardError.contains("'rtmp'"))
        }
    }
}
