import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// Texts of megabytes: no loop that serves others is held while one is parsed and rewritten.
extension Stories {
    @Suite(.tags(.timed)) struct LongTextStories {}
}

/// A daemon that is asked for long texts, and the response times.
private final class LongTextStage {
    let story: Story
    private var longest = Duration.zero
    /// The longest time within one request in which loops waited for a processor.
    private var longestDelay = Duration.zero

    init(_ arguments: [String] = []) throws {
        story = try Story(arguments)
    }

    /// A list of this many segments, about 55 bytes each.
    static func list(
        _ count: Int = 60_000, from first: Int = 0, isLive: Bool = false, head: [String] = [],
        query: String = ""
    ) -> String {
        var text = "#EXTM3U\n#EXT-X-VERSION:6\n#EXT-X-TARGETDURATION:1\n"
        text += "#EXT-X-MEDIA-SEQUENCE:\(first)\n"
        for line in head { text += line + "\n" }
        for number in first..<(first + count) {
            text += "#EXTINF:1.000,a title\n/bytes/100/segment-\(number).ts\(query)\n"
        }
        return isLive ? text : text + "#EXT-X-ENDLIST\n"
    }

    func put(_ text: String, as path: String = "/l.m3u8") { story.cdn.put(path, text: text) }

    /// Sends a request, and notes the response time.
    func get(
        _ link: String, isCompressed: Bool = false, from daemon: DaemonProcess? = nil
    ) throws -> PlayerResponse {
        let daemon = daemon ?? story.daemon
        let player = ScriptedPlayer(daemon.baseURL)
        let (start, delay) = (ContinuousClock.now, daemon.loopDelay)
        let answer = try player.get(
            link, headers: isCompressed ? [("Accept-Encoding", "gzip")] : [])
        longest = max(longest, ContinuousClock.now - start)
        longestDelay = max(longestDelay, daemon.loopDelay - delay)
        return answer
    }

    /// Replaces a segment in the file of the stored list by a comment, as a lost write might.
    func spoil(_ number: Int) throws {
        let lines = Array("#EXTINF:1.000,a title\n/bytes/100/segment-\(number).ts\n".utf8)
        let comment: [UInt8] = [35] + [UInt8](repeating: 32, count: lines.count - 2) + [10]
        for path in storedFiles(story.cacheFolder) {
            var bytes = try readFile(path)
            guard bytes.count > 1_000_000, let place = bytes.firstRange(of: lines) else {
                continue
            }
            bytes.replaceSubrange(place, with: comment)
            return try writeFile(path, bytes)
        }
        throw ScenarioFailure("no file has the list")
    }

    /// The path of an entry for a path of the CDN.
    func entry(_ path: String = "/l.m3u8") -> String { "/" + story.cdn.url(path) }

    /// Requests a list until it is as expected; the last one otherwise.
    func list(
        _ link: String, where isExpected: (PlayerResponse) -> Bool
    ) throws -> PlayerResponse {
        var answer = try get(link)
        _ = try eventually(within: .seconds(30)) {
            if isExpected(answer) { return true }
            answer = try get(link)
            return false
        }
        return answer
    }

    /// Checks that no loop was held for more than a small part of the time that a text takes to
    /// make.
    ///
    /// If the text is made on a loop, that loop is held for nearly all of that time, in a debug
    /// build for 260 ms and more. The time in which a busy machine gave the loops no processor while
    /// one request was answered is subtracted.
    func expectFreeLoops(
        of daemon: DaemonProcess? = nil, _ location: SourceLocation = #_sourceLocation
    ) throws {
        let daemon = daemon ?? story.daemon
        let stats = try ScriptedPlayer(daemon.baseURL).get("/api/stats").text
        let held = try #require(Self.figure("longest_loop_hold_milliseconds", in: stats))
        let delay = longestDelay.milliseconds
        #expect(
            Double(held) - delay < max(150, longest.milliseconds / 8),
            "held for \(held) ms, without a processor for \(delay) ms", sourceLocation: location)
        let made = Self.figure("long_texts_total", in: stats) ?? 0
        #expect(made > 0, sourceLocation: location)
    }

    private static func figure(_ name: String, in stats: String) -> Int? {
        stats.firstRange(of: "\"\(name)\":").flatMap {
            Int(stats[$0.upperBound...].prefix(while: \.isNumber))
        }
    }
}

