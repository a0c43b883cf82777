import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// Work that ran in two consecutive crashes starts paused, and a person resumes it.
extension Stories {
    @Suite(.tags(.timed)) struct CrashLoopTests {
        /// A download that never ends by itself.
        private func held(_ stage: DownloadStage) throws -> String {
            let url = stage.title()
            stage.cdn.hold("/bytes/film-v2-4/20000")
            return try stage.order(url, "&audio=none")
        }

        private func runs(_ stage: DownloadStage, _ id: String) throws -> Bool {
            try eventually { try stage.download(id)["state"] == "running" }
        }

        @Test func `a download that ran in two crashes starts paused, and is resumed by hand`()
            throws
        {
            let stage = try DownloadStage()
            let id = try held(stage)
            #expect(try runs(stage, id))
            try stage.story.restart(SIGKILL)
            #expect(try runs(stage, id), "one crash is no loop")
            try stage.story.restart(SIGKILL)
            #expect(try stage.wait(id, for: "paused")["reason"].contains("crashed 2 times"))
            #expect(eventually { stage.story.daemon.standardError.contains("starts paused") })
            let program = try DaemonProcess.builtBinary()
            let list = try Tool.run(
                [program, "download", "list", "--daemon", stage.story.daemon.baseURL])
            #expect(list.stdout.contains("crashed 2 times"))
            try stage.story.restart()
            #expect(try stage.download(id)["reason"].contains("crashed 2 times"))
            _ = try stage.ask("POST", "/api/downloads/\(id)/resume")
            #expect(try runs(stage, id))
            try stage.story.restart(SIGKILL)
            #expect(try runs(stage, id), "a person's word begins the count anew")
        }

        @Test func `clean stops reset the count of crashes`() throws {
            let stage = try DownloadStage()
            let id = try held(stage)
            for signal in [SIGKILL, SIGTERM, SIGKILL, SIGTERM] {
                #expect(try runs(stage, id))
                try stage.story.restart(signal)
            }
            #expect(try runs(stage, id))
        }

        @Test func `a recording that ran in two crashes starts paused, and is resumed by hand`()
            throws
        {
            let story = try Story()
            let window = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\n/bytes/9000/l.ts\n"
            story.cdn.put("/live.m3u8", text: window)
            let url = DownloadStage.encoded(story.cdn.url("/live.m3u8"))
            let made = try story.player().get(
                story.daemon.baseURL + "/api/recordings?url=\(url)&for=1h", method: "POST"
            ).text
            let id = DownloadStage.Answer(status: 200, text: made)["id"]
            func state() throws -> DownloadStage.Answer {
                let path = story.daemon.baseURL + "/api/recordings/\(id)"
                return DownloadStage.Answer(status: 200, text: try story.player().get(path).text)
            }
            for _ in 0..<2 {
                #expect(try eventually { try state()["state"] == "running" })
                try story.restart(SIGKILL)
            }
            #expect(try eventually { try state()["state"] == "paused" })
            #expect(try state()["reason"].contains("crashed 2 times"))
            let program = try DaemonProcess.builtBinary()
            let daemon = ["--daemon", story.daemon.baseURL]
            #expect(
                try Tool.run([program, "record", "--list"] + daemon).stdout.contains("paused"))
            #expect(try Tool.run([program, "record", "--resume", id] + daemon).status == 0)
            #expect(try eventually { try state()["state"] == "running" })
        }

        @Test func `a paused recording shows what it has`() throws {
            let stream = try RecordedStream()
            try stream.record()
            #expect(try stream.has(3))
            // Saves that; a kill would lose the last ten seconds of it.
            try stream.story.restart()
            for _ in 0..<2 {
                #expect(try stream.told { $0.contains(Self.running) }.contains(Self.running))
                try stream.story.restart(SIGKILL)
            }
            let paused = #""state":"paused""#
            let state = try stream.told { $0.contains(paused) }
            #expect(members("segments", in: state) == ["3"], "\(state)")
            #expect(members("bytes", in: state).compactMap { Int($0) } == [9_000], "\(state)")
            #expect(members("seconds", in: state).compactMap { Double($0) } == [3], "\(state)")
            #expect(state.contains(paused))
        }

