import HLS
import Testing
import URISyntax

/// Multivariant playlists without the variants above a session's limit.
@Suite struct VariantLimitTests {
    private func limited(_ text: String, _ limit: VariantLimit) throws -> String {
        let bytes = try limit.applied(
            to: Array(text.utf8), base: Corpus.base, PlaylistReading())
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The URIs of the variants that are left.
    private func variants(_ text: String, _ limit: VariantLimit) throws -> [String] {
        try limited(text, limit).split(separator: "\n").filter { !$0.hasPrefix("#") }
            .map(String.init)
    }

    private static let film = """
        #EXTM3U
        #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="hi",NAME="de",URI="hi-de"
        #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="lo",NAME="de",URI="lo-de"
        #EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="s",NAME="de",URI="sub-de"
        #EXT-X-STREAM-INF:BANDWIDTH=5000000,RESOLUTION=1920x1080,AUDIO="hi",SUBTITLES="s"
        v1080
        #EXT-X-STREAM-INF:BANDWIDTH=2500000,RESOLUTION=1280x720,AUDIO="lo",SUBTITLES="s"
        v720
        #EXT-X-STREAM-INF:BANDWIDTH=800000,RESOLUTION=640x360,AUDIO="lo",SUBTITLES="s"
        v360
        #EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=500000,RESOLUTION=1920x1080,URI="i1080"
        #EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=100000,RESOLUTION=640x360,URI="i360"

        """

    @Test func `variants and I-frame streams above the height go with the groups of their own`()
        throws
    {
        #expect(
            try limited(Self.film, VariantLimit(height: 720)) == """
                #EXTM3U
                #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="lo",NAME="de",URI="lo-de"
                #EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="s",NAME="de",URI="sub-de"
                #EXT-X-STREAM-INF:BANDWIDTH=2500000,RESOLUTION=1280x720,AUDIO="lo",SUBTITLES="s"
                v720
                #EXT-X-STREAM-INF:BANDWIDTH=800000,RESOLUTION=640x360,AUDIO="lo",SUBTITLES="s"
                v360
                #EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=100000,RESOLUTION=640x360,URI="i360"

                """)
    }

    @Test(arguments: [
        (VariantLimit(height: 1_080), ["v1080", "v720", "v360"]),
        (VariantLimit(height: 719), ["v360"]), (VariantLimit(height: 1), ["v360"]),
        (VariantLimit(bandwidth: 2_500_000), ["v720", "v360"]),
        (VariantLimit(bandwidth: 1), ["v360"]),
        (VariantLimit(height: 720, bandwidth: 1_000_000), ["v360"]),
        (VariantLimit(height: 400, bandwidth: 9_000_000), ["v360"]),
    ])
    func `variants up to both limits are left, and at least the lowest`(
        _ limit: VariantLimit, _ expected: [String]
    ) throws {
        #expect(try variants(Self.film, limit) == expected)
    }

    @Test func `a playlist with nothing above the limit stays byte for byte`() throws {
        let text = Self.film.replacing("\n", with: "\r\n")
        #expect(try limited(text, .none) == text)
        #expect(try limited(text, VariantLimit(height: 2_160, bandwidth: 9_000_000)) == text)
    }

    @Test func `sound without pictures is no substitute for pictures above a limit`() throws {
        let text = """
            #EXTM3U
            #EXT-X-STREAM-INF:BANDWIDTH=64000,CODECS="mp4a.40.2"
            sound
            #EXT-X-STREAM-INF:BANDWIDTH=3000000,RESOLUTION=1920x1080
            low
            #EXT-X-STREAM-INF:BANDWIDTH=3000000,RESOLUTION=1920x1080
            low-elsewhere
            #EXT-X-STREAM-INF:BANDWIDTH=6000000,RESOLUTION=1920x1080
            high

            """
        #expect(
            try variants(text, VariantLimit(height: 720)) == ["sound", "low", "low-elsewhere"])
        for bandwidth in [1_000, 100_000] {
            let left = try variants(text, VariantLimit(bandwidth: bandwidth))
            #expect(left == (bandwidth < 64_000 ? [] : ["sound"]) + ["low", "low-elsewhere"])
        }
    }

    @Test func `sound of the lowest bandwidth stays where nothing has pictures`() throws {
        let text = """
            #EXTM3U
            #EXT-X-STREAM-INF:BANDWIDTH=64000,CODECS="mp4a.40.2"
            low
            #EXT-X-STREAM-INF:BANDWIDTH=128000,CODECS="mp4a.40.2"
            high

            """
        for bandwidth in [1, 100_000] {
            #expect(try variants(text, VariantLimit(bandwidth: bandwidth)) == ["low"])
        }
    }

    @Test func `a variant that states no height is not above one`() throws {
        let text = """
            #EXTM3U
            #EXT-X-STREAM-INF:BANDWIDTH=5
            a
            #EXT-X-STREAM-INF:RESOLUTION=640x360
            b

            """
        #expect(try variants(text, VariantLimit(height: 720)) == ["a", "b"])
        #expect(try variants(text, VariantLimit(bandwidth: 4)) == ["b"])
    }

    @Test func `a media playlist is not parsed`() throws {
        // Its segment would be an error of parsing.
        let text = "#EXTM3U\n#EXTINF:4,\nfile:///etc/passwd\n"
        #expect(throws: PlaylistError.self) {
            try Playlist(Array(text.utf8), base: Corpus.base)
        }
        #expect(try limited(text, VariantLimit(height: 1, bandwidth: 1)) == text)
    }

    @Test(arguments: Corpus.names.filter { $0.hasPrefix("rfc-") })
    func `limited examples of the draft break no further rules`(name: String) throws {
        let body = try #require(Corpus.read(name + ".m3u8"))
        for limit in [VariantLimit(height: 360), VariantLimit(bandwidth: 1_000_000)] {
            let made = try limit.applied(to: body, base: Corpus.base, PlaylistReading())
            let known = Set(try Corpus.violations(in: body).map(\.rule))
            let found = try Corpus.violations(in: made).filter {
                $0.level == .must && !known.contains($0.rule) && $0.rule != "pathway-missing"
            }
            #expect(found.isEmpty, "\(found)")
        }
    }
}
