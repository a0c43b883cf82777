import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// What is fetched ahead of a player, and what it must not cost.
extension Stories {
    @Suite(.tags(.timed, .threads)) struct LookaheadTests {
        @Test func `the second segment of a play is a hit`() throws {
            let title = try PlayedTitle()
            _ = try title.read(0)
            #expect(try title.isFetched(1))
            let second = try title.read(1)
            #expect(second.head["Cache-Status"]?.contains("; hit") == true)
            #expect(title.story.cdn.requestCount(title.path(1)) == 1)
        }

        @Test func `every segment is fetched once, all but the first ahead of the player`()
            throws
        {
            let title = try PlayedTitle()
            for number in 0..<8 {
                _ = try title.read(number)
                if number < 7 { #expect(try title.isFetched(number + 1)) }
            }
            #expect((0..<8).allSatisfy { title.story.cdn.requestCount(title.path($0)) == 1 })
            #expect(try title.story.stat("misses_total") == 2, "the list and the first segment")
        }

        @Test func `nothing is fetched beyond the configured seconds`() throws {
            let title = try PlayedTitle(seconds: 8)
            _ = try title.read(0)
            #expect(try title.isFetched(1))
            #expect(try title.isFetched(2))
            #expect(title.story.cdn.requestCount(title.path(3)) == 0)
        }

        @Test func `a seek changes what is fetched`() throws {
            let title = try PlayedTitle(seconds: 8, rate: 20_000)
            let before = try title.open(0)
            _ = try before.read(1_000)
            let sought = try title.open(12)
            _ = try sought.readRest()
            #expect(eventually { title.story.cdn.requestCount(title.path(13)) == 1 })
            #expect(title.story.cdn.requestCount(title.path(2)) == 0)
        }

        @Test func `the player's own request goes before what is fetched ahead`() throws {
            let title = try PlayedTitle(["--slots", "1"])
            title.story.cdn.setBehaviour("rate=20000", for: title.path(1))
            _ = try title.read(0)
            #expect(eventually { title.story.cdn.requestCount(title.path(1)) == 1 })
            let sought = try title.read(9)
            #expect(sought.body.count == title.size)
        }

        @Test func `while a player waits for a segment nothing else uses the link`() throws {
            let title = try PlayedTitle()
            title.story.cdn.hold(title.path(0), afterBytes: 10_000)
            let stream = try title.open(0)
            _ = try stream.read(10_000)
            #expect(try title.story.settled("ahead_fetches_total") { $0 > 0 } > 0)
            #expect(title.story.cdn.requestCount(title.path(1)) == 0)
            title.story.cdn.release(title.path(0))
            _ = try stream.readRest()
            #expect(try title.isFetched(1))
        }

        @Test func `a player that requests what is being fetched shares the request`() throws {
            let title = try PlayedTitle()
            title.story.cdn.hold(title.path(1), afterBytes: 10_000)
            _ = try title.read(0)
            #expect(eventually { title.story.cdn.requestCount(title.path(1)) == 1 })
            let stream = try title.open(1)
            _ = try stream.read(10_000)
            title.story.cdn.release(title.path(1))
            #expect(try stream.readRest().count == title.size - 10_000)
            #expect(title.story.cdn.requestCount(title.path(1)) == 1)
        }

        @Test func `a prefetch that cannot be joined to stored bytes does not replace them`()
            throws
        {
            let story = try Story(["--look-ahead", "12"])
            let path = "/bytes/300000/film.ts"
            story.cdn.setBehaviour("noetag=1&lastmod=", for: path)
            // The middle of the file, an advertisement, was cut out of the list.
            story.cdn.put(
                "/cut.m3u8",
                text: """
                    #EXTM3U
                    #EXT-X-VERSION:4
                    #EXT-X-TARGETDURATION:4
                    #EXTINF:4,
                    #EXT-X-BYTERANGE:100000@0
                    \(path)
                    #EXTINF:4,
                    #EXT-X-BYTERANGE:100000@200000
                    \(path)
                    #EXT-X-ENDLIST

                    """)
            let player = story.player()
            let link = try #require(uriLines(try player.get(story.url("/cut.m3u8")).text).first)
            let first = [("Range", "bytes=0-99999")]
            let bytes = try player.get(link, headers: first).body
            #expect(try story.settled("ahead_fetches_total") { $0 > 0 } > 0)
            #expect(eventually { story.cdn.requestCount(path) == 2 })
            #expect(try story.settled("ahead_running") { $0 == 0 } == 0)
            let asked = story.cdn.requestCount(path)
            let again = try player.get(link, headers: first)
            #expect(again.head["Cache-Status"]?.contains("; hit") == true && again.body == bytes)
            #expect(story.cdn.requestCount(path) == asked)
        }

        @Test func `a reader gets the rest of a prefetch that was paused and cancelled`() throws {
            // More than the buffers of a connection hold, so that the reader stays behind.
            let title = try PlayedTitle(size: 16_000_000)
            let cdn = title.story.cdn
            cdn.hold(title.path(1), afterBytes: 12_000_000)
            _ = try title.read(0)
            #expect(eventually { cdn.bytesSent(title.path(1)) >= 12_000_000 })
            // Another player waits for its media: the prefetch pauses.
            let awaited = "/bytes/50000/other.ts"
            cdn.hold(awaited, afterBytes: 20_000)
            let other = try title.story.open(awaited)
            _ = try other.read(20_000)
            let stream = try title.open(1)
            _ = try stream.read(10_000)
            // The player has moved on to the end: nothing is fetched ahead any more.
            _ = try title.read(15)
            #expect(try title.story.settled("ahead_running") { $0 == 0 } == 0)
            cdn.release(title.path(1))
            cdn.release(awaited)
            #expect(try other.readRest().count == 30_000)
            #expect(try stream.readRest().count == title.size - 10_000)
        }

        // More than once, since nothing determines which of the two fetches is looked at first.
        @Test(arguments: 1...3)
        func `a recording goes on with what look-ahead has to wait for`(_ round: Int) throws {
            let title = try PlayedTitle(size: 2_000_000)
            let cdn = title.story.cdn
            let paths = (1...2).map { title.path($0) }
            for path in paths { cdn.hold(path, afterBytes: 1_000_000) }
            _ = try title.read(0)
            #expect(eventually { paths.allSatisfy { cdn.bytesSent($0) >= 1_000_000 } })
            // Another player waits for its media: what is fetched ahead pauses.
            let awaited = "/bytes/50000/other.ts"
            cdn.hold(awaited, afterBytes: 20_000)
            let other = try title.story.open(awaited)
            _ = try other.read(20_000)
            let segments = paths.map { LiveWindow.Segment(uri: $0, duration: 4) }
            let stream = RecordedStream(
                on: title.story,
                LiveWindow(segments: segments, targetDuration: 4, windowSize: paths.count))
            try stream.record()
            for path in paths { cdn.release(path) }
            #expect(try stream.has(paths.count))
            // That player waited all the time: its transfer has not stalled yet.
            #expect(cdn.requestCount(awaited) == 1)
            // They were requested before the live list was read for the first time: what they mean
            // there is asked once, and no byte is sent again.
            for path in paths {
                #expect(cdn.requestCount(path) <= 2 && cdn.firstByteServedTwice(path) == nil)
            }
            cdn.release(awaited)
            #expect(try other.readRest().count == 30_000)
        }

        @Test func `a player that hangs up ends what was fetched for it`() throws {
            // What waits is cancelled after a tenth of a second, and what is fetched ends after three:
            // a late thread may change their order.
            var requests = 0
            for _ in 0..<3 where requests != 2 {
                let title = try PlayedTitle(size: 2_000_000, rate: 100_000)
                let stream = try title.open(0)
                _ = try stream.read(1_000)
                stream.abort()
                #expect(eventually { title.story.cdn.activeRequests == 0 })
                #expect(try title.story.settled("ahead_running") { $0 == 0 } == 0)
                requests = title.story.cdn.requestCount()
            }
            #expect(requests == 2)
        }

        @Test func `look-ahead that became useless costs no more bytes`() throws {
            let title = try PlayedTitle()
            title.story.cdn.hold(title.path(1), afterBytes: 20_000)
            _ = try title.read(0)
            #expect(eventually { title.story.cdn.bytesSent(title.path(1)) > 0 })
            _ = try title.read(14)
            #expect(eventually { title.story.cdn.activeRequests == 0 })
            #expect(title.story.cdn.bytesSent(title.path(1)) < title.size)
        }

        @Test(arguments: ["", "?_HLS_msn=0"])
        func `of several renditions auto looks ahead in the best one only`(
            _ directives: String
        ) throws {
            let feed = try ShownFeed(
                items: 1, isMultivariant: true, on: Story(["--look-ahead", "auto"]))
            let master = uriLines(try feed.player.get(feed.story.url(feed.entry(0))).text)
            let low = uriLines(try feed.player.get(master[0] + directives).text)
            _ = try feed.player.get(low[0])
            let high = uriLines(try feed.player.get(master[1] + directives).text)
            _ = try feed.player.get(high[1])
            #expect(eventually { feed.story.cdn.requestCount(feed.segment(0, 2, "high")) == 1 })
            #expect(feed.story.cdn.requestCount(feed.segment(0, 1, "low")) == 0)
        }

        @Test func `an origin limited to one connection gets no look-ahead`() throws {
            let story = try Story(["--look-ahead", "auto", "--host-limit", "1"])
            story.cdn.put("/v.m3u8", text: vod((0..<4).map { "/bytes/9000/o\($0).ts" }))
            for link in try story.links(in: "/v.m3u8") { _ = try story.follow(link) }
            #expect(try story.stat("ahead_fetches_total") == 0)
            #expect(story.cdn.peakConcurrentRequests == 1)
        }

        @Test func `a node of a cluster fetches ahead only if it is told how far`() throws {
            let folder = try TemporaryFolder()
            let key = folder.file("key")
            #expect(try sluice("cluster", "key", key).status == 0)
            func play(_ mode: String) throws -> Story {
                let story = try Story(["--look-ahead", mode, "--cluster-key", key])
                story.cdn.put("/v.m3u8", text: vod((0..<4).map { "/bytes/9000/n\($0).ts" }))
                for link in try story.links(in: "/v.m3u8") { _ = try story.follow(link) }
                return story
            }
            #expect(try play("auto").stat("ahead_fetches_total") == 0)
            let told = try play("12")
            #expect(try told.settled("ahead_fetches_total") { $0 > 0 } > 0)
        }

        @Test func `a reload that turns look-ahead on holds from then on`() throws {
            let folder = try TemporaryFolder()
            let file = folder.file("sluice.json")
            try writeFile(file, "{}".utf8)
            let story = try Story(["--config", file])
            story.cdn.put("/v.m3u8", text: vod((0..<4).map { "/bytes/9000/t\($0).ts" }))
            func play() throws { _ = try story.follow(story.links(in: "/v.m3u8")[0]) }
            try play()
            try writeFile(file, "{\"origin-look-ahead\": [\"127.0.0.1=12\"]}".utf8)
            story.daemon.kill(SIGHUP)
            let isAhead = eventually {
                try? play()
                return story.cdn.requestCount("/bytes/9000/t1.ts") == 1
            }
            #expect(isAhead)
        }

        @Test func `what a player announces is fetched`() throws {
            let title = try PlayedTitle(seconds: 4)
            let next = title.link(9).split(separator: "/").suffix(2).joined(separator: "/")
            let field = "nor=\"..%2F\(percentEncoded(next))\""
            _ = try title.read(0, headers: [("CMCD-Request", field)])
            #expect(try title.isFetched(9))
            #expect(eventually { title.story.cdn.requestCount() == 4 })
        }

        @Test
        func `what a player announces is fetched only by a signed link of its session`() throws {
            let open = try Story()
            let names = (0..<16).map { "/bytes/9000/n\($0).ts" }
            open.cdn.put("/v.m3u8", text: vod(names))
            let unsigned = try open.links(in: "/v.m3u8")[9]
            let closed = try Story(["--look-ahead", "4", "--token", "s3cret-token"])
            let player = closed.player()
            func signedLinks(_ more: String = "") throws -> [String] {
                let url = percentEncoded(open.cdn.url("/v.m3u8"))
                let entry = "\(closed.daemon.baseURL)/proxy?url=\(url)&token=s3cret-token\(more)"
                return uriLines(try player.get(entry).text)
            }
            // Both sessions get the stored list: each must be reported.
            let other = try signedLinks("&h_Referer=x")[10]
            let own = try signedLinks()
            func play(_ number: Int, announcing link: String) throws {
                let next = link.split(separator: "/").suffix(2).joined(separator: "/")
                let field = "nor=\"..%2F\(percentEncoded(next))\""
                _ = try player.get(own[number], headers: [("CMCD-Request", field)])
                #expect(eventually { open.cdn.bytesSent(names[number + 1]) == 9_000 })
            }
            try play(0, announcing: unsigned)
            try play(1, announcing: other)
            try play(2, announcing: own[11])
            #expect(eventually { open.cdn.bytesSent(names[11]) == 9_000 })
            #expect(open.cdn.requestCount(names[9]) == 0)
            #expect(open.cdn.requestCount(names[10]) == 0)
        }
    }
}

/// A title of 16 segments of 4 s, played through a daemon with look-ahead.
struct PlayedTitle {
    let size: Int
    let story: Story
    private let links: [String]
    private let player: ScriptedPlayer

