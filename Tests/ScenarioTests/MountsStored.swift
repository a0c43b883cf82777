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

    private func change(_ story: MountedStory) throws {
        story.origin.answer("/o/a", .respond(200))
        #expect(try story.ask("POST", "/a", body: []).status == 200)
    }

    @Test func `an unsafe request takes out more variants than an index lists`() throws {
        let story = try MountedStory()
        for client in 1...25 {
            story.origin.answer("/o/a", .respond(200, Self.varied, Array("old \(client)".utf8)))
            #expect(try ask(story, as: client) == "old \(client)")
        }
        #expect(try ask(story, as: 25) == "old 25")
        try change(story)
        for client in [2, 1, 25] {
            story.origin.answer("/o/a", .respond(200, Self.varied, Array("new \(client)".utf8)))
            #expect(try ask(story, as: client) == "new \(client)")
        }
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
