import FixtureCDN
import ScenarioSupport
import Testing

/// Live lists that ended: whether their stream is on air again under the same URL.
extension Stories {
    @Suite(.tags(.crowded)) struct LiveReturnTests {}
}

/// A channel of one variant whose broadcasts all have the same URLs, `/s<number>.ts` for segments.
private struct Channel {
    let story: Story
    let list = "/v/l.m3u8"

    init(_ arguments: [String] = []) throws {
        story = try Story(arguments)
        story.cdn.put("/m.m3u8", text: "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1000\nv/l.m3u8\n")
    }

    /// Puts the list of a broadcast with its segments up to a number.
    func air(_ broadcast: String, upTo last: Int, ends: Bool = false) {
        for number in 0...last { put(broadcast, number) }
        let lines =
            ["#EXTM3U", "#EXT-X-TARGETDURATION:1", "#EXT-X-MEDIA-SEQUENCE:0"]
            + (0...last).flatMap { ["#EXTINF:1,", "/s\($0).ts"] } + (ends ? ["#EXT-X-ENDLIST"] : [])
        story.cdn.put(list, text: lines.joined(separator: "\n") + "\n")
    }

    private func put(_ broadcast: String, _ number: Int) {
        story.cdn.put("/s\(number).ts", text: "\(broadcast) \(number)")
    }

    /// Requests the variant's list, as a player that opens the entry does.
    func get() throws -> PlayerResponse {
        let link = try #require(uriLines(try story.get("/m.m3u8").text).first)
        return try story.follow(link)
    }

    /// Requests the list until it has ended or, if `ends` is false, until it is live.
    func awaitList(ends: Bool) throws -> PlayerResponse {
        var list = try get()
        let isThere = try eventually {
            list = try get()
            return list.text.contains("#EXT-X-ENDLIST") == ends
        }
        #expect(isThere)
        return list
    }

    /// Plays a broadcast from its beginning to its end, with all of its segments.
    func playToTheEnd(_ broadcast: String, last: Int) throws {
        air(broadcast, upTo: last - 1)
        #expect(try play(try awaitList(ends: false)).first == "\(broadcast) 0")
        air(broadcast, upTo: last, ends: true)
        #expect(try play(try awaitList(ends: true)).last == "\(broadcast) \(last)")
    }

    func play(_ list: PlayerResponse) throws -> [String] {
        try uriLines(list.text).map { try story.follow($0).text }
    }

    /// Waits until the daemon asks the origin for the list; returns the answer for which it did: with a
    /// status of the origin if one is given, since others are sent while the origin is asked.
    func awaitRequest(status: Int? = nil) throws -> PlayerResponse {
        let count = story.cdn.requestCount(list)
        var answer: PlayerResponse?
        let isAsked = try eventually {
            let found = try get()
            answer = found
            return story.cdn.requestCount(list) > count
                && status.map { found["Cache-Status"]?.contains("fwd-status=\($0)") == true }
                    ?? true
        }
        #expect(isAsked)
        return try #require(answer)
    }
}

extension Stories.LiveReturnTests {
    @Test(arguments: [false, true])
    func `a channel that ended and is on air again plays the new broadcast`(
        restarts: Bool
    ) throws {
        let channel = try Channel()
        try channel.playToTheEnd("first", last: 3)
        if restarts { try channel.story.restart() }
        channel.air("second", upTo: 4)
        let list = try channel.awaitList(ends: false)
        #expect(try channel.play(list) == (0...4).map { "second \($0)" })
        #expect(try channel.story.stat("live_epochs_total") == 1)
        try channel.playToTheEnd("second", last: 5)
        channel.air("third", upTo: 1)
        let third = try channel.awaitList(ends: false)
        #expect(try channel.play(third) == ["third 0", "third 1"])
    }

