import FixtureCDN
import ScenarioSupport
import Testing

/// What is stored under a mount, and what takes it out of use.
extension Stories {
    @Suite(.tags(.crowded)) struct MountsStored {}
}

// MARK: Variants

extension Stories.MountsStored {
    private static let varied: [WireHead.Field] = [
        ("Cache-Control", "max-age=3600"), ("Vary", "Cookie"),
    ]

    /// Requests `/a` as one of several clients.
    private func ask(_ story: MountedStory, as client: Int) throws -> String {
        try story.ask("GET", "/a", [("Cookie", "who=\(client)")]).text
    }

    // RFC 9111 section 7.3.
    @Test func `a cookie goes to all clients only if the origin has the response stored`() throws {
        let story = try MountedStory()
        func cookies(of path: String) throws -> [String?] {
            try (0..<2).map { _ in try story.ask("GET", path)["Set-Cookie"] }
        }
        func answer(_ path: String, _ cookie: String, _ control: String) {
            story.origin.answer(
                path,
                .respond(
                    200,
                    [("ETag", "\"e\""), ("Cache-Control", control), ("Set-Cookie", cookie)], [1]))
        }
        answer("/o/stored", "c=1", "max-age=60")
        #expect(try cookies(of: "/stored") == ["c=1", "c=1"])
        for cookie in ["c=1", "c=2"] { answer("/o/own", cookie, "no-transform") }
        #expect(try cookies(of: "/own") == ["c=1", "c=2"])
        try story.origin.verify()
    }

    private func change(_ story: MountedStory) throws {
        story.origin.answer("/o/a", .respond(200))
        #expect(try story.ask("POST", "/a", body: []).status == 200)
    }

    @Test func `an unsafe request takes out more variants than an index lists`() throws {
        let story = try MountedStory()
        let last = 129
        for client in 1...last {
            story.origin.answer("/o/a", .respond(200, Self.varied, Array("old \(client)".utf8)))
            #expect(try ask(story, as: client) == "old \(client)")
        }
        #expect(try ask(story, as: last) == "old \(last)")
        try change(story)
        for client in [2, 1, last] {
            story.origin.answer("/o/a", .respond(200, Self.varied, Array("new \(client)".utf8)))
            #expect(try ask(story, as: client) == "new \(client)")
        }
        try story.origin.verify()
    }

    @Test func `clients that waited for another variant share one fetch of theirs`() throws {
        let story = try MountedStory()
        let all = Barrier("all wait")
        story.origin.answer("/o/a", .hold(until: all), .respond(200, Self.varied, Array("1".utf8)))
        story.origin.answer("/o/a", .respond(200, Self.varied, Array("2".utf8)))
        let first = Background { try ask(story, as: 1) }
        #expect(eventually { story.origin.requestCount("/o/a") == 1 })
        let known = try story.requestCount() + 3
        var polls = 0
        let others = (1...3).map { _ in Background { try ask(story, as: 2) } }
        #expect(
            try eventually {
                polls += 1
                return try story.requestCount() >= known + polls
            })
        all.arrive()
        #expect(try first.value() == "1")
        for other in others { #expect(try other.value() == "2") }
        #expect(story.origin.requestCount("/o/a") == 2)
        try story.origin.verify()
    }

    @Test func `an unsafe request takes out the variants from before a response without Vary`()
        throws
    {
        let story = try MountedStory()
        story.origin.answer("/o/a", .respond(200, Self.varied, Array("old 1".utf8)))
        #expect(try ask(story, as: 1) == "old 1")
        story.origin.answer(
            "/o/a", .respond(200, [("Cache-Control", "max-age=3600")], Array("all".utf8)))
        #expect(try ask(story, as: 2) == "all")
        try change(story)
        for client in [2, 1] {
            story.origin.answer("/o/a", .respond(200, Self.varied, Array("new \(client)".utf8)))
            #expect(try ask(story, as: client) == "new \(client)")
            #expect(try ask(story, as: client) == "new \(client)")
        }
        try story.origin.verify()
    }
}

// MARK: HEAD

extension Stories.MountsStored {
    struct Comparison: Sendable, CustomTestStringConvertible {
        let name: String
        let stored: [WireHead.Field]
        let head: [WireHead.Field]
        let isRenewed: Bool
        var testDescription: String { name }
    }

