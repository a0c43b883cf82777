import FixtureCDN
import ScenarioSupport
import Testing

/// Live lists whose URLs differ in each version: players find each segment under its former path,
/// with its bytes.
extension Stories {
    @Suite(.tags(.timed)) struct LivePathTests {}
}

/// What changes from version to version.
enum Rotating: String, CaseIterable, Sendable, CustomTestStringConvertible {
    case query, path, edges, edgesAndQuery, edgesAndPath, nothing

    var testDescription: String { rawValue }
    var hasEdges: Bool { rawValue.hasPrefix("edges") }

    /// The form of the list, besides its location.
    fileprivate var behaviour: Behaviour {
        switch self {
        case .query, .edgesAndQuery: "rotate=query"
        case .path, .edgesAndPath: "rotate=path"
        case .edges, .nothing: Behaviour()
        }
    }
}

/// A live list, possibly on two alternating servers, with an initialization section.
private final class RotatingChannel {
    let story: Story
    let window: LiveWindow
    private let edges: [FixtureCDN]
    let path = "/live/l.m3u8"

    init(_ rotating: Rotating, _ arguments: [String] = [], window: LiveWindow? = nil) throws {
        story = try Story(arguments)
        let window =
            window
            ?? LiveWindow(
                segments: (0..<100).map { .init(uri: segment("s\($0)", 3_000), duration: 1) },
                targetDuration: 1, windowSize: 4,
                header: ["#EXT-X-PART-INF:PART-TARGET=0.1", "#EXT-X-MAP:URI=\"/bytes/900/i.mp4\""])
        self.window = window
        edges = rotating.hasEdges ? [FixtureCDN(), FixtureCDN()] : []
        for edge in edges {
            try edge.start()
            _ = edge.live(path, window)
            edge.setBehaviour(rotating.behaviour, for: path)
        }
        if edges.isEmpty {
            _ = story.cdn.live(path, window)
            story.cdn.setBehaviour(rotating.behaviour, for: path)
        } else {
            let bases = edges.map(\.baseURL).joined(separator: ",")
            story.cdn.setBehaviour(Behaviour(query: "edges=\(bases)"), for: path)
        }
    }

    deinit { edges.forEach { $0.stop() } }

    /// The next version that the origin serves.
    func read(_ entry: String? = nil) throws -> LiveText {
        let count = story.cdn.requestCount(path)
        var text = ""
        let isPlain = entry?.contains("dvr=") != true
        guard
            try eventually({
                let answer = try story.follow(entry ?? story.url(path))
                text = answer.text
                // A stored list that is sent while a fetch goes on has no status of the origin.
                let hasStatus = answer["Cache-Status"]?.contains("fwd-status=") == true
                return story.cdn.requestCount(path) > count && (hasStatus || !isPlain)
            })
        else { throw ScenarioFailure("the list was not asked for") }
        return LiveText(text)
    }
}

/// A rewritten live list by the numbers of its segments.
private struct LiveText {
    let text: String
    var segments: [Int: String] = [:]
    var parts: [String: String] = [:]
    var maps: [String] = []

    init(_ text: String) {
        self.text = text
        var number = 0
        var part = 0
        for line in text.split(separator: "\n") {
            if line.hasPrefix("#EXT-X-MEDIA-SEQUENCE:") || line.hasPrefix("#EXT-X-SKIP:") {
                number += Int(line.split(whereSeparator: { ":=".contains($0) }).last ?? "") ?? 0
            } else if line.hasPrefix("#EXT-X-MAP:") {
                maps += links(String(line))
            } else if line.hasPrefix("#EXT-X-PART:") || line.hasPrefix("#EXT-X-PRELOAD-HINT:") {
                parts["\(number).\(part)"] = links(String(line)).first
                part += 1
            } else if !line.hasPrefix("#") {
                segments[number] = String(line)
                number += 1
                part = 0
            }
        }
    }
}

