import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// A folder that an earlier version has filled: its binary is `$FORMER_SLUICE`.
///
/// `Tests/StoreTests/UpgradeTests.swift` opens a folder of 0.4.0 without it.
extension Stories {
    @Suite(.tags(.timed), .enabled(if: getenv("FORMER_SLUICE") != nil))
    struct UpgradeTests {
        private let former = getenv("FORMER_SLUICE").map { String(cString: $0) }

        @Test(arguments: [SIGTERM, SIGKILL])
        func `everything stored by the former version is found`(signal: Int32) throws {
            let story = try Story(first: former)
            let kept = try Kept(story)
            story.stop(signal)
            if let path = getenv("FORMER_FOLDER_COPY") {
                _ = try Tool.run(["cp", "-a", story.cacheFolder, String(cString: path)])
            }
            try story.restart()
            try kept.expectAll(story)
            let names = listFolder(story.cacheFolder)
            #expect(!names.contains("pins") && names.contains("state.sqlite"))
            #expect(listFolder(story.cacheFolder + "/downloads").isEmpty)
            try story.restart(SIGKILL)
            try kept.expectAll(story)
        }

        @Test func `the former version rejects the upgraded folder, and changes nothing`() throws {
            let story = try Story()
            let kept = try Kept(story)
            story.stop()
            let former = try #require(former)
            let refused = try Tool.run(
                [former, "serve", "--port", "0", "--cache-dir", story.cacheFolder])
            #expect(refused.status == 4 && refused.stderr.contains("has format 3"))
            try story.restart()
            try kept.expectAll(story)
        }
    }
}

/// One of each kind of state.
private struct Kept {
    let sessionLink: String
    let download: String
    let recording: String

    init(_ story: Story) throws {
        let cdn = story.cdn
        cdn.put(
            "/film.m3u8",
            text: """
                #EXTM3U
                #EXT-X-TARGETDURATION:4
                #EXT-X-PLAYLIST-TYPE:VOD
                #EXTINF:4,
                \(segment("film", 3_000))
                #EXT-X-ENDLIST

                """)
        cdn.put(
            "/live.m3u8",
            text: "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\n\(segment("live", 9_000))\n")
        let daemon = story.daemon.baseURL
        let film = DownloadStage.encoded(cdn.url("/film.m3u8"))
        cdn.put("/viewer.ts", Array("for me".utf8))
        cdn.setBehaviour("needheader=X-Viewer:me", for: "/viewer.ts")
        cdn.put(
            "/viewer.m3u8",
            text: "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\n/viewer.ts\n#EXT-X-ENDLIST\n")
        let own = DownloadStage.encoded(cdn.url("/viewer.m3u8"))
        let list = try story.follow("/proxy?url=\(own)&h_X-Viewer=me").text
        sessionLink = try #require(uriLines(list).first)
        _ = try story.player().get(story.url("/film.m3u8"))
        let pinned = try story.player().get("\(daemon)/api/pin?url=\(film)", method: "POST")
        #expect(pinned.status == 200, "\(pinned.text)")
        let file = DownloadStage.encoded(cdn.url(segment("file", 50_000)))
        let ordered = try story.player().get(
            "\(daemon)/api/downloads?url=\(file)&h_X-Viewer=me", method: "POST")
        download = DownloadStage.Answer(status: ordered.status, text: ordered.text)["id"]
        #expect(
            try eventually {
                try story.player().get("\(daemon)/api/downloads").text.contains("\"complete\"")
            })
        let live = DownloadStage.encoded(cdn.url("/live.m3u8"))
        let recorded = try story.player().get(
            "\(daemon)/api/recordings?url=\(live)&for=1h&name=News", method: "POST")
        recording = DownloadStage.Answer(status: recorded.status, text: recorded.text)["id"]
        for path in 1...4 {
            for visit in 1...3 { _ = try story.get(segment("key\(path)", 900) + "?sess=\(visit)") }
        }
        #expect(try eventually { try Self.keys(story).contains("\"sess\"") })
        let body = "{\"entries\":[\"\(cdn.url("/film.m3u8"))\"]}"
        let fed = try Tool.run([
            "curl", "-s", "-X", "PUT", "-d", body, "\(daemon)/api/feeds/home",
        ])
        #expect(fed.stdout.contains("\"home\""), "\(fed.stdout)")
        #expect(try story.settled("slots_in_use") { $0 == 0 } == 0)
    }

    private static func keys(_ story: Story) throws -> String {
        try story.player().get(story.daemon.baseURL + "/api/keys").text
    }

    func expectAll(_ story: Story) throws {
        let daemon = story.daemon.baseURL
        func told(_ path: String, _ text: String) throws -> Bool {
            try eventually { try story.player().get(daemon + path).text.contains(text) }
        }
        #expect(try told("/api/downloads", "\"\(download)\""))
        #expect(try told("/api/downloads", "\"complete\""))
        #expect(try told("/api/recordings/\(recording)", "\"News\""))
        #expect(try told("/api/feeds/home", "\"entries\":1"))
        #expect(try told("/api/keys", "\"sess\""))
        #expect(try told("/api/titles", "\"pinned\":true"))
        // The origin has it only for requests with the header of the session.
        #expect(try story.follow(sessionLink).text == "for me")
    }
}
