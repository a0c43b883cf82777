import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// Purges that are interrupted by the daemon's end.
extension Stories {
    @Suite(.tags(.timed)) struct PurgeResumeTests {
        @Test(arguments: [SIGKILL, SIGTERM])
        func `purged objects are not served after a daemon that ended within the purge`(
            signal: Int32
        ) throws {
            let story = try Story()
            let doomed = (0..<1_200).map { "/bytes/doomed\($0)/900" }
            let kept = (0..<10).map { "/bytes/kept\($0)/900" }
            story.putList("/doomed.m3u8", doomed)
            story.putList("/kept.m3u8", kept)
            let before = try ["/doomed.m3u8", "/kept.m3u8"].map { try story.playAll($0) }
            let all = doomed.count + kept.count + 2
            #expect(try story.settled("stored_objects") { $0 == all } == all)
            try story.restart()
            #expect(eventually { storedFiles(story.cacheFolder).count == all })

            let target = "/api/purge?title=\(percentEncoded(story.cdn.url("/doomed.m3u8")))"
            let purge = Background { try? story.player().get(target, method: "POST") }
            #expect(eventually { storedFiles(story.cacheFolder).count < all - 20 })
            story.stop(signal)
            _ = try? purge.value()
            let left = storedFiles(story.cacheFolder).count

            try story.restart()
            // The end may come after the purge is complete.
            let goesOn = story.daemon.standardError.contains("continuing a purge")
            #expect(goesOn || left == kept.count + 1, "\(left) are left")
            story.cdn.resetLog()
            for link in before[1] { #expect(try story.follow(link).complete) }
            #expect(story.cdn.requestCount() == 0, "what was not purged is gone")
            for link in before[0] { #expect(try story.follow(link).complete) }
            #expect(story.cdn.requestCount() == doomed.count, "something purged was served")

            // Objects fetched since then stay, also once the purge is complete.
            #expect(
                try eventually {
                    let text = try story.player().get("/api/purge").text
                    return text.contains(goesOn ? "\"done\"" : "\"none\"")
                })
            story.cdn.resetLog()
            for link in before[0].prefix(50) { #expect(try story.follow(link).complete) }
            #expect(story.cdn.requestCount() == 0)
        }

        @Test(arguments: ["", "SLUICE PURGE 1\n", "SLUICE PURGE 1\ngiven 99\nEND\n", "x"])
        func `a damaged order does not prevent a start and removes nothing`(text: String) throws {
            let story = try Story()
            let path = segment("kept", 3_000)
            _ = try story.get(path)
            story.stop()
            try writeFile(story.cacheFolder + "/purge", text.utf8)
            try story.restart()
            #expect(try story.get(path)["Cache-Status"]?.contains("hit") == true)
            #expect(story.daemon.standardError.contains("order of an unfinished purge is damaged"))
            #expect(!listFolder(story.cacheFolder).contains("purge"))
        }
    }
}

extension Story {
    fileprivate func putList(_ path: String, _ segments: [String]) {
        var text = "#EXTM3U\n#EXT-X-VERSION:6\n#EXT-X-TARGETDURATION:2\n#EXT-X-PLAYLIST-TYPE:VOD\n"
        for segment in segments { text += "#EXTINF:2,\n\(segment)\n" }
        cdn.put(path, text: text + "#EXT-X-ENDLIST\n")
    }

    /// Plays a list to its end; the links of its segments.
    fileprivate func playAll(_ path: String) throws -> [String] {
        let list = try get(path).text
        let links = list.split(separator: "\n").filter { !$0.hasPrefix("#") }.map(String.init)
        for link in links { #expect(try follow(link).complete) }
        return links
    }
}