    /// Loads the title's list; `rate` limits every segment, in bytes per second.
    init(
        _ arguments: [String] = [], seconds: Int = 12, size: Int = 60_000, rate: Int? = nil
    ) throws {
        self.size = size
        story = try Story(["--look-ahead", String(seconds)] + arguments)
        let names = (0..<16).map { "/bytes/\(size)/s\($0).ts" }
        story.cdn.put("/v.m3u8", text: vod(names))
        if let rate { story.cdn.setBehaviour(Behaviour(query: "rate=\(rate)"), for: "/bytes/*") }
        player = story.player()
        links = uriLines(try player.get(story.url("/v.m3u8")).text)
    }

    func link(_ number: Int) -> String { links[number] }

    func path(_ number: Int) -> String { "/bytes/\(size)/s\(number).ts" }

    /// Plays a segment to its end.
    func read(_ number: Int, headers: [WireHead.Field] = []) throws -> PlayerResponse {
        try player.get(links[number], headers: headers)
    }

    /// Requests a segment on a separate connection, and reads nothing of it.
    func open(_ number: Int) throws -> PlayerStream { try story.player().open(links[number]) }

    /// Waits until a segment was fetched, and with it everything that is currently wanted.
    func isFetched(_ number: Int) throws -> Bool {
        guard eventually({ story.cdn.bytesSent(path(number)) == size }) else { return false }
        return try story.settled("ahead_running") { $0 == 0 } == 0
    }
}