    @Test(arguments: [false, true])
    func `a list that ended is confirmed by the origin now and then, its segments stay`(
        restarts: Bool
    ) throws {
        let channel = try Channel()
        try channel.playToTheEnd("first", last: 3)
        let former = try channel.get()
        if restarts { try channel.story.restart() }
        let bytes = channel.story.cdn.bytesSent(channel.list)
        let list = try channel.awaitRequest(status: 304)
        #expect(list["Cache-Status"] == "sluice; fwd=stale; fwd-status=304; detail=ended")
        #expect(list.text == former.text && channel.story.cdn.bytesSent(channel.list) == bytes)
        #expect(try channel.get()["Cache-Status"]?.hasPrefix("sluice; hit") == true)
        #expect(try channel.play(list) == (0...3).map { "first \($0)" })
        let requests = channel.story.cdn.requests.count { $0.path.hasPrefix("/s") }
        #expect(try channel.play(try channel.awaitRequest()).count == 4)
        #expect(channel.story.cdn.requests.count { $0.path.hasPrefix("/s") } == requests)
    }

    @Test func `a list that ended is served whatever the origin answers instead`() throws {
        let behaviours = [
            "status=404", "status=403", "status=500", "type=text/html&as=/page.html",
        ]
        // Side by side, since all wait until the origin is asked again.
        let channels = try behaviours.map { behaviour -> Channel in
            let channel = try Channel()
            try channel.playToTheEnd("first", last: 3)
            channel.story.cdn.put("/page.html", text: "<!DOCTYPE html><html>over</html>")
            channel.story.cdn.setBehaviour(Behaviour(query: behaviour), for: channel.list)
            return channel
        }
        for _ in 0..<2 {
            for (behaviour, channel) in zip(behaviours, channels) {
                let list = try channel.awaitRequest()
                #expect(
                    list.status == 200 && list.text.contains("#EXT-X-ENDLIST"), "\(behaviour)")
                #expect(try channel.play(list).last == "first 3", "\(behaviour)")
            }
        }
    }

    @Test func `the multivariant playlist of a channel is asked for again, and kept`() throws {
        let changed = try Channel()
        let refused = try Channel()
        for channel in [changed, refused] {
            channel.air("first", upTo: 3)
            #expect(try channel.get().status == 200)
        }
        changed.story.cdn.put(
            "/m.m3u8",
            text: "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1000\nv/l.m3u8\n"
                + "#EXT-X-STREAM-INF:BANDWIDTH=2000\nv/h.m3u8\n")
        refused.story.cdn.setBehaviour("status=404", for: "/m.m3u8")
        // Each is reused for 18 seconds.
        var isKept = true
        let areAsked = try eventually(within: .seconds(60), pausing: .milliseconds(100)) {
            isKept = try isKept && refused.story.get("/m.m3u8").status == 200
            return try refused.story.cdn.requestCount("/m.m3u8") > 1
                && uriLines(changed.story.get("/m.m3u8").text).count == 2
        }
        #expect(areAsked && isKept)
    }

    @Test(arguments: ["gone", "pinned", "never live"])
    func `the origin is not needed for a list that ended`(why: String) throws {
        let channel = try Channel()
        if why == "never live" {
            channel.air("first", upTo: 3, ends: true)
            #expect(try channel.play(try channel.get()).last == "first 3")
        } else {
            try channel.playToTheEnd("first", last: 3)
        }
        let story = channel.story
        if why == "pinned" { #expect(try story.ask("pin", story.cdn.url("/m.m3u8")).status == 0) }
        if why == "gone" { story.cdn.stop() }
        let count = story.cdn.requestCount(channel.list)
        let begin = ContinuousClock.now
        var isServed = true
        // Longer than such a list is reused without asking the origin.
        _ = try eventually(pausing: .milliseconds(100)) {
            let list = try channel.get()
            isServed = isServed && list.status == 200 && list.text.contains("#EXT-X-ENDLIST")
            return !isServed || ContinuousClock.now - begin > .seconds(4)
        }
        #expect(isServed)
        #expect(try channel.play(try channel.get()) == (0...3).map { "first \($0)" })
        #expect(story.cdn.requestCount(channel.list) == count)
    }
}
