import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// Mounts whose clients leave, and whose origins fail in the middle of a body.
extension Stories {
    @Suite(.tags(.crowded)) struct MountsLeaving {}
}

extension Stories.MountsLeaving {
    private static func mounted(_ cdn: FixtureCDN, _ folder: TemporaryFolder) throws
        -> DaemonProcess
    {
        try Story.serve(folder.file("cache"), ["--mount", "/mt/=\(cdn.url("/"))"])
    }

    @Test(arguments: [[], [("Vary", "Origin")], [("Content-Encoding", "x")]])
    func `a response that its client has left is not fetched to its end`(
        _ fields: [WireHead.Field]
    ) throws {
        let folder = try TemporaryFolder()
        let cdn = FixtureCDN()
        try cdn.start()
        defer { cdn.stop() }
        cdn.put(
            "/a.bin", Array(repeating: 7, count: 8_000_000),
            extraHeaders: fields + [("Cache-Control", "no-store")])
        cdn.hold("/a.bin", afterBytes: 4_000_000)
        let daemon = try Self.mounted(cdn, folder)
        defer {
            daemon.kill(SIGKILL)
            _ = try? daemon.waitForExit()
        }
        let stream = try ScriptedPlayer(daemon.baseURL).open("/mt/a.bin")
        _ = try stream.read(1_000_000)
        stream.abort()
        #expect(eventually { cdn.activeRequests == 0 })
    }

    @Test func `a 503 in the middle of a body costs neither its client nor the store a byte`()
        throws
    {
        let story = try MountedStory()
        let body = (0..<200_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        let fields: [WireHead.Field] = [("ETag", "\"a\""), ("Cache-Control", "max-age=600")]
        story.origin.answer(
            "/o/a", .cut(afterBytes: 120_000), .respond(200, fields, body))
        story.origin.answer("/o/a", .respond(503, [], Array("busy".utf8)))
        let range: WireHead.Field = ("Content-Range", "bytes 120000-199999/200000")
        story.origin.answer("/o/a", .respond(206, fields + [range], Array(body[120_000...])))
        let answer = try story.ask("GET", "/a")
        let isWhole = answer.body == body
        #expect(answer.status == 200 && isWhole)
        try story.origin.verify()
        #expect(try story.ask("GET", "/a")["Cache-Status"]?.contains("hit") == true)
        let asked = story.origin.requests.map { $0["Range"] ?? "-" }
        #expect(asked == ["-", "bytes=120000-", "bytes=120000-"])
    }
}
