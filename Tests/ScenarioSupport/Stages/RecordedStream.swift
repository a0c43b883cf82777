package import FixtureCDN
import Testing

/// A live stream that is recorded.
package final class RecordedStream {
    package let story: Story
    package let window: LiveWindow
    package private(set) var id = ""

    package convenience init(_ arguments: [String] = [], size: Int = 3_000) throws {
        self.init(on: try Story(arguments), size: size)
    }

    package convenience init(on story: Story, size: Int = 3_000) {
        let window = LiveWindow(
            segments: (0..<100).map { .init(uri: segment("s\($0)", size), duration: 1) },
            targetDuration: 1, windowSize: 3)
        self.init(on: story, window)
    }

    package init(on story: Story, _ window: LiveWindow) {
        self.story = story
        self.window = window
        _ = story.cdn.live("/l.m3u8", window)
    }

    /// Records an entry and stops the recording where it cannot have that, for which its end waits;
    /// calls `first` before the stop.
    package func stopWithoutEntry(_ first: () throws -> Void = {}) throws {
        putEntry()
        try record("/m.m3u8")
        #expect(try has(6))
        // A new run does not have the entry.
        try story.restart()
        #expect(try has(6))
        try first()
        _ = try story.ask("purge", story.cdn.url("/m.m3u8"))
        story.cdn.stop()
        _ = try story.api("recordings/\(id)/stop", method: "POST")
    }

    /// Puts an entry, `/m.m3u8`, in which the stream has audio of its own, with more lines at its
    /// end.
    package func putEntry(_ lines: String = "") {
        _ = story.cdn.live("/a.m3u8", ShiftedStream.window(names: "a"))
        story.cdn.put(
            "/m.m3u8",
            text: """
                #EXTM3U
                #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="g",NAME="x",DEFAULT=YES,URI="a.m3u8"
                #EXT-X-STREAM-INF:BANDWIDTH=900000,RESOLUTION=640x360,AUDIO="g"
                l.m3u8

                """ + lines)
    }

    /// Starts a recording; returns the daemon's response.
    @discardableResult
    package func record(_ path: String = "/l.m3u8", _ arguments: String = "for=1h") throws -> String
    {
        let url = percentEncoded(story.cdn.url(path))
        let text = try story.api("recordings?url=\(url)&\(arguments)", method: "POST")
        id = members("id", in: text).first ?? ""
        return text
    }

    /// The state of a recording, once it matches.
    package func told(_ isExpected: (String) -> Bool = { _ in true }) throws -> String {
        var text = ""
        _ = try eventually(within: .seconds(60)) {
            text = try story.api("recordings/\(id)")
            return isExpected(text)
        }
        return text
    }

    /// Waits for this many segments; the origin has advanced before.
    package func has(_ segments: Int) throws -> Bool {
        members("segments", in: try told { members("segments", in: $0).first == "\(segments)" })
            .first == "\(segments)"
    }

    /// Stops it and waits for its end; returns the list that plays it.
    package func stop() throws -> PlayerResponse {
        _ = try story.api("recordings/\(id)/stop", method: "POST")
        return try played()
    }

    /// The list that plays it, once it has ended.
    package func played() throws -> PlayerResponse {
        let text = try told { $0.contains("\"state\":\"done\"") || $0.contains("failed") }
        return try story.follow(members("play", in: text).first ?? "/none")
    }
}
