import HLS
import Testing
import URISyntax

/// Multivariant playlists reduced to what is playable.
@Suite struct MultivariantFilterTests {
    /// Filters a list; the given file names are not playable.
    static func filter(_ text: String, without names: Set<String>) throws -> (String, Bool) {
        let result = MultivariantFilter.filter(try Corpus.list(Array(text.utf8))) {
            !names.contains($0.url.lastPathSegment)
        }
        return (String(decoding: result.bytes, as: UTF8.self), result.isPlayable)
    }

    static let film = """
        #EXTM3U
        #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="hi",NAME="de",DEFAULT=YES,AUTOSELECT=YES,URI="hi-de"
        #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="hi",NAME="en",DEFAULT=NO,AUTOSELECT=NO,URI="hi-en"
        #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="lo",NAME="de",URI="lo-de"
        #EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="s",NAME="de",URI="sub-de"
        #EXT-X-STREAM-INF:BANDWIDTH=9,AUDIO="hi",SUBTITLES="s"
        v9
        #EXT-X-STREAM-INF:BANDWIDTH=5,AUDIO="lo",SUBTITLES="s"
        v5
        #EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=1,URI="i"

        """

    @Test func `a fully playable multivariant playlist is unchanged`() throws {
        #expect(try Self.filter(Self.film, without: []).0 == Self.film)
    }

