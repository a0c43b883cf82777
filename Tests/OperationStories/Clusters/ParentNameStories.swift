import FixtureCDN
import ScenarioSupport
import Testing

/// Live lists, and names in them that stand for something new, while a parent has the former
/// version and may use it by HTTP's rules.
extension Stories.ParentTests {
    /// Puts a live list, and waits until players get it.
    private func show(_ list: String, _ first: Int, on story: Story) throws -> String {
        story.cdn.put("/live.m3u8", text: list)
        var text = ""
        guard
            try eventually({
                text = try story.get("/live.m3u8").text
                return text.contains("SEQUENCE:\(first)\n")
            })
        else { throw ScenarioFailure("the list from \(first) on was not served") }
        return text
    }

    @Test func `a name that returns is not taken from what the parent has stored`() throws {
        let chain = try Chain()
        let story = chain.story
        story.cdn.setBehaviour("cc=max-age=3600", for: "/s*")
        func play(_ first: Int, _ names: [String], _ round: String) throws -> [String] {
            for name in names { story.cdn.put("/\(name)", text: "\(round) \(name)") }
            let list = try show(liveList(first, names), first, on: story)
            return try uriLines(list).map { try story.follow($0).text }
        }
        #expect(try play(10, ["sa.ts", "sb.ts", "sc.ts"], "first").first == "first sa.ts")
        _ = try play(11, ["sb.ts", "sc.ts", "sd.ts"], "first")
        let second = try play(14, ["sa.ts", "sb.ts", "se.ts"], "second")
        #expect(second == ["second sa.ts", "second sb.ts", "second se.ts"])
        #expect(try story.stat("parent_failures_total") == 0)
    }

    @Test func `a key that a new line names again is not taken from what the parent has stored`()
        throws
    {
        let chain = try Chain()
        let story = chain.story
        story.cdn.setBehaviour("cc=max-age=3600", for: "/k.key")
        for number in 0...4 { story.cdn.put("/s\(number).ts", text: "segment \(number)") }
        func keyLine(_ number: Int) -> String {
            "#EXT-X-KEY:METHOD=AES-128,URI=\"k.key\",IV=0x\(number)\n"
        }
        func segments(_ numbers: ClosedRange<Int>) -> String {
            numbers.map { "#EXTINF:1,\ns\($0).ts\n" }.joined()
        }
        func key(_ first: Int, _ rest: String) throws -> String {
            let list = try show(liveList(first, []) + rest, first, on: story)
            let link = try #require(links(list).last(where: { $0.hasPrefix("/k/") }))
            return try story.follow(link).text
        }
        story.cdn.put("/k.key", text: "the first key ..")
        #expect(try key(0, keyLine(1) + segments(0...3)) == "the first key ..")
        story.cdn.put("/k.key", text: "the second key .")
        let second = try key(1, keyLine(1) + segments(1...3) + keyLine(2) + segments(4...4))
        #expect(second == "the second key .")
        #expect(try story.stat("parent_failures_total") == 0)
    }

    @Test func `a live list with a lifetime in HTTP advances, ends and begins anew`() throws {
        let chain = try Chain()
        let story = chain.story
        story.cdn.setBehaviour("cc=max-age=3600", for: "/live.m3u8")
        _ = try show(liveList(7, ["a.ts", "b.ts"]), 7, on: story)
        let second = liveList(8, ["b.ts", "c.ts"])
        _ = try show(second, 8, on: story)
        func ends() throws -> Bool {
            try story.get("/live.m3u8").text.contains("#EXT-X-ENDLIST")
        }
        story.cdn.put("/live.m3u8", text: second + "#EXT-X-ENDLIST\n")
        #expect(try eventually { try ends() })
        story.cdn.put("/live.m3u8", text: liveList(0, ["d.ts", "e.ts"]))
        // It is reused for three seconds, and taken from the parent if it is no older there.
        #expect(try eventually(within: .seconds(30)) { try !ends() })
        #expect(try story.stat("parent_failures_total") == 0)
    }
}
