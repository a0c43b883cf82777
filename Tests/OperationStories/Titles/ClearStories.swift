import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// Clearing is complete immediately, whatever is stored, even if the daemon is killed afterwards.
extension Stories {
    @Suite(.tags(.timed)) struct ClearStories {}
}

extension Stories.ClearStories {
    private func filled(_ count: Int) throws -> (Story, [String]) {
        let story = try Story()
        let paths = (0..<count).map { segment("c\($0)", 2_000) }
        let player = story.player()
        for path in paths { _ = try player.get(story.url(path)) }
        _ = try story.settled("stored_objects") { $0 == count }
        return (story, paths)
    }

    private func setAside(_ story: Story) -> [String] {
        listFolder(story.cacheFolder).filter { $0.hasPrefix("gone-") }
    }

    private func isDeleted(_ story: Story) throws -> Bool {
        try story.follow("/api/clear").text.contains("\"state\":\"none\"")
            && setAside(story).isEmpty
    }

    @Test(arguments: [SIGKILL, SIGTERM])
    func `a clear is complete however the daemon ends after it`(_ signal: Int32) throws {
        let (story, paths) = try filled(200)
        let answer = try story.follow("/api/clear", method: "POST")
        #expect(answer.status == 200 && answer.text.contains("\"removed\":200"))
        #expect(try story.stat("stored_objects") == 0)
        try story.restart(signal)
        #expect(try eventually { try isDeleted(story) })
        #expect(storedFiles(story.cacheFolder).isEmpty)
        #expect(try story.settled("stored_bytes") { $0 == 0 } == 0)
        for path in paths.prefix(5) {
            #expect(isContent(try story.get(path).body, of: path))
            #expect(story.cdn.requestCount(path) == 2)
        }
    }

    /// A clear, and a purge by age, of a title that a recording needs and has not pinned.
    @Test(arguments: ["clear", "purge?older-than=0s"])
    func `what spares pinned titles has recordings pin what they need first`(
        _ request: String
    ) throws {
        let stream = try RecordedStream()
        let story = stream.story
        try stream.record()
        for _ in 0..<2 {
            #expect(try stream.has(3))
            try story.restart(SIGKILL)
        }
        let state = try stream.told { $0.contains("\"state\":\"paused\"") }
        #expect(state.contains("crashed 2 times"), "\(state)")
        let title = members("title", in: state).first ?? ""
        let unpinned = try story.api("unpin?title=\(title)", method: "POST")
        #expect(unpinned.contains("\"unpinned\":1"), "\(unpinned)")
        let answer = try story.api(request, method: "POST")
        #expect(try story.stat("stored_objects") >= 3, "\(answer)")
    }

    @Test func `players keep playing while everything is cleared`() throws {
        let story = try Story()
        let path = segment("long", 3_000_000)
        story.cdn.setBehaviour("rate=3000000", for: path)
        let stream = try story.open(path)
        let start = try stream.read(100_000)
        #expect(try story.follow("/api/clear", method: "POST").status == 200)
        #expect(isContent(start + (try stream.readRest()), of: path))
        #expect(try eventually { try isDeleted(story) })
    }

    @Test func `what a purge removed is stored anew while its former transfer goes on`() throws {
        let story = try Story()
        let path = segment("purged", 3_000_000)
        story.cdn.hold(path, afterBytes: 1_000_000)
        let stream = try story.open(path)
        let start = try stream.read(100_000)
        let purge = "/api/purge?url=\(percentEncoded(story.cdn.url(path)))"
        #expect(try story.follow(purge, method: "POST").status == 200)
        let after = Background { try story.get(path) }
        #expect(eventually { story.cdn.requestCount(path) == 2 })
        story.cdn.release(path)
        #expect(isContent(start + (try stream.readRest()), of: path))
        #expect(isContent(try after.value().body, of: path))
        #expect(isContent(try story.get(path).body, of: path))
        #expect(story.cdn.requestCount(path) == 2)
    }

    @Test func `after a purge a transfer still ends where stored bytes follow`() throws {
        let story = try Story()
        let path = segment("purged", 5_000_000)
        story.cdn.hold(path, afterBytes: 2_000_000)
        let stream = try story.open(path)
        let start = try stream.read(100_000)
        for first in [2_500_000, 3_400_000] {
            let part = try story.get(path, range: "bytes=\(first)-\(first + 899_999)")
            #expect(part.status == 206)
            #expect(isContent(part.body, of: path, from: first, count: 900_000))
        }
        let purge = "/api/purge?url=\(percentEncoded(story.cdn.url(path)))"
        #expect(try story.follow(purge, method: "POST").status == 200)
        story.cdn.release(path)
        #expect(isContent(start + (try stream.readRest()), of: path))
        #expect(story.cdn.bytesSent(path) < 5_900_000)
    }

    @Test func `the command reports what it removed, and a purge its progress`() throws {
        let (story, _) = try filled(20)
        let program = try DaemonProcess.builtBinary()
        let cleared = try Tool.run([program, "clear", "--daemon", story.daemon.baseURL])
        #expect(cleared.status == 0 && cleared.stdout.hasPrefix("removed 20 objects"))
        let purge = try story.follow("/api/purge?host=h", method: "POST")
        #expect(purge.status == 200 && purge.text.contains("\"state\":\"done\""))
        #expect(try story.follow("/api/purge").text.contains("\"removed\":0"))
    }
}
