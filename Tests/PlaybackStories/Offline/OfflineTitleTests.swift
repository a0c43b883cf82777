import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// Partly stored titles: their lists without the network.
extension Stories {
    @Suite(.tags(.timed)) struct OfflineTitleTests {}
}

extension Stories.OfflineTitleTests {
    @Test
    func `only the completely stored one of three renditions is listed`() throws {
        let story = try Story()
        for name in ["low", "mid", "high"] { story.put(list: name) }
        try story.keep(master: variant("low") + variant("mid") + variant("high"))
        try story.keep("mid", 0..<3)
        try story.keep("high", 0..<6)
        let (player, daemon) = try story.offline()
        let (master, lists) = try player.title()
        #expect(lists.keys.sorted() == ["high"])
        #expect(master["Cache-Status"] == "sluice; hit; detail=offline")
        #expect(outline(lists["high"]) == "high0 high1 high2 high3 high4 high5 .")
        #expect(lists["high"]?["Cache-Status"]?.contains("offline") == false)
        withExtendedLifetime(daemon) {}
    }

    @Test
    func `a partly stored rendition is played over its holes, to an end`() throws {
        let story = try Story()
        story.put(list: "low")
        story.put(list: "high", head: ["#EXT-X-MEDIA-SEQUENCE:7"])
        try story.keep(master: variant("low") + variant("high"))
        try story.keep("low", 0..<1)
        try story.keep("high", 1..<3, 4..<6)
        let (player, daemon) = try story.offline()
        let (_, lists) = try player.title()
        #expect(lists.keys.sorted() == ["high"])
        let list = try #require(lists["high"])
        #expect(outline(list) == "high1 high2 | high4 high5 .")
        #expect(list.text.contains("#EXT-X-MEDIA-SEQUENCE:8\n"))
        for link in uriLines(list.text) { #expect(try player.player.get(link).status == 200) }
        withExtendedLifetime(daemon) {}
    }

    @Test
    func `video and audio skip the same ranges`() throws {
        let story = try Story()
        try story.keepVideoAndSound()
        let (player, daemon) = try story.offline()
        let (_, lists) = try player.title()
        #expect(outline(lists["video"]) == "video0 | video2 video3 | video5 .")
        #expect(outline(lists["sound"]) == "sound0 | sound2 sound3 | sound5 .")
        withExtendedLifetime(daemon) {}
    }

    @Test
    func `lists that are requested with delivery directives are cut as the title is`() throws {
        let story = try Story()
        try story.keepVideoAndSound()
        let (player, daemon) = try story.offline()
        var found: [String: String] = [:]
        for link in links(try player.get("/m.m3u8").text) {
            found[fileName(link)] = outline(try player.player.get(link + "?_HLS_msn=0"))
        }
        #expect(found["video"] == "video0 | video2 video3 | video5 .")
        #expect(found["sound"] == "sound0 | sound2 sound3 | sound5 .")
        withExtendedLifetime(daemon) {}
    }

    @Test
    func `lists are cut as a title whose URL does not tell its type is, which nobody asks for`()
        throws
    {
        let story = try Story()
        for name in ["video", "sound"] { story.put(list: name) }
        let lines =
            [
                "#EXTM3U",
                "#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"en\",DEFAULT=YES,URI=\"sound.m3u8\"",
            ] + variant("video", ",AUDIO=\"a\"")
        story.cdn.put("/go", text: lines.joined(separator: "\n") + "\n")
        let lists = links(try story.get("/go").text)
        try #require(lists.map(fileName) == ["sound", "video"])
        for (list, numbers) in zip(lists, [[0, 1, 2, 3, 5], [0, 2, 3, 4, 5]]) {
            let media = uriLines(try story.follow(list).text)
            for number in numbers { #expect(try story.follow(media[number]).status == 200) }
        }
        let (player, daemon) = try story.offline()
        var found: [String: String] = [:]
        for list in lists { found[fileName(list)] = outline(try player.player.get(list)) }
        #expect(found["video"] == "video0 | video2 video3 | video5 .")
        #expect(found["sound"] == "sound0 | sound2 sound3 | sound5 .")
        withExtendedLifetime(daemon) {}
    }

    @Test
    func `groups stay consistent, and optional renditions are removed`() throws {
        let story = try Story()
        for name in ["sd", "hd", "ac3", "aac", "en", "de"] { story.put(list: name) }
        let media = { (type: String, group: String, name: String) in
            "#EXT-X-MEDIA:TYPE=\(type),GROUP-ID=\"\(group)\",NAME=\"\(name)\",URI=\"\(name).m3u8\""
        }
        try story.keep(
            master: [
                media("AUDIO", "a1", "aac"), media("AUDIO", "a2", "ac3"),
                media("SUBTITLES", "s", "en"), media("SUBTITLES", "s", "de"),
            ] + variant("hd", ",AUDIO=\"a2\",SUBTITLES=\"s\"")
                + variant("sd", ",AUDIO=\"a1\",SUBTITLES=\"s\""))
        // The audio of the better variant was never played, and one subtitle track only in part.
        for name in ["hd", "sd", "aac", "de"] { try story.keep(name, 0..<6) }
        try story.keep("en", 0..<2)
        let (player, daemon) = try story.offline()
        let (master, lists) = try player.title()
        #expect(lists.keys.sorted() == ["aac", "de", "sd"])
        #expect(!master.text.contains("a2") && master.text.contains("AUDIO=\"a1\""))
        #expect(master.text.contains("SUBTITLES=\"s\""))
        withExtendedLifetime(daemon) {}
    }

    @Test(arguments: [false, true])
    func `I-frames that are stored are listed, and a complete title is unchanged`(
        _ isComplete: Bool
    ) throws {
        let story = try Story()
        for name in ["low", "high"] { story.put(list: name) }
        // Longer than the variants.
        story.put(list: "frames", count: 7)
        let frames = "#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=1,URI=\"frames.m3u8\""
        try story.keep(master: variant("low") + variant("high") + [frames])
        try story.keep("frames", 0..<7)
        try story.keep("high", 0..<(isComplete ? 6 : 3))
        if isComplete { try story.keep("low", 0..<6) }
        let (player, daemon) = try story.offline()
        let (master, lists) = try player.title()
        #expect(lists.keys.sorted() == ["frames", "high"] + (isComplete ? ["low"] : []))
        #expect(uriLines(lists["frames"]?.text ?? "").count == (isComplete ? 7 : 3))
        #expect(master["Cache-Status"]?.contains("offline") == !isComplete)
        withExtendedLifetime(daemon) {}
    }

    @Test
    func `missing audio removes the video too, missing subtitles only themselves`() throws {
        let story = try Story()
        for name in ["video", "sound", "text"] { story.put(list: name) }
        try story.keep(
            master: [
                "#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"en\",URI=\"sound.m3u8\"",
                "#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID=\"s\",NAME=\"en\",URI=\"text.m3u8\"",
            ] + variant("video", ",AUDIO=\"a\",SUBTITLES=\"s\""))
        try story.keep("video", 0..<6)
        try story.keep("sound", 0..<2)
        let (player, daemon) = try story.offline()
        let (master, lists) = try player.title()
        #expect(outline(lists["video"]) == "video0 video1 .")
        #expect(outline(lists["sound"]) == "sound0 sound1 .")
        #expect(lists["text"] == nil && !master.text.contains("SUBTITLES"))
        withExtendedLifetime(daemon) {}
    }

    @Test
    func `fragments with an initialization section are played in one stretch, the longest`() throws
    {
        let story = try Story()
        story.put(
            list: "f", head: ["#EXT-X-MAP:URI=\"/bytes/900/init.mp4\""], type: "m4s")
        try story.keep("f", 0..<2, 3..<6)
        let (player, daemon) = try story.offline()
        #expect(outline(try player.get("/f.m3u8")) == "f3 f4 f5 .")
        withExtendedLifetime(daemon) {}
    }

    @Test
    func `a rendition borrows missing segments from another one with the same codecs`() throws {
        let story = try Story()
        let codecs = [("low", "avc1.4d400c"), ("high", "avc1.4d401f"), ("other", "hvc1.1.6.L93")]
        for (name, _) in codecs { story.put(list: name) }
        try story.keep(
            master: codecs.flatMap { variant($0, ",CODECS=\"\($1),mp4a.40.2\"") })
        try story.keep("low", 0..<2)
        try story.keep("other", 2..<3)
        try story.keep("high", 3..<6)
        let (player, daemon) = try story.offline()
        let (_, lists) = try player.title()
        #expect(lists.keys.sorted() == ["high"])
        let list = try #require(lists["high"])
        #expect(outline(list) == "low0 low1 | high3 high4 high5 .")
        for link in uriLines(list.text) { #expect(try player.player.get(link).status == 200) }
        withExtendedLifetime(daemon) {}
    }

    @Test(arguments: [
        "#EXT-X-KEY:METHOD=AES-128,URI=\"/bytes/16/x.key\"", "#EXT-X-MAP:URI=\"/bytes/9/i.mp4\"",
    ])
    func `segments without their key or initialization section are not played`(_ line: String)
        throws
    {
        let story = try Story()
        story.put(list: "f", head: [line])
        for link in uriLines(try story.get("/f.m3u8").text) { _ = try story.follow(link) }
        let (player, daemon) = try story.offline()
        let answer = try player.get("/f.m3u8")
        #expect(answer.status == 504 && answer.text.hasPrefix("daemon error: nothing that "))
        withExtendedLifetime(daemon) {}
    }

    @Test
    func `a title without stored media is refused with the reason`() throws {
        let story = try Story()
        story.put(list: "v")
        try story.keep(master: variant("v"))
        let (player, daemon) = try story.offline()
        let answer = try player.get("/m.m3u8")
        #expect(answer.status == 504 && answer.text.contains("policy offline"))
        withExtendedLifetime(daemon) {}
    }

    @Test
    func `a live list ends with its stored segments`() throws {
        let story = try Story()
        _ = story.cdn.live("/live.m3u8", liveWindow(target: 2, window: 4))
        for number in 0..<4 { story.cdn.put("/s\(number).ts", Array("\(number)".utf8)) }
        let found = try story.links(in: "/live.m3u8")
        for link in found[1...2] { _ = try story.follow(link) }
        let (player, daemon) = try story.offline()
        let list = try player.get("/live.m3u8")
        #expect(outline(list) == "s1 s2 ." && list.text.contains("#EXT-X-MEDIA-SEQUENCE:1\n"))
        withExtendedLifetime(daemon) {}
    }

    @Test
    func `segments of a live list with holes keep their links`() throws {
        let story = try Story()
        _ = story.cdn.live("/live.m3u8", liveWindow(target: 2, window: 6))
        for number in 0..<6 { story.cdn.put("/s\(number).ts", Array("\(number)".utf8)) }
        let found = try story.links(in: "/live.m3u8")
        for index in [0, 2, 3, 4] { _ = try story.follow(found[index]) }
        let (player, daemon) = try story.offline()
        #expect(links(try player.get("/live.m3u8").text) == Array(found[2...4]))
        withExtendedLifetime(daemon) {}
    }

    @Test
    func `after a restart and after a kill the lists are the same`() throws {
        let story = try Story(["--policy", "media"])
        for name in ["video", "sound"] { story.put(list: name) }
        try story.keep(
            master: ["#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"en\",URI=\"sound.m3u8\""]
                + variant("video", ",AUDIO=\"a\""))
        try story.keep("video", 0..<3, 4..<6)
        try story.keep("sound", 0..<6)
        story.cdn.stop()
        for signal in [SIGTERM, SIGKILL] {
            let (player, daemon) = try story.offline()
            // The media playlist by itself, as a player requests it that continues.
            let sound = try player.get("/sound.m3u8")
            let (_, lists) = try player.title()
            #expect(outline(sound) == "sound0 sound1 sound2 sound3 sound4 sound5 .")
            #expect(outline(lists["sound"]) == "sound0 sound1 sound2 | sound4 sound5 .")
            #expect(outline(lists["video"]) == "video0 video1 video2 | video4 video5 .")
            daemon.kill(signal)
            _ = try daemon.waitForExit()
        }
    }

    @Test func `a title that is opened with a longer window is reduced as well`() throws {
        let story = try Story()
        for name in ["low", "high"] { story.put(list: name) }
        try story.keep(master: variant("low") + variant("high"))
        try story.keep("high", 0..<2, 3..<6)
        let (player, daemon) = try story.offline()
        let master = try player.player.get("/dvr=1h/" + story.cdn.url("/m.m3u8"))
        #expect(master["Cache-Status"]?.contains("detail=offline") == true)
        let found = links(master.text)
        #expect(found.map(fileName) == ["high"])
        let list = try player.player.get(try #require(found.first))
        #expect(outline(list) == "high0 high1 | high3 high4 high5 .")
        withExtendedLifetime(daemon) {}
    }

    @Test func `of a live stream with a longer window, the windows that are stored are listed`()
        throws
    {
        let stream = try ShiftedStream("1h")
        let story = stream.story
        try story.keep(master: variant("l") + variant("never"))
        let entry = "/dvr=1h/" + story.cdn.url("/m.m3u8")
        let played = try #require(links(try story.follow(entry).text).first)
        try stream.watch(try story.follow(played))
        let before = try story.follow(played).text
        stream.window.advance(by: 3)
        #expect(try eventually { try story.follow(played).text != before })
        let (player, daemon) = try story.offline()
        let found = links(try player.player.get(entry).text)
        #expect(found.map(fileName) == ["l"])
        let list = try player.player.get(try #require(found.first))
        #expect(list.segmentNames.starts(with: ["s0", "s1", "s2"]))
        withExtendedLifetime(daemon) {}
    }
}

extension Story {
    /// Keeps a title of which the video lacks its second segment, and the sound its fifth.
    fileprivate func keepVideoAndSound() throws {
        for name in ["video", "sound"] { put(list: name) }
        try keep(
            master: [
                "#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"en\",DEFAULT=YES,URI=\"sound.m3u8\""
            ] + variant("video", ",AUDIO=\"a\""))
        try keep("video", 0..<1, 2..<6)
        try keep("sound", 0..<4, 5..<6)
    }
}