extension Stories.LivePathTests {
    @Test func `a delta update continues the byte ranges of the list before it`() throws {
        let story = try Story()
        func list(_ first: Int, skipping skipped: Int, _ ranges: [String]) -> String {
            var text = "#EXTM3U\n#EXT-X-VERSION:9\n#EXT-X-TARGETDURATION:1\n"
            text += "#EXT-X-SERVER-CONTROL:CAN-SKIP-UNTIL=6\n#EXT-X-MEDIA-SEQUENCE:\(first)\n"
            if skipped > 0 { text += "#EXT-X-SKIP:SKIPPED-SEGMENTS=\(skipped)\n" }
            for range in ranges { text += "#EXTINF:1,\n#EXT-X-BYTERANGE:\(range)\nf.ts\n" }
            return text
        }
        story.cdn.put("/l.m3u8", text: list(0, skipping: 0, ["10@0", "10", "10"]))
        #expect(try story.get("/l.m3u8").text.contains("#EXT-X-BYTERANGE:10@20\n"))
        for step in 1...2 {
            story.cdn.put("/l.m3u8", text: list(step, skipping: 2, ["7"]))
            let text = try story.get("/l.m3u8?_HLS_msn=\(2 + step)&_HLS_skip=YES").text
            #expect(text.contains("#EXT-X-BYTERANGE:7@\(23 + 7 * step)\n"), "\(text)")
        }
    }

    @Test(arguments: Rotating.allCases)
    func `a segment keeps its path whatever else of its URL changes`(_ rotating: Rotating) throws {
        let channel = try RotatingChannel(rotating)
        var paths: [Int: String] = [:]
        var sections: Set<String> = []
        var urls: [Int: Set<String>] = [:]
        for step in 0..<5 {
            let list = try channel.read()
            #expect(list.segments.count == 4)
            for (number, link) in list.segments {
                let path = path(of: link)
                #expect(paths.updateValue(path, forKey: number) ?? path == path)
                urls[number, default: []].insert(link)
                let found = try channel.story.follow(link)
                #expect(isContent(found.body, of: segment("s\(number)", 3_000)), "\(link)")
            }
            sections.formUnion(list.maps.map(path(of:)))
            channel.window.advance(by: step == 0 ? 0 : 1)
        }
        #expect(Set(paths.values).count == paths.count)
        #expect(sections.count == 1 && sections.first?.hasSuffix(".mp4") == true, "\(sections)")
        #expect(paths.values.allSatisfy { $0.hasSuffix(".ts") })
        // Otherwise nothing has rotated.
        #expect((urls[3]?.count ?? 0 > 1) == (rotating != .nothing))
    }