    private static let chunked: WireHead.Field = ("Transfer-Encoding", "chunked")
    private static let tag: WireHead.Field = ("ETag", "\"e1\"")
    private static let date: WireHead.Field = ("Last-Modified", "Sat, 01 Jan 2011 00:00:00 GMT")

    static let comparisons: [Comparison] = [
        Comparison(name: "nothing in common", stored: [], head: [chunked], isRenewed: false),
        Comparison(name: "no validator", stored: [tag, date], head: [chunked], isRenewed: false),
        Comparison(
            name: "equal length", stored: [], head: [("Content-Length", "3")], isRenewed: true),
        Comparison(name: "equal tag", stored: [tag], head: [chunked, tag], isRenewed: true),
        Comparison(name: "equal date", stored: [date], head: [chunked, date], isRenewed: true),
        Comparison(
            name: "another length", stored: [tag], head: [tag, ("Content-Length", "4")],
            isRenewed: false),
        Comparison(
            name: "another tag", stored: [tag],
            head: [("ETag", "\"e2\""), ("Content-Length", "3")], isRenewed: false),
    ]

    @Test(arguments: comparisons)
    func `a response to HEAD renews a stored response only if it shows that they are the same`(
        _ comparison: Comparison
    ) throws {
        let story = try MountedStory()
        let lifetime: WireHead.Field = ("Cache-Control", "max-age=60")
        let stale: [WireHead.Field] = [lifetime, ("Age", "100"), Self.chunked]
        story.origin.answer(
            "/o/a",
            .respond(200, comparison.stored + stale, Array("3\r\nold\r\n0\r\n\r\n".utf8)))
        #expect(try story.ask("GET", "/a").text == "old")
        story.origin.answer("/o/a", .respond(200, comparison.head + [lifetime]))
        #expect(try story.ask("HEAD", "/a").status == 200)
        if !comparison.isRenewed {
            story.origin.answer("/o/a", .respond(200, [lifetime], Array("new".utf8)))
        }
        #expect(try story.ask("GET", "/a").text == (comparison.isRenewed ? "old" : "new"))
        try story.origin.verify()
    }
}

extension Stories.MountsStored {
    @Test(arguments: [500, 503])
    func `HEAD gets the stale response that GET gets while the origin fails`(_ status: Int) throws {
        let story = try MountedStory()
        let fields: [WireHead.Field] = [
            ("Age", "30"), ("Cache-Control", "max-age=1, stale-if-error=600"), ("X-A", "1"),
        ]
        story.origin.answer("/o/a", .respond(200, fields, Array("old".utf8)))
        #expect(try story.ask("GET", "/a").text == "old")
        for method in ["HEAD", "GET"] {
            story.origin.answer("/o/a", .respond(status, [], Array("busy".utf8)))
            let answer = try story.ask(method, "/a")
            #expect(answer.status == 200 && answer["X-A"] == "1", "\(method)")
            #expect(answer["Content-Length"] == "3", "\(method)")
        }
        try story.origin.verify()
    }

    @Test func `a late response to HEAD does not remove what was stored meanwhile`() throws {
        let story = try MountedStory()
        let lifetime: WireHead.Field = ("Cache-Control", "max-age=60")
        let newTag: WireHead.Field = ("ETag", "\"e2\"")
        story.origin.answer(
            "/o/a", .respond(200, [Self.tag, lifetime, ("Age", "100")], Array("old".utf8)))
        #expect(try story.ask("GET", "/a").text == "old")
        let headComes = Barrier("head")
        story.origin.answer(
            "/o/a", .hold(until: headComes),
            .respond(200, [newTag, lifetime, ("Content-Length", "3")]))
        let head = Background { try story.ask("HEAD", "/a") }
        #expect(eventually { story.origin.requestCount("/o/a") == 2 })
        story.origin.answer("/o/a", .respond(200, [newTag, lifetime], Array("new".utf8)))
        #expect(try story.ask("GET", "/a").text == "new")
        headComes.arrive()
        #expect(try head.value()["ETag"] == "\"e2\"")
        let again = try story.ask("GET", "/a")
        #expect(again.text == "new" && again["Cache-Status"]?.contains("hit") == true)
        try story.origin.verify()
    }

