import HLS
import Testing
import URISyntax

/// Which kind of playlist a text with tags of both kinds is.
@Suite struct PlaylistKindTests {
    @Test(arguments: [
        "#EXT-X-MEDIA-SEQUENCE:3", "#EXT-X-PLAYLIST-TYPE:VOD", "#EXT-X-TARGETDURATION:6",
        "#EXT-X-KEY:METHOD=AES-128,URI=\"key\"",
        "#EXT-X-DATERANGE:ID=\"a\",X-ASSET-URI=\"key\",X-ASSET-LIST=\"list\"",
    ])
    func `variants make a multivariant playlist, even behind a tag of media playlists`(
        _ head: String
    ) throws {
        let rendition = "#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"a\",URI=\"a.m3u8\""
        let variant = "#EXT-X-STREAM-INF:BANDWIDTH=1,AUDIO=\"a\"\nv.m3u8\n"
        let text = "#EXTM3U\n\(head)\n\(rendition)\n\(variant)"
        let list = try PlaylistModelTests.playlist(text)
        #expect(list.kind == .multivariant && !list.summary.isLive)
        let variants = MultivariantFilter.variants(try #require(list.multivariant))
        #expect(variants.map(\.url.lastPathSegment) == ["v.m3u8"])
        #expect(variants.map { $0.sound.map(\.lastPathSegment) } == [["a.m3u8"]])
        let named = list.references.map(\.url.lastPathSegment)
        #expect(Array(named.suffix(2)) == ["a.m3u8", "v.m3u8"])
        #expect(named.dropLast(2).contains("key") == head.contains("key"))
        #expect(named.dropLast(2).contains("list") == head.contains("list"))
        let source = list.source
        #expect(PlaylistAgreementTests.model(source) == PlaylistAgreementTests.rewriter(source))
    }

    @Test(arguments: [
        "#EXTINF:6,\na.ts\n", "#EXTINF:6,\n", "#EXT-X-PART:DURATION=1,URI=\"p\"\n",
        "#EXT-X-SKIP:SKIPPED-SEGMENTS=3\n",
    ])
    func `a variant behind a segment leaves a media playlist what it is`(_ head: String) throws {
        let variant = "#EXT-X-STREAM-INF:BANDWIDTH=1\nv.m3u8\n"
        let list = try PlaylistModelTests.playlist(
            "#EXTM3U\n#EXT-X-TARGETDURATION:6\n\(head)\(variant)#EXTINF:6,\nb.ts\n")
        let segments = try #require(list.media?.segments)
        #expect(segments.last?.reference?.url.lastPathSegment == "b.ts")
        let named = list.references.map(\.url.lastPathSegment)
        #expect(Array(named.suffix(2)) == ["v.m3u8", "b.ts"])
    }
    @Test(arguments: ["", "#EXT-X-KEY:METHOD=NONE\n", "#EXT-X-BYTERANGE:5\n"])
    func `a variant without a URI leaves the segments behind it what they are`(
        _ tags: String
    ) throws {
        let head = "#EXTM3U\n#EXT-X-TARGETDURATION:6\n#EXT-X-MEDIA-SEQUENCE:7\n"
        let variant = "#EXT-X-STREAM-INF:BANDWIDTH=1\n"
        let list = try PlaylistModelTests.playlist(
            "\(head)\(variant)\(tags)#EXTINF:6,\na.ts\n#EXTINF:6,\nb.ts\n")
        let segments = try #require(list.media?.segments)
        #expect(segments.map { $0.reference?.url.lastPathSegment } == ["a.ts", "b.ts"])
        #expect(list.references.map(\.role) == [.segment, .segment])
        let source = list.source
        #expect(PlaylistAgreementTests.model(source) == PlaylistAgreementTests.rewriter(source))
    }

    @Test func `a segment behind a variant makes a media playlist again`() throws {
        let variant = "#EXT-X-STREAM-INF:BANDWIDTH=1\nv.m3u8\n"
        let list = try PlaylistModelTests.playlist(
            "#EXTM3U\n#EXT-X-TARGETDURATION:6\n\(variant)#EXTINF:6,\na.ts\nb.ts\n")
        let segments = try #require(list.media?.segments)
        #expect(segments.map { $0.reference?.url.lastPathSegment } == ["a.ts", "b.ts"])
        #expect(list.references.map(\.role) == [.playlist, .segment, .segment])
        let source = list.source
        #expect(PlaylistAgreementTests.model(source) == PlaylistAgreementTests.rewriter(source))
    }
}
