import FixtureCDN

/// A feed of short titles of five segments of 2 s at the sample CDN.
package struct ShownFeed: Sendable {
    package let story: Story
    package let items: Int
    private let size: Int
    private let isMultivariant: Bool

    package init(
        items: Int, size: Int = 60_000, isMultivariant: Bool = false, on story: Story? = nil
    ) throws {
        self.story = try story ?? Story()
        self.items = items
        self.size = size
        self.isMultivariant = isMultivariant
        for item in 0..<items {
            for name in isMultivariant ? ["low", "high"] : ["v"] {
                let text = vod((0..<5).map { segment(item, $0, name) })
                self.story.cdn.put(
                    "/i\(item)/\(name).m3u8", text: text.replacing("4.0,", with: "2.0,"))
            }
            self.story.cdn.put("/i\(item)/master.m3u8", text: Self.master)
        }
    }

    private static let master = """
        #EXTM3U
        #EXT-X-STREAM-INF:BANDWIDTH=240000,RESOLUTION=640x360
        low.m3u8
        #EXT-X-STREAM-INF:BANDWIDTH=480000,RESOLUTION=1280x720
        high.m3u8

        """

    package var player: ScriptedPlayer { story.player() }

    package func list(_ item: Int) -> String { "/i\(item)/v.m3u8" }

    package func entry(_ item: Int) -> String {
        isMultivariant ? "/i\(item)/master.m3u8" : list(item)
    }

    package func segment(_ item: Int, _ number: Int, _ name: String = "v") -> String {
        "/bytes/\(size)/i\(item)\(name)\(number).ts"
    }

    package func count(_ item: Int, _ number: Int) -> Int {
        story.cdn.requestCount(segment(item, number))
    }

    /// Sends a request of the API.
    package func send(_ method: String, _ rest: String, _ body: String? = nil) throws
        -> PlayerResponse
    {
        try player.get("/api/feeds/f\(rest)", method: method, body: body.map { Array($0.utf8) })
    }

    /// Makes the feed; `more` goes into the order's object.
    package func put(_ more: String = "") throws -> PlayerResponse {
        let urls = (0..<items).map { #""\#(story.cdn.url(entry($0)))""# }
        return try send("PUT", "", #"{"entries":[\#(urls.joined(separator: ","))]\#(more)}"#)
    }

    package func move(to index: Int) throws -> PlayerResponse {
        try send("POST", "/position?index=\(index)")
    }

    package func state() throws -> String { try send("GET", "").text }

    /// Waits until an item has reached a state.
    package func settles(_ index: Int, _ readiness: String) throws -> Bool {
        try eventually(within: .seconds(30)) {
            let items = try state().split(separator: "{")
            return items.contains {
                $0.contains("\"index\":\(index),\"rank\"")
                    && $0.contains("\"state\":\"\(readiness)\"")
            }
        }
    }

    package func isHit(_ link: String) throws -> Bool {
        try player.get(link).head["Cache-Status"]?.contains("; hit") == true
    }
}