        @Test func `a player of a resumed recording is not told that it has ended`() throws {
            let stream = try RecordedStream()
            let text = try stream.record()
            let link = try #require(members("play", in: text).first)
            #expect(try stream.has(3))
            for _ in 0..<2 {
                #expect(try stream.told { $0.contains(Self.running) }.contains(Self.running))
                try stream.story.restart(SIGKILL)
            }
            let paused = #""state":"paused""#
            #expect(try stream.told { $0.contains(paused) }.contains(paused))
            // On one connection, so that one loop sees the same target again.
            let player = stream.story.player()
            for _ in 0..<3 { _ = try player.get(link) }
            _ = try stream.story.api("recordings/\(stream.id)/resume", method: "POST")
            #expect(try stream.told { $0.contains(Self.running) }.contains(Self.running))
            #expect(try stream.has(3))
            for _ in 0..<2 {
                let list = try player.get(link)
                #expect(list.status == 200 && !list.text.contains("ENDLIST"), "\(list.text)")
            }
        }

        @Test func `a recording that crashes at its end is finished when it is resumed`() throws {
            let stream = try RecordedStream()
            let (story, cdn) = (stream.story, stream.story.cdn)
            try stream.stopWithoutEntry()
            for _ in 0..<2 {
                let waiting = try stream.told { $0.contains(Self.finishing) }
                #expect(waiting.contains(Self.finishing), "\(waiting)")
                try story.restart(SIGKILL)
            }
            let paused = try stream.told { $0.contains("crashed 2 times") }
            #expect(paused.contains("crashed 2 times"), "\(paused)")
            // The console offers to stop it for as long as it has not ended.
            #expect(paused.contains(#""ended":null"#), "\(paused)")
            stream.window.advance(by: 3)
            try cdn.start()
            let reloads = cdn.requestCount("/l.m3u8")
            _ = try story.api("recordings/\(stream.id)/resume", method: "POST")
            let ended = try stream.told { $0.contains(#""state":"done""#) }
            let reason = members("reason", in: ended).first
            #expect(reason == "it had ended before the daemon crashed", "\(ended)")
            #expect(cdn.requestCount("/l.m3u8") == reloads)
            let names = try links(try stream.played().text).map {
                try story.follow($0).segmentNames
            }
            #expect(names == [["a0", "a1", "a2"], ["s0", "s1", "s2"]])
        }

        @Test func `a recording that is stopped after a crash ends after another one`() throws {
            let stream = try RecordedStream()
            try stream.stopWithoutEntry {
                try stream.story.restart(SIGKILL)
                #expect(try stream.has(6))
            }
            let waiting = try stream.told { $0.contains(Self.finishing) }
            #expect(waiting.contains(Self.finishing), "\(waiting)")
            stream.story.stop(SIGKILL)
            try stream.story.cdn.start()
            try stream.story.restart()
            let ended = try stream.told { $0.contains(#""state":"done""#) }
            #expect(members("reason", in: ended) == ["it was stopped"], "\(ended)")
        }

        private static let finishing = #""state":"finishing""#
        private static let running = #""state":"running""#

        @Test func `a feed that ran in two crashes waits for its client's order`() throws {
            let feed = try ShownFeed(items: 3)
            _ = try feed.put()
            for _ in 0..<2 {
                #expect(try eventually { try feed.move(to: 1).status == 200 })
                #expect(try feed.settles(1, "whole"))
                try feed.story.restart(SIGKILL)
            }
            #expect(try eventually { try feed.state().contains("crashed 2 times") })
            #expect(try feed.move(to: 2).status == 409)
            #expect(try feed.put().status == 200)
            #expect(try feed.move(to: 2).status == 200)
        }
    }
}
