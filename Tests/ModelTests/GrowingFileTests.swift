@testable import Model
import HLS
import Testing
import URISyntax

/// Which resources of a live list grow by the ranges that it lists.
@Suite struct GrowingFileTests {
    private func containers(
        _ lines: String, isOver: Bool = false
    ) throws -> [String: LiveReading.Container] {
        let head = "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nfirst.ts\n"
        let text = head + lines + (isOver ? "#EXT-X-ENDLIST\n" : "")
        let reading = try #require(
            try LiveReading(
                Array(text.utf8), base: try AbsoluteURL("http://h/l.m3u8"), wasLive: isOver,
                options: PlaylistReading()))
        return Dictionary(
            uniqueKeysWithValues: reading.containers.map { url, container in
                (String(url.text.dropFirst("http://h/".count)), container)
            })
    }

    private static let segments = """
        #EXT-X-MAP:URI="f.mp4",BYTERANGE="50@0"
        #EXTINF:1,
        #EXT-X-BYTERANGE:100@50
        f.mp4
        #EXTINF:1,
        #EXT-X-BYTERANGE:100
        f.mp4

        """

    @Test func `a file that segments are ranges of grows until its list has ended`() throws {
        let growing = LiveReading.Container(end: 250)
        #expect(try containers(Self.segments) == ["f.mp4": growing])
        let ended = LiveReading.Container(end: 250, stage: .ended)
        #expect(try containers(Self.segments, isOver: true) == ["f.mp4": ended])
    }

    @Test func `a file of initialization sections alone grows too`() throws {
        let lines = "#EXT-X-MAP:URI=\"i.mp4\",BYTERANGE=\"50@100\"\n#EXTINF:1,\ns0.mp4\n"
        #expect(try containers(lines) == ["i.mp4": .init(end: 150)])
    }

    @Test func `a section at the beginning of its segment says nothing of the segment's end`()
        throws
    {
        let lines = "#EXT-X-MAP:URI=\"s0.mp4\",BYTERANGE=\"50@0\"\n#EXTINF:1,\ns0.mp4\n"
        #expect(try containers(lines) == [:])
    }

    @Test func `parts that are ranges end with the segment that is listed as a whole`() throws {
        let parts = """
            #EXT-X-PART:DURATION=0.5,URI="s0.mp4",BYTERANGE="100@0"
            #EXT-X-PART:DURATION=0.5,URI="s0.mp4",BYTERANGE="100@100"

            """
        #expect(try containers(parts) == ["s0.mp4": .init(end: 200)])
        let whole = parts + "#EXTINF:1,\ns0.mp4\n"
        #expect(try containers(whole) == ["s0.mp4": .init(end: 200, stage: .whole)])
        #expect(try containers(whole, isOver: true) == ["s0.mp4": .init(end: 200, stage: .whole)])
    }

    @Test(arguments: ["#EXT-X-I-FRAMES-ONLY\n", "#EXT-X-IMAGES-ONLY\n"])
    func `ranges of I-frames and images show no growth`(tag: String) throws {
        #expect(
            try containers(
                tag
                    + Self.segments.split(separator: "\n").dropFirst()
                    .joined(separator: "\n") + "\n") == [:])
    }

    @Test func `only a length that the listed ranges pass is one of the moment`() {
        let growing = LiveReading.Container(end: 250)
        #expect(growing.outgrows(249) && !growing.outgrows(250) && !growing.outgrows(900))
        #expect(!LiveReading.Container(end: 250, stage: .ended).outgrows(100))
    }

    @Test func `segments that are whole files do not grow`() throws {
        #expect(try containers("#EXTINF:1,\ns0.ts\n#EXTINF:1,\ns1.ts\n") == [:])
    }
}