    @Test(arguments: [Rotating.query, .edgesAndPath])
    func `a link without its query leads where the last reload of its playlist says`(
        _ rotating: Rotating
    ) throws {
        let channel = try RotatingChannel(rotating)
        let first = try channel.read()
        channel.window.advance()
        let second = try channel.read()
        for list in [first, second] {
            for (number, link) in list.segments {
                let found = try channel.story.follow(path(of: link))
                #expect(isContent(found.body, of: segment("s\(number)", 3_000)), "\(link)")
            }
            let section = try channel.story.follow(path(of: try #require(list.maps.first)))
            #expect(section.body.count == 900)
        }
        // Resources of the stored list are found after a restart, too.
        try channel.story.restart()
        let known = try #require(second.segments[2])
        let found = try channel.story.follow(path(of: known))
        #expect(isContent(found.body, of: segment("s2", 3_000)))
        let gone = try channel.story.follow(path(of: try #require(first.segments[0])))
        #expect(gone.status == 404 && gone.text.contains("segment 0"), "\(gone.text)")
        let odd = path(of: known).replacing("/2.ts", with: "/2x.ts")
        #expect(try channel.story.follow(odd).status == 404)
    }

    @Test func `a link into a viewer's own list leads to that list without its query too`() throws {
        let story = try Story()
        story.cdn.setBehaviour("cc=private", for: "/l.m3u8")
        var links: [(viewer: String, path: String)] = []
        for viewer in ["alice", "bob", "carol"] {
            story.cdn.put("/ad/\(viewer).ts", text: "for \(viewer)")
            story.cdn.put(
                "/l.m3u8",
                text: vod(["/ad/\(viewer).ts"], head: ["#EXT-X-MEDIA-SEQUENCE:7"])
                    .replacing("#EXT-X-ENDLIST\n", with: ""))
            let list = try story.follow(story.entry("/l.m3u8", "h_User-Agent=\(viewer)"))
            links.append((viewer, path(of: try #require(uriLines(list.text).first))))
        }
        for (viewer, path) in links {
            #expect(try story.follow(path).text == "for \(viewer)")
        }
        try story.restart()
        let player = story.player()
        for (viewer, path) in links { #expect(try player.get(path).text == "for \(viewer)") }
    }

    @Test func `a path stays after a restart, and changes once the origin restarts its numbering`()
        throws
    {
        let channel = try RotatingChannel(.path)
        let before = try channel.read()
        try channel.story.restart()
        channel.window.advance()
        let after = try channel.read()
        for number in 1...3 {
            #expect(before.segments[number].map(path(of:)) == after.segments[number].map(path(of:)))
        }
        #expect(before.maps.map(path(of:)) == after.maps.map(path(of:)))
        channel.window.advance(by: 20)
        _ = try channel.read()
        channel.window.advance(by: -21)
        let anew = try channel.read()
        let former = Set(before.segments.values.map(path(of:)))
        #expect(former.isDisjoint(with: anew.segments.values.map(path(of:))))
    }

    @Test func `a list that ends keeps the paths of its segments`() throws {
        let channel = try RotatingChannel(.query)
        let live = try channel.read()
        channel.window.end()
        let ended = try channel.read()
        #expect(ended.text.contains("#EXT-X-ENDLIST"))
        #expect(live.segments.mapValues(path(of:)) == ended.segments.mapValues(path(of:)))
    }

    @Test func `a signature binds the URL in the query to the path before it`() throws {
        let channel = try RotatingChannel(.query, ["--token", "secret-of-this-story"])
        let story = channel.story
        let entry = story.entry(channel.path, "token=secret-of-this-story")
        let list = try channel.read(entry)
        let two = try #require(list.segments[2]), three = try #require(list.segments[3])
        #expect(try story.follow(two).status == 200)
        #expect(try story.follow(path(of: two)).status == 200)
        let query = { (link: String) in String(link.drop { $0 != "?" }) }
        let forged = [
            path(of: two) + query(three),
            path(of: two).replacing("/2.ts", with: "/3.ts") + query(two),
            "/l" + two.dropFirst(2), "/s" + (list.maps.first ?? "").dropFirst(2),
        ]
        for link in forged {
            #expect(try story.follow(link).status == 403, "\(link)")
        }
        let next = try channel.read(entry)
        #expect(next.segments[2].map(path(of:)) == path(of: two) && next.segments[2] != two)
    }

    @Test(arguments: [Rotating.query, .path, .edgesAndQuery])
    func `a longer window keeps its segments' paths, also if the origin restarts its numbering`(
        _ rotating: Rotating
    ) throws {
        let channel = try RotatingChannel(rotating)
        let entry = channel.story.entry(channel.path, "dvr=1h")
        var paths: [Int: String] = [:]
        for step in [1, 1, 5, 1, -8, 1, 1] {
            let list = try channel.read(entry)
            for (number, link) in list.segments {
                let path = path(of: link)
                #expect(paths.updateValue(path, forKey: number) ?? path == path)
                let found = try channel.story.follow(link)
                // A segment that is not known to be stored yet is listed as a gap.
                guard !found.body.isEmpty else { continue }
                #expect(try channel.story.follow(path).body == found.body)
            }
            channel.window.advance(by: step)
        }
        #expect(paths.count >= 12 && Set(paths.values).count == paths.count)
    }

    @Test(arguments: [false, true])
    func `parts, their segment and what a delta update skips keep their paths`(
        _ partsAreRanges: Bool
    ) throws {
        let stage = try LowLatencyStage {
            $0.partsAreRanges = partsAreRanges
            $0.windowSize = 12
            $0.firstParts = 52
        }
        stage.story.cdn.setBehaviour("rotate=query", for: "/ll/video.m3u8")
        var segments: [Int: String] = [:]
        var parts: [String: String] = [:]
        for step in 0..<6 {
            let isDelta = step % 3 != 0
            let waiting = stage.ask(stage.next + (isDelta ? "&_HLS_skip=YES" : ""))
            stage.stream.advance()
            let answer = try waiting[0].value(within: .seconds(30)).text
            #expect(answer.contains("#EXT-X-SKIP") == isDelta)
            let list = LiveText(answer)
            for (number, link) in list.segments {
                let path = path(of: link)
                #expect(segments.updateValue(path, forKey: number) ?? path == path)
            }
            for (place, link) in list.parts {
                let path = path(of: link)
                #expect(parts.updateValue(path, forKey: place) ?? path == path, "\(place)")
            }
        }
        #expect(Set(segments.values).count == segments.count && segments.count >= 12)
        // Parts that are ranges of one resource share its path.
        let resources =
            partsAreRanges ? Set(parts.keys.map { $0.prefix { $0 != "." } }).count : parts.count
        #expect(Set(parts.values).count == resources)
    }

    @Test func `byte ranges without an offset get one, because each has its own path`() throws {
        let window = LiveWindow(
            segments: [.init(uri: "/bytes/9000/all.ts", duration: 1)], targetDuration: 1,
            windowSize: 1)
        let channel = try RotatingChannel(.nothing, window: window)
        let text = """
            #EXTM3U
            #EXT-X-TARGETDURATION:1
            #EXT-X-MEDIA-SEQUENCE:4
            #EXTINF:1,
            #EXT-X-BYTERANGE:1000@500
            /bytes/9000/all.ts
            #EXT-X-BYTERANGE:2000
            #EXTINF:1,
            /bytes/9000/all.ts
            #EXT-X-PART:DURATION=0.5,BYTERANGE="700@3500",URI="/bytes/9000/all.ts"
            #EXT-X-PART:DURATION=0.5,URI="/bytes/9000/all.ts",BYTERANGE="300",INDEPENDENT=YES
            #EXT-X-PART:BYTERANGE="300",DURATION=0.5,URI="/bytes/9000/all.ts"

            """
        channel.story.cdn.put(channel.path, text: text)
        let list = try channel.read().text
        #expect(list.contains("#EXT-X-BYTERANGE:1000@500\n"))
        #expect(list.contains("#EXT-X-BYTERANGE:2000@1500\n"))
        #expect(list.contains("BYTERANGE=\"300@4200\",INDEPENDENT=YES\n"))
        #expect(list.contains("#EXT-X-PART:BYTERANGE=\"300@4500\",DURATION"))
        // A list that has ended from the start is not changed.
        channel.story.cdn.put("/vod.m3u8", text: text + "#EXT-X-ENDLIST\n")
        let vod = try channel.story.get("/vod.m3u8").text
        #expect(vod.contains("#EXT-X-BYTERANGE:2000\n") && !vod.contains("?u="))
    }

    @Test func `a playlist private to its viewer keeps its paths`() throws {
        let channel = try RotatingChannel(.query)
        var behaviour = Behaviour(query: "rotate=query")
        behaviour.extraFields = [("Cache-Control", "private")]
        channel.story.cdn.setBehaviour(behaviour, for: channel.path)
        let first = try channel.read()
        let other = try channel.read(channel.story.entry(channel.path, "h_X-Other=1"))
        channel.window.advance()
        let second = try channel.read()
        for number in 1...3 {
            #expect(first.segments[number].map(path(of:)) == second.segments[number].map(path(of:)))
            #expect(first.segments[number] != other.segments[number])
        }
    }

    @Test func `a page of another site gets no more by a live link than by any other`() throws {
        let channel = try RotatingChannel(.query)
        let link = try #require(try channel.read().segments[2])
        for link in [link, path(of: link)] {
            let page = [("Origin", "https://elsewhere.example"), ("Sec-Fetch-Site", "cross-site")]
            #expect(try channel.story.follow(link, headers: page).status == 403)
            #expect(try channel.story.follow(link).status == 200)
        }
    }

    @Test func `decode turns a link into a live list back by its query`() throws {
        let channel = try RotatingChannel(.query)
        let link = try #require(try channel.read().segments[2])
        let run = { (arguments: [String]) in
            try Tool.run([try DaemonProcess.builtBinary(), "decode"] + arguments)
        }
        let whole = try run([channel.story.daemon.baseURL + link])
        #expect(whole.stdout.contains("/bytes/3000/s2.ts?token=t"))
        let bare = try run([path(of: link)])
        #expect(bare.status == 1 && bare.stderr.contains("segment 2"), "\(bare.stderr)")
        let why = try channel.story.follow(
            "/api/why?url=\(percentEncoded(channel.story.daemon.baseURL + path(of: link)))"
        ).text
        #expect(why.contains("s2.ts"), "\(why)")
    }
}
