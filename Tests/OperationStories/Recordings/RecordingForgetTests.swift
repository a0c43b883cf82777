import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// What is left of forgotten recordings.
extension Stories.RecordingTests {
    @Test func `a player's window keeps what it has in common with a forgotten recording`() throws {
        let stream = try RecordedStream()
        let story = stream.story
        let entry = "/proxy?url=\(percentEncoded(story.cdn.url("/l.m3u8")))&dvr=1h"
        func shows(_ count: Int) throws -> [String] {
            var links: [String] = []
            _ = try eventually {
                links = uriLines(try story.follow(entry).text)
                return links.count == count
            }
            return links
        }
        // What is in the recording first was fetched for it.
        try stream.record("/l.m3u8", "for=1h&h_X-Viewer=secret")
        #expect(try stream.has(3))
        #expect(try shows(3).count == 3)
        stream.window.advance(by: 3)
        #expect(try stream.has(6))
        let links = try shows(6)
        #expect(links.count == 6)
        _ = try stream.stop()
        let title = members("title", in: try stream.told()).first ?? "none"
        let forgotten = try story.api("recordings/\(stream.id)/forget", method: "POST")
        #expect(forgotten.contains("\"state\":\"done\""), "\(forgotten)")
        // The purge ends after the removal, which the same thread has begun before.
        #expect(try story.ask("purge", "--older-than", "1h").status == 0)
        for (number, link) in links.prefix(3).enumerated() {
            let path = segment("s\(number)", 3_000)
            #expect(isContent(try story.follow(link).body, of: path), "segment \(number)")
            #expect(story.cdn.requestCount(path) == 1, "segment \(number)")
        }
        let titles = try story.api("titles")
        #expect(!titles.contains(title), "\(titles)")
        try expectNoHeaders(of: story)
    }

    @Test(arguments: ["/l.m3u8", "/m.m3u8"])
    func `a forgotten recording plays no more from the answer on`(path: String) throws {
        let stream = try RecordedStream()
        stream.putEntry()
        try stream.record(path)
        #expect(try stream.has(path == "/m.m3u8" ? 6 : 3))
        let entry = try stream.stop()
        let play = members("play", in: try stream.told()).first ?? "/none"
        let lists = [play] + (path == "/m.m3u8" ? links(entry.text) : [])
        for list in lists { #expect(try stream.story.follow(list).status == 200) }
        stream.story.cdn.stop()
        _ = try stream.story.api("recordings/\(stream.id)/forget", method: "POST")
        for list in lists { #expect(try stream.story.follow(list).status >= 400, "\(list)") }
    }

    /// Stops the daemon, which has saved no session with headers.
    private func expectNoHeaders(of story: Story) throws {
        story.stop()
        guard Tool.exists("sqlite3") else { return }
        let database = story.cacheFolder + "/state.sqlite"
        let sessions = try Tool.run(
            ["sqlite3", database, "SELECT COUNT(*) FROM sessions WHERE fields <> ''"])
        #expect(sessions.stdout == "0\n", "\(sessions.stderr)")
    }
    @Test func `a paused recording leaves no window and no header when it is forgotten`() throws {
        let stream = try RecordedStream()
        let story = stream.story
        let windows = story.cacheFolder + "/recordings/windows"
        try stream.record("/l.m3u8", "for=1h&h_X-Viewer=secret")
        for _ in 0..<2 {
            #expect(try stream.has(3))
            #expect(eventually { listFolder(windows).contains { !$0.hasSuffix(".new") } })
            try story.restart(SIGKILL)
        }
        let state = try stream.told { $0.contains("\"state\":\"paused\"") }
        #expect(state.contains("\"state\":\"paused\""), "\(state)")
        let forgotten = try story.api("recordings/\(stream.id)/forget", method: "POST")
        #expect(forgotten.contains("\"id\":\"\(stream.id)\""), "\(forgotten)")
        #expect(listFolder(windows).isEmpty)
        #expect(try eventually { try story.api("titles").contains("\"total\":0") })
        // Its link does not play what is live now.
        let asked = story.cdn.requestCount("/l.m3u8")
        let played = try story.follow(members("play", in: state).first ?? "/none")
        #expect(played.status >= 400, "\(played.text)")
        #expect(story.cdn.requestCount("/l.m3u8") == asked)
        try expectNoHeaders(of: story)
    }
    @Test(.enabled(if: Tool.exists("sqlite3"), "needs sqlite3"), arguments: [1_001, 9_999])
    func `a recording is listed until it is forgotten, and none is begun that could not be`(
        others: Int
    ) throws {
        let stream = try RecordedStream()
        let story = stream.story
        try stream.record()
        #expect(try stream.has(3))
        _ = try stream.stop()
        story.stop()
        func change(_ text: String) throws -> String {
            let result = try Tool.run(["sqlite3", story.cacheFolder + "/state.sqlite", text])
            #expect(result.status == 0, "\(result.stderr)")
            return result.stdout
        }
        let columns = try change(
            "SELECT group_concat(name) FROM pragma_table_info('recordings') WHERE name <> 'id';"
        ).split(separator: "\n").joined()
        _ = try change(
            """
            CREATE TEMP TABLE copy AS SELECT \(columns) FROM recordings;
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(others))
            INSERT INTO recordings (id, \(columns))
              SELECT printf('%08x', i), \(columns) FROM n, copy;
            """)
        try story.restart()
        func count() throws -> Int {
            members("was_over", in: try story.api("recordings")).count
        }
        #expect(try count() == others + 1)
        let text = try stream.record()
        if others == 9_999 {
            #expect(text.contains("forget those that are not needed"), "\(text)")
            return
        }
        #expect(try stream.has(3))
        _ = try stream.stop()
        #expect(try count() == others + 2)
    }
}
