// What stories of time shift have in common: a live stream, and a player with a longer window.
package import FixtureCDN

/// A live stream behind a daemon; its segments `s0.ts`, `s1.ts` and so on last a second each.
package final class ShiftedStream {
    package let story: Story
    package private(set) var window: LiveWindow
    package let path: String
    package let length: String

    /// The bytes of each segment.
    package static let size = 3_000
    /// Lists with parts are reused for half a part target, which shortens the test.
    private static let quick = ["#EXT-X-PART-INF:PART-TARGET=0.1"]

    /// Starts both: `length` is the value of `dvr=`, `arguments` are added to `serve`, and after
    /// `loop` segments the stream restarts behind a discontinuity.
    package init(
        _ length: String, _ arguments: [String] = [], path: String = "/l.m3u8", loop: Int = 100
    ) throws {
        story = try Story(arguments)
        self.path = path
        self.length = length
        window = Self.window(loop)
        _ = story.cdn.live(path, window)
    }

    package static func window(
        _ loop: Int = 100, names: String = "s", size: Int = 3, target: Int = 1
    ) -> LiveWindow {
        LiveWindow(
            segments: (0..<loop).map {
                .init(uri: segment("\(names)\($0)", Self.size), duration: 1)
            }, targetDuration: target, windowSize: size, header: quick)
    }

    /// The origin restarts its numbering.
    package func reset(to window: LiveWindow) {
        self.window = window
        _ = story.cdn.live(path, window)
    }

    /// The list as a player gets it now.
    package func list() throws -> PlayerResponse {
        try story.follow(
            "/proxy?url=\(percentEncoded(story.cdn.url(path)))&dvr=\(length)")
    }

    /// Advances the origin and loads the list until it shows that.
    @discardableResult
    package func advance(by count: Int = 1) throws -> PlayerResponse {
        let before = try list().text
        window.advance(by: count)
        return try changed(from: before)
    }

    /// The list once it differs from `before`; the wait is limited to the usual patience.
    package func changed(from before: String) throws -> PlayerResponse {
        var now = try list()
        _ = try eventually {
            now = try list()
            return now.text != before
        }
        return now
    }

    /// Fetches everything in a list, as a player that watches it from its start.
    package func watch(_ list: PlayerResponse) throws {
        for link in uriLines(list.text) where !link.contains("missing") {
            _ = try story.follow(link)
        }
    }
}

extension PlayerResponse {
    /// The value of the first line that starts with a tag.
    package func tag(_ name: String) -> String? {
        text.split(separator: "\n").first { $0.hasPrefix(name + ":") }
            .map { String($0.dropFirst(name.utf8.count + 1)) }
    }

    /// The names of the segments at the origin, without extension.
    package var segmentNames: [String] {
        uriLines(text).compactMap(originName).map { String($0.prefix { $0 != "." }) }
    }
}