    @Test func `HEAD gets the origin's error where no stale response may serve`() throws {
        let story = try MountedStory()
        let fields: [WireHead.Field] = [
            ("Age", "30"), ("Cache-Control", "max-age=1, stale-if-error=10"),
        ]
        story.origin.answer("/o/a", .respond(200, fields, Array("old".utf8)))
        #expect(try story.ask("GET", "/a").text == "old")
        story.origin.answer("/o/a", .respond(503, [("X-A", "2")], Array("busy".utf8)))
        let answer = try story.ask("HEAD", "/a")
        #expect(answer.status == 503 && answer["X-A"] == "2")
        try story.origin.verify()
    }
}

// MARK: Parts

extension Stories.MountsStored {
    private static let lifetime: WireHead.Field = ("Cache-Control", "max-age=3600")

    /// The head of a response without a validator, and the beginning of its body.
    private static func beginning(of body: [UInt8], _ count: Int) -> [UInt8] {
        let lines = [
            "HTTP/1.1 200 OK", "Content-Length: \(body.count)",
            "\(lifetime.name): \(lifetime.value)", "", "",
        ]
        return Array(lines.joined(separator: "\r\n").utf8) + body[..<count]
    }

    @Test(arguments: [false, true])
    func `a part without a validator does not replace the body that is being received`(
        _ isAskedBeforeHead: Bool
    ) throws {
        let story = try MountedStory()
        let body = (0..<3_000_000).map { (place: Int) -> UInt8 in
            UInt8(truncatingIfNeeded: place ^ (place >> 8))
        }
        let (begins, goesOn, partComes) = (Barrier("begin"), Barrier("go on"), Barrier("part"))
        story.origin.answer(
            "/o/a", .hold(until: begins), .send(Self.beginning(of: body, 100_000)),
            .hold(until: goesOn), .send(Array(body[100_000...])))
        let range: WireHead.Field = ("Content-Range", "bytes 2500000-2500999/3000000")
        story.origin.answer(
            "/o/a", .hold(until: partComes),
            .respond(206, [Self.lifetime, range], Array(body[2_500_000..<2_501_000])))
        let whole = try story.player().open("/mt/a")
        #expect(eventually { story.origin.requestCount("/o/a") == 1 })
        if !isAskedBeforeHead {
            begins.arrive()
            #expect(try whole.read(1) == [body[0]])
        }
        let part = Background {
            try story.ask("GET", "/a", [("Range", "bytes=2500000-2500999")])
        }
        #expect(eventually { story.origin.requestCount("/o/a") == 2 })
        if isAskedBeforeHead {
            begins.arrive()
            #expect(try whole.read(1) == [body[0]])
        }
        partComes.arrive()
        let answer = try part.value()
        #expect(answer.status == 206 && answer.body.elementsEqual(body[2_500_000..<2_501_000]))
        #expect(answer["Cache-Status"]?.hasSuffix("; detail=unproven") == true)
        goesOn.arrive()
        let isWhole = try whole.readRest().elementsEqual(body[1...])
        #expect(isWhole && whole.broken == nil)
        let again = try story.ask("GET", "/a")
        let isSame = again.body == body
        #expect(again.status == 200 && isSame)
        #expect(story.origin.requestCount("/o/a") == 2)
        try story.origin.verify()
    }

    @Test func `a part of another version takes the place of the body that is being received`()
        throws
    {
        let story = try MountedStory()
        let (old, new) = ([UInt8](repeating: 1, count: 3_000_000), [UInt8](repeating: 2, count: 10))
        let goesOn = Barrier("go on")
        story.origin.answer(
            "/o/a", .send(Self.beginning(of: old, 100_000)), .hold(until: goesOn),
            .send(Array(old[100_000...])))
        let whole = try story.player().open("/mt/a")
        #expect(try whole.read(1) == [1])
        let place: WireHead.Field = ("Content-Range", "bytes 2500000-2500009/2600000")
        story.origin.answer("/o/a", .respond(206, [Self.lifetime, place], new))
        let range: WireHead.Field = ("Range", "bytes=2500000-2500009")
        let answer = try story.ask("GET", "/a", [range])
        #expect(answer.status == 206 && answer.body == new)
        goesOn.arrive()
        let isWhole = try whole.readRest().elementsEqual(old[1...])
        #expect(isWhole && whole.broken == nil)
        #expect(try story.ask("GET", "/a", [range]).body == new)
        try story.origin.verify()
    }
}
