import FixtureCDN
import ScenarioSupport
import Testing

/// Outages of the last day, across restarts.
extension Stories {
    @Suite(.tags(.crowded)) struct OutageHistoryStories {}
}

extension Stories.OutageHistoryStories {
    /// Requests from the dead origin until the history says that it is down; returns the history.
    private func historyOfOutage(_ story: Story) throws -> String {
        var text = ""
        let isDown = try eventually {
            _ = try story.get(segment("a", 1_000))
            text = try story.follow("/api/history").text
            return text.contains("\"end\":null")
        }
        #expect(isDown, "\(text)")
        return text
    }

    @Test func `an outage that lasts across a restart is one in the history`() throws {
        let story = try Story()
        story.cdn.stop()
        let start = try #require(starts(try historyOfOutage(story)).first)
        try story.restart()
        let kept = try story.follow("/api/history").text
        let found = starts(kept)
        // Seconds are counted back from now, rounded.
        #expect(found.count == 1 && abs(found[0] - start) <= 1, "\(kept)")
        #expect(kept.contains("\"cut\":true"), "\(kept)")
        let again = try historyOfOutage(story)
        #expect(starts(again) == found && !again.contains("\"cut\":true"), "\(again)")
    }

    private func starts(_ history: String) -> [Int] {
        members("start", in: history).compactMap { Int($0) }
    }
}
