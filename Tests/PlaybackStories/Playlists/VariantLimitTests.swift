import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// Sessions whose entry limits the variants that their players are offered.
extension Stories {
    @Suite(.tags(.crowded)) struct VariantLimitTests {}
}

/// The values of RESOLUTION in a multivariant playlist, in order.
private func resolutions(_ list: PlayerResponse) -> [String] {
    list.text.split(separator: "RESOLUTION=").dropFirst().map { rest in
        String(rest.prefix { !",\n".contains($0) })
    }
}

extension Stories.VariantLimitTests {
    @Test func `a session with a limit is offered less of the playlist that all sessions share`()
        throws
    {
        let story = try Story(playing: [])
        let path = "/ts/master.m3u8"
        story.cdn.setBehaviour("cc=max-age=600", for: path)
        let origin = story.cdn.url(path)
        let all = ["284x160", "426x240", "640x360"]
        for _ in 0..<2 {
            #expect(try resolutions(story.follow("/\(origin)")) == all)
            #expect(
                try resolutions(story.follow("/height=240/\(origin)")) == ["284x160", "426x240"])
            #expect(
                try resolutions(story.follow(story.entry(path, "bandwidth=200000")))
                    == ["284x160"])
            #expect(try resolutions(story.follow("/height=100/\(origin)")) == ["284x160"])
            #expect(try resolutions(story.follow("/height=2160/\(origin)")) == all)
        }
        #expect(story.cdn.requestCount(path) == 1)
        // What it is offered plays, with sound and subtitles.
        for list in try links(story.follow("/height=240/\(origin)").text) {
            for link in try links(story.follow(list).text) {
                #expect(try story.follow(link).status == 200)
            }
        }
        // A probe of the origin has no second name in its path.
        let asked = Set(
            story.cdn.requests.compactMap { $0.path.split(separator: "/").dropFirst().first })
        #expect(asked == ["master.m3u8", "160p", "240p", "sound", "subs"])
    }

    @Test func `of what is stored a session with a limit is offered one variant at least`()
        throws
    {
        let story = try Story()
        let variants = [("640x360", ""), ("1280x720", "m/"), ("1920x1080", "h/")].map {
            "#EXT-X-STREAM-INF:BANDWIDTH=1,RESOLUTION=\($0)\n\($1)l.m3u8\n"
        }
        story.cdn.put("/m.m3u8", text: "#EXTM3U\n" + variants.joined())
        for folder in ["", "m/", "h/"] {
            story.cdn.put("/\(folder)l.m3u8", text: vod(["a.ts"]))
            story.cdn.put("/\(folder)a.ts", text: "segment of \(folder)")
        }
        for list in try story.links(in: "/m.m3u8").dropFirst() {
            let segment = try #require(try links(story.follow(list).text).first)
            #expect(try story.follow(segment).status == 200)
        }
        let offline = try story.succeed(["--policy", "offline"])
        defer { offline.kill(SIGKILL) }
        let player = ScriptedPlayer(offline.baseURL)
        let origin = story.cdn.url("/m.m3u8")
        for (limit, expected) in [
            ("", ["1280x720", "1920x1080"]), ("height=720/", ["1280x720"]),
            ("height=360/", ["1280x720"]),
        ] {
            #expect(try resolutions(player.get("/\(limit)\(origin)")) == expected, "\(limit)")
        }
    }

    @Test(arguments: ["height=0", "height=-1", "height=720p", "bandwidth=2147483649", "bandwidth="])
    func `a limit that is no number is refused with words, and nothing is requested`(
        _ argument: String
    ) throws {
        let story = try Story()
        let name = String(argument.prefix { $0 != "=" })
        let inPath = "/\(argument)/\(story.cdn.url("/m.m3u8"))"
        for entry in [inPath, story.entry("/m.m3u8", argument)] {
            let answer = try story.follow(entry)
            #expect(answer.status == 400 && answer.text.contains("\(name)= is a number of"))
        }
        #expect(story.cdn.requestCount() == 0)
    }
}
