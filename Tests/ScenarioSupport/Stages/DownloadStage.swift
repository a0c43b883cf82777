package import FixtureCDN
import Testing

/// A daemon, titles of synthetic bytes, and orders.
package final class DownloadStage: Sendable {
    package let story: Story

    package init(_ arguments: [String] = [], cacheFolder: String? = nil) throws {
        story = try Story(arguments, cacheFolder: cacheFolder)
    }

    package init(on story: Story) { self.story = story }

    package var cdn: FixtureCDN { story.cdn }

    /// Puts a title of two heights and two languages under a path; returns its multivariant
    /// playlist's URL.
    package func title(_ name: String = "film", segments: Int = 6, bytes: Int = 20_000) -> String {
        for (list, kind) in [("low", "v1"), ("high", "v2"), ("en", "a1"), ("fr", "a2")] {
            var text = "#EXTM3U\n#EXT-X-VERSION:6\n#EXT-X-TARGETDURATION:4\n"
            text += "#EXT-X-PLAYLIST-TYPE:VOD\n#EXT-X-MAP:URI=\"/bytes/\(name)-\(kind)-i/900\"\n"
            text += "#EXT-X-KEY:METHOD=AES-128,URI=\"/bytes/\(name)-\(kind)-k/16\"\n"
            for number in 0..<segments {
                text += "#EXTINF:4,\n/bytes/\(name)-\(kind)-\(number)/\(bytes)\n"
            }
            cdn.put("/\(name)/\(list).m3u8", text: text + "#EXT-X-ENDLIST\n")
        }
        cdn.put(
            "/\(name)/master.m3u8",
            text: """
                #EXTM3U
                #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="E",LANGUAGE="en",DEFAULT=YES,URI="en.m3u8"
                #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="F",LANGUAGE="fr",URI="fr.m3u8"
                #EXT-X-STREAM-INF:BANDWIDTH=400000,RESOLUTION=640x360,AUDIO="a"
                low.m3u8
                #EXT-X-STREAM-INF:BANDWIDTH=900000,RESOLUTION=1280x720,AUDIO="a"
                high.m3u8

                """)
        return cdn.url("/\(name)/master.m3u8")
    }

    /// Gives an order; returns the download's number.
    package func order(_ url: String, _ arguments: String = "") throws -> String {
        let answer = try ask("POST", "/api/downloads?url=\(Self.encoded(url))\(arguments)")
        #expect(answer.status == 201)
        return answer["id"]
    }

    /// Everything but letters and digits as escapes.
    package static func encoded(_ text: String) -> String {
        text.utf8.map { byte in
            let isPlain = (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte & 0xDF)
            let digits = String(byte, radix: 16)
            return isPlain ? String(UnicodeScalar(byte)) : "%" + (byte < 16 ? "0" : "") + digits
        }.joined()
    }

    package func ask(_ method: String, _ path: String) throws -> Answer {
        let player = story.player()
        // Its connection refers to it weakly.
        let response = try withExtendedLifetime(player) {
            try player.get(story.daemon.baseURL + path, method: method)
        }
        return Answer(status: response.status, text: response.text)
    }

    /// The state of a download.
    package func download(_ id: String) throws -> Answer { try ask("GET", "/api/downloads/\(id)") }

    /// Waits until a download reaches a state, or fails the test with the one it has.
    package func wait(_ id: String, for state: String) throws -> Answer {
        var last = try download(id)
        let isThere = try eventually(within: .seconds(30)) {
            last = try download(id)
            return last["state"] == state
        }
        if !isThere { throw ScenarioFailure("not \(state): \(last.text)") }
        return last
    }

    package struct Answer: Sendable {
        package let status: Int
        package let text: String

        package init(status: Int, text: String) {
            self.status = status
            self.text = text
        }

        /// A member's value as text, without quotes.
        package subscript(name: String) -> String {
            guard let start = text.firstRange(of: "\"\(name)\":") else { return "" }
            let rest = text[start.upperBound...]
            if rest.first == "\"" { return String(rest.dropFirst().prefix { $0 != "\"" }) }
            return String(rest.prefix { $0 != "," && $0 != "}" })
        }
    }
}