extension Stories.LongTextStories {
    @Test func `a long playlist blocks no event loop, plain, compressed or stored`() throws {
        let stage = try LongTextStage()
        stage.put(LongTextStage.list())
        for isCompressed in [false, true, false] {
            let answer = try stage.get(stage.entry(), isCompressed: isCompressed)
            #expect(answer.status == 200)
            #expect((answer["Content-Encoding"] == "gzip") == isCompressed)
            if !isCompressed {
                let segments = uriLines(answer.text)
                #expect(segments.count == 60_000)
                #expect(segments.allSatisfy { $0.hasPrefix("/s/") })
            }
        }
        try stage.expectFreeLoops()
    }

    @Test func `a long playlist that an unclean stop damaged is fetched again`() throws {
        let stage = try LongTextStage()
        stage.put(LongTextStage.list())
        #expect(uriLines(try stage.get(stage.entry()).text).count == 60_000)
        // An administration request first has the headers of finished objects written.
        #expect(try stage.story.follow("/api/titles").status == 200)
        stage.story.stop(SIGKILL)
        try stage.spoil(50_000)
        try stage.story.restart()
        #expect(uriLines(try stage.get(stage.entry()).text).count == 60_000)
        #expect(stage.story.cdn.requestCount("/l.m3u8") > 1)
    }

    @Test func `players that request one long playlist together all get it`() throws {
        let stage = try LongTextStage()
        stage.put(LongTextStage.list())
        let (story, entry) = (stage.story, stage.entry())
        let lists = try inParallel(6) { _ in try story.player().get(entry).body }
        #expect(Set(lists.map(\.count)).count == 1 && lists.allSatisfy { $0 == lists[0] })
        // Each session has its own text; all six have the same session.
        #expect(try story.stat("playlists_rewritten_total") < 6)
    }

    @Test func `a long live playlist blocks no event loop, also if it is renumbered`() throws {
        let stage = try LongTextStage()
        for first in [50_000, 50_003, 200_000, 0] {
            stage.put(LongTextStage.list(30_000, from: first, isLive: true))
            let line = "#EXT-X-MEDIA-SEQUENCE:\(first)\n"
            let answer = try stage.list(stage.entry()) { $0.text.contains(line) }
            #expect(answer.status == 200 && answer.text.contains(line))
        }
        // Neither leap can be the stream of before.
        #expect(try stage.story.stat("live_epochs_total") == 2)
        try stage.expectFreeLoops()
    }

    @Test func `a long live playlist with time shift blocks no event loop`() throws {
        let stage = try LongTextStage()
        let link = "/proxy?url=\(percentEncoded(stage.story.cdn.url("/l.m3u8")))&dvr=12h"
        for first in [0, 3] {
            stage.put(LongTextStage.list(20_000, from: first, isLive: true))
            // Segments that have left the window stay in the list.
            let answer = try stage.list(link) { uriLines($0.text).count == 20_000 + first }
            #expect(answer.text.contains("#EXT-X-MEDIA-SEQUENCE:0\n"))
            #expect(uriLines(answer.text).count == 20_000 + first)
        }
        try stage.expectFreeLoops()
    }

    @Test func `blocking reloads of a long playlist block no event loop`() throws {
        let stage = try LongTextStage()
        let head = ["#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES"]
        stage.put(LongTextStage.list(isLive: true, head: head))
        #expect(try stage.get(stage.entry()).status == 200)
        // The first two exist; the last one is requested until the list contains it.
        for number in [0, 59_999] {
            #expect(try stage.get(stage.entry() + "?_HLS_msn=\(number)").status == 200)
        }
        let (story, link) = (stage.story, stage.entry() + "?_HLS_msn=60000")
        let waiting = Background { try story.player().get(link) }
        let reloads = story.cdn.requestCount("/l.m3u8")
        #expect(eventually { story.cdn.requestCount("/l.m3u8") > reloads })
        stage.put(LongTextStage.list(60_001, isLive: true, head: head))
        let answer = try waiting.value(within: .seconds(30))
        #expect(uriLines(answer.text).count == 60_001)
        try stage.expectFreeLoops()
    }