    @Test func `the start of a live stream can be left out`() throws {
        let text = "#EXTM3U\n#EXT-X-START:TIME-OFFSET=-9\n#EXT-X-STREAM-INF:BANDWIDTH=9\nv9\n"
        let list = try Corpus.list(Array(text.utf8))
        let result = MultivariantFilter.filter(list) { _ in
            true
        } movedStart: { _ in
            nil
        }
        #expect(
            String(decoding: result.bytes, as: UTF8.self)
                == "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=9\nv9\n")
        #expect(MultivariantFilter.filter(list) { _ in true }.bytes == Array(text.utf8))
    }

    @Test(arguments: [
        ("TIME-OFFSET=14.5,PRECISE=YES", 4.5, "TIME-OFFSET=4.500,PRECISE=YES"),
        ("PRECISE=YES,TIME-OFFSET=-9", -2.0, "PRECISE=YES,TIME-OFFSET=-2"),
    ])
    func `the start is moved with what is played`(
        _ attributes: String, _ seconds: Double, _ moved: String
    ) throws {
        let rest = "#EXT-X-STREAM-INF:BANDWIDTH=9\nv9\n"
        let text = "#EXTM3U\n#EXT-X-START:\(attributes)\n\(rest)"
        let list = try Corpus.list(Array(text.utf8))
        let result = MultivariantFilter.filter(list) { _ in
            true
        } movedStart: { _ in
            .seconds(seconds)
        }
        #expect(
            String(decoding: result.bytes, as: UTF8.self)
                == "#EXTM3U\n#EXT-X-START:\(moved)\n\(rest)")
        #expect(!result.isWhole)
    }

    @Test func `a variant that is not stored is removed with the groups that only it used`() throws
    {
        let (text, _) = try Self.filter(Self.film, without: ["v9", "i"])
        #expect(
            text == """
                #EXTM3U
                #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="lo",NAME="de",URI="lo-de"
                #EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="s",NAME="de",URI="sub-de"
                #EXT-X-STREAM-INF:BANDWIDTH=5,AUDIO="lo",SUBTITLES="s"
                v5

                """)
    }

    @Test func `a variant without stored audio is removed if another one has audio`() throws {
        let (text, isPlayable) = try Self.filter(Self.film, without: ["lo-de"])
        #expect(isPlayable && text.contains("\nv9\n") && !text.contains("\nv5\n"))
    }

    @Test func `variants without audio are kept if no variant has audio`() throws {
        let (text, isPlayable) = try Self.filter(
            Self.film, without: ["lo-de", "hi-de", "hi-en", "v9"])
        #expect(isPlayable)
        #expect(text.contains("#EXT-X-STREAM-INF:BANDWIDTH=5,SUBTITLES=\"s\"\nv5\n"))
        #expect(!text.contains("AUDIO"))
    }

    @Test func `missing subtitles remove no variant`() throws {
        let (text, _) = try Self.filter(Self.film, without: ["sub-de"])
        #expect(text.contains("#EXT-X-STREAM-INF:BANDWIDTH=9,AUDIO=\"hi\"\nv9\n"))
        #expect(!text.contains("SUBTITLES"))
    }

    @Test func `the next rendition replaces a missing one as default`() throws {
        let (text, _) = try Self.filter(Self.film, without: ["hi-de"])
        #expect(
            text.contains(
                "GROUP-ID=\"hi\",NAME=\"en\",DEFAULT=YES,AUTOSELECT=YES,URI=\"hi-en\"\n"))
    }

    @Test func `a rendition within the variant stream is kept with it`() throws {
        let text = """
            #EXTM3U
            #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="muxed",DEFAULT=YES
            #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="en",URI="en"
            #EXT-X-MEDIA:TYPE=CLOSED-CAPTIONS,GROUP-ID="c",NAME="cc",INSTREAM-ID="CC1"
            #EXT-X-STREAM-INF:BANDWIDTH=9,AUDIO="a",CLOSED-CAPTIONS="c"
            v9

            """
        let (filtered, _) = try Self.filter(text, without: ["en"])
        #expect(
            filtered
                == text.replacing(
                    "#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"en\",URI=\"en\"\n", with: ""))
    }

    @Test func `a playlist without any variant is not playable`() throws {
        let (text, isPlayable) = try Self.filter(Self.film, without: ["v9", "v5"])
        #expect(!isPlayable && !text.contains("#EXT-X-MEDIA"))
    }

    @Test func `steering, session data and session keys are removed if not stored`() throws {
        let text = """
            #EXTM3U
            #EXT-X-CONTENT-STEERING:SERVER-URI="steer"
            #EXT-X-SESSION-DATA:DATA-ID="a",VALUE="x"
            #EXT-X-SESSION-DATA:DATA-ID="b",URI="data"
            #EXT-X-SESSION-KEY:METHOD=AES-128,URI="key"
            #EXT-X-UNKNOWN:URI="x"
            #EXT-X-STREAM-INF:BANDWIDTH=9
            v9

            """
        let (filtered, _) = try Self.filter(text, without: ["steer", "data", "key"])
        #expect(
            filtered
                == "#EXTM3U\n#EXT-X-SESSION-DATA:DATA-ID=\"a\",VALUE=\"x\"\n#EXT-X-UNKNOWN:URI=\"x\"\n#EXT-X-STREAM-INF:BANDWIDTH=9\nv9\n"
        )
    }

    @Test func `each resolved URL is asked about once`() throws {
        var asked: [String] = []
        _ = MultivariantFilter.filter(try Corpus.list(Array(Self.film.utf8))) {
            asked.append($0.url.text)
            return true
        }
        #expect(asked.count == 7 && Set(asked).count == 7)
        #expect(asked.contains("https://cdn.example.com/vod/a/v9"))
    }

    @Test(arguments: Corpus.names.filter { $0.hasPrefix("rfc-") })
    func `filtered examples of the draft break no further rules`(name: String) throws {
        let body = try #require(Corpus.read(name + ".m3u8"))
        guard try Playlist(body, base: nil).kind == .multivariant else { return }
        for residue in 0..<3 {
            var index = 0
            let result = MultivariantFilter.filter(try Corpus.list(body)) { _ in
                index += 1
                return index % 3 != residue
            }
            guard result.isPlayable else { continue }
            let found = try Corpus.violations(in: result.bytes)
                .filter { $0.level == .must && $0.rule != "pathway-missing" }
            #expect(found.isEmpty, "\(found)")
        }
    }
}
