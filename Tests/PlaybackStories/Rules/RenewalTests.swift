import FixtureCDN
import ScenarioSupport
import Testing

/// What a 304 says: of which response, and what of it is kept (RFC 9111 sections 3.2 and 4.3.4).
extension Stories {
    @Suite(.tags(.crowded)) struct RenewalTests {}
}

extension Stories.RenewalTests {
    private static let fresh: WireHead.Field = ("Cache-Control", "max-age=100")
    private static let stale: WireHead.Field = ("Cache-Control", "max-age=0")

    /// nginx marks the tag of a compressed response as weak, and that of its 304 not.
    @Test func `a 304 that names no stored variant is asked again without conditions`() throws {
        let story = try MountedStory()
        let vary: WireHead.Field = ("Vary", "Accept-Encoding")
        story.origin.answer(
            "/o/a",
            .respond(
                200, [("ETag", "W/\"x\""), ("Content-Encoding", "gzip"), vary, Self.fresh], [1]))
        #expect(try story.ask("GET", "/a", [("Accept-Encoding", "gzip")]).body == [1])
        story.origin.answer("/o/a", .respond(304, [("ETag", "\"x\""), vary, Self.fresh]))
        story.origin.answer("/o/a", .respond(200, [("ETag", "\"x\""), vary, Self.fresh], [2, 3]))
        let other = try story.ask("GET", "/a", [("Accept-Encoding", "br, gzip")])
        #expect(other.status == 200 && other.body == [2, 3])
        let requests = story.origin.requests
        #expect(requests.map { $0["If-None-Match"] } == [nil, "W/\"x\"", nil])
        #expect(try story.ask("GET", "/a", [("Accept-Encoding", "gzip")]).body == [1])
    }

    @Test func `a second 304 that validates nothing is the origin's failure`() throws {
        let story = try MountedStory()
        story.origin.answer("/o/a", .respond(200, [("ETag", "\"A\""), Self.stale], [1]))
        #expect(try story.ask("GET", "/a").body == [1])
        story.origin.answer("/o/a", .respond(304, [("ETag", "\"B\"")]))
        story.origin.answer("/o/a", .respond(304, [("ETag", "\"B\"")]))
        #expect(try story.ask("GET", "/a").status == 502)
        #expect(story.origin.requests.count == 3)
    }

    @Test func `a 304 with the tag of another version renews nothing`() throws {
        let story = try MountedStory()
        story.origin.answer("/o/a", .respond(200, [("ETag", "\"A\""), Self.stale], [1, 1]))
        #expect(try story.ask("GET", "/a").body == [1, 1])
        story.origin.answer("/o/a", .respond(304, [("ETag", "\"B\""), Self.fresh]))
        story.origin.answer("/o/a", .respond(200, [("ETag", "\"B\""), Self.fresh], [2, 2]))
        let answer = try story.ask("GET", "/a")
        #expect(answer.body == [2, 2] && answer["ETag"] == "\"B\"")
    }

    @Test func `a strong tag in a 304 does not replace the weak one of the stored bytes`() throws {
        let story = try MountedStory()
        story.origin.answer("/o/a", .respond(200, [("ETag", "W/\"x\""), Self.stale], [1]))
        #expect(try story.ask("GET", "/a").body == [1])
        story.origin.answer("/o/a", .respond(304, [("ETag", "\"x\""), Self.fresh]))
        for _ in 1...2 {
            let answer = try story.ask("GET", "/a")
            #expect(answer.body == [1] && answer["ETag"] == "W/\"x\"")
        }
    }

    /// RFC 9111 section 5.2.2.7.
    @Test func `fields that a 304 makes private are not stored`() throws {
        let story = try MountedStory(["--mount-cache", "shared"])
        story.origin.answer("/o/a", .respond(200, [("ETag", "\"A\""), Self.stale], [1]))
        #expect(try story.ask("GET", "/a").body == [1])
        story.origin.answer(
            "/o/a",
            .respond(
                304,
                [
                    ("ETag", "\"A\""), ("X-Secret", "of one"),
                    ("Cache-Control", "max-age=100, private=\"X-Secret\""),
                ]))
        _ = try story.ask("GET", "/a")
        let hit = try story.ask("GET", "/a")
        #expect(hit.body == [1] && hit["X-Secret"] == nil)
        #expect(story.origin.requests.count == 2)
    }

    /// RFC 9111 section 4.1.
    @Test func `a response that depends on the user since its 304 is not another user's`() throws {
        let story = try MountedStory()
        story.origin.answer("/o/a", .respond(200, [("ETag", "\"A\""), Self.stale], [1]))
        #expect(try story.ask("GET", "/a").body == [1])
        story.origin.answer(
            "/o/a", .respond(304, [("ETag", "\"A\""), ("Vary", "X-User"), Self.fresh]))
        #expect(try story.ask("GET", "/a", [("X-User", "alice")]).body == [1])
        story.origin.answer("/o/a", .respond(200, [("Vary", "X-User"), Self.fresh], [2]))
        #expect(try story.ask("GET", "/a", [("X-User", "bob")]).body == [2])
    }

    @Test func `an interim response to the request that continues a body goes nowhere`() throws {
        let story = try MountedStory()
        let hints = Array("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n".utf8)
        let tag: WireHead.Field = ("ETag", "\"A\"")
        story.origin.answer("/o/a", .cut(afterBytes: 2), .respond(200, [tag], [1, 2, 3, 4]))
        story.origin.answer(
            "/o/a", .send(hints),
            .respond(206, [tag, ("Content-Range", "bytes 2-3/4")], [3, 4]))
        let answer = try story.ask("GET", "/a")
        #expect(answer.body == [1, 2, 3, 4] && answer.interims.isEmpty)
    }

    /// Packagers answer so for a segment whose content is not written yet.
    @Test(arguments: ["/e.ts", "/k.key", "/none"])
    func `an empty body without a lifetime is requested again`(_ path: String) throws {
        let story = try MountedStory()
        let entry = "/" + story.origin.url(path)
        story.origin.answer(path, .respond(200))
        #expect(try story.player().get(entry).body.isEmpty)
        story.origin.answer(
            path, .respond(200, [("Transfer-Encoding", "chunked")], Array("0\r\n\r\n".utf8)))
        #expect(try story.player().get(entry).body.isEmpty)
        story.origin.answer(path, .respond(200, [Self.stale], []))
        #expect(try story.player().get(entry).body.isEmpty)
        #expect(try story.player().get(entry).body.isEmpty)
        #expect(story.origin.requestCount(path) == 3)
    }

    /// The limit is one of decompression.
    @Test func `a long body without a length and a name of media is whole`() throws {
        let story = try Story()
        let path = "/bytes/70000000/film"
        story.cdn.setBehaviour("chunked=1", for: path)
        #expect(isContent(try story.get(path).body, of: path))
    }
}