    @Test func `long JSON blocks no event loop, named by a playlist or opened`() throws {
        let stage = try LongTextStage()
        let asset = #"{"URI":"/adverts/episode/advert.m3u8","DURATION":10.5}"#
        func assets(_ bytes: Int) -> String {
            let assets = Array(repeating: asset, count: bytes / asset.utf8.count)
            return #"{"ASSETS":["# + assets.joined(separator: ",") + "]}"
        }
        for (name, bytes) in [("named", 3_000_000), ("opened", 1_000_000)] {
            stage.story.cdn.put(
                "/\(name)", text: assets(bytes), contentType: "application/json")
        }
        let range = #"#EXT-X-DATERANGE:ID="1",X-ASSET-LIST="/named""#
        stage.put(vod(["a.ts"], head: [range]))
        let list = try stage.get(stage.entry()).text
        let tail = try #require(list.firstRange(of: "X-ASSET-LIST=\"")?.upperBound)
        let link = String(list[tail...].prefix { $0 != "\"" })
        for url in [link, link, stage.entry("/opened"), stage.entry("/opened")] {
            let answer = try stage.get(url)
            #expect(
                answer.status == 200 && answer.text.contains("\(stage.story.daemon.baseURL)/p/"))
        }
        #expect(try stage.get(link, isCompressed: true)["Content-Encoding"] == "gzip")
        try stage.expectFreeLoops()
    }

    @Test func `long playlists block no event loop without their origin, or offline`() throws {
        let stage = try LongTextStage()
        stage.put(LongTextStage.list(25_000), as: "/vod.m3u8")
        stage.put(LongTextStage.list(25_000, isLive: true), as: "/live.m3u8")
        stage.put(
            (["#EXTM3U"] + variant("vod") + variant("live")).joined(separator: "\n") + "\n",
            as: "/m.m3u8")
        let names = ["/m.m3u8", "/vod.m3u8", "/live.m3u8"]
        for name in names {
            let list = try stage.get(stage.entry(name))
            _ = try stage.get(try #require(uriLines(list.text).first))
        }
        stage.story.cdn.stop()
        for name in names {
            _ = try stage.get(stage.entry(name), isCompressed: true)
        }
        try stage.expectFreeLoops()
        let (_, daemon) = try stage.story.offline()
        for name in names {
            #expect(try stage.get(stage.entry(name), from: daemon).status == 200)
        }
        try stage.expectFreeLoops(of: daemon)
    }

    @Test func `a link without its query into a long list is found after a restart`() throws {
        let stage = try LongTextStage()
        stage.put(LongTextStage.list(50_000, isLive: true))
        let links = uriLines(try stage.get(stage.entry()).text)
        let link = try #require(links.last).prefix { $0 != "?" }
        try stage.story.restart()
        let answer = try stage.get(String(link))
        #expect(answer.status == 200)
        #expect(isContent(answer.body, of: "/bytes/100/segment-49999.ts"))
        try stage.expectFreeLoops()
    }

    @Test func `a dead token in a long list is replaced without holding a loop`() throws {
        let stage = try LongTextStage()
        let media = "/bytes/100/segment-7.ts"
        stage.put(LongTextStage.list(30_000, query: "?token=a"))
        let links = uriLines(try stage.get(stage.entry()).text)
        stage.put(LongTextStage.list(30_000, query: "?token=b"))
        stage.story.cdn.setBehaviour("needtoken=b", for: media)
        let answer = try stage.get(links[7])
        #expect(answer.status == 200 && isContent(answer.body, of: media))
        try stage.expectFreeLoops()
    }

    @Test func `a daemon that prepares long playlists stops on SIGTERM`() throws {
        let stage = try LongTextStage()
        for number in 0..<6 { stage.put(LongTextStage.list(), as: "/\(number).m3u8") }
        let story = stage.story
        let players = (0..<6).map { number in
            Background { try story.player().get("/" + story.cdn.url("/\(number).m3u8")) }
        }
        // The lists are stored, and the first two are being prepared.
        #expect(eventually { (try? story.stat("stored_objects")) == 6 })
        story.daemon.kill(SIGTERM)
        _ = try story.daemon.waitForExit(within: .seconds(30))
        #expect(eventually { players.allSatisfy(\.isDone) })
    }
}

extension Duration {
    var milliseconds: Double { self / .milliseconds(1) }
}
