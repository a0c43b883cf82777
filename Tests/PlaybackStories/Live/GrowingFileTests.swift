import FixtureCDN
import ScenarioSupport
import Testing

/// Live streams whose segments are byte ranges of one file, to which their packager appends.
extension Stories {
    @Suite(.tags(.timed)) struct GrowingFileTests {}
}

/// A stream of that kind: its file has a new entity tag with each append, or no validator at all.
private final class GrowingFile {
    let story: Story
    let path = "/f.ts"
    static let size = 3_000

    init(_ arguments: [String] = [], hasValidators: Bool = true) throws {
        story = try Story(arguments)
        if !hasValidators { story.cdn.setBehaviour("noetag=1&lastmod=", for: path) }
    }

    static func bytes(_ segments: Range<Int>) -> [UInt8] {
        FixtureCDN.syntheticBytes("f.ts", segments.lowerBound * size..<segments.upperBound * size)
    }

    /// The lines of a segment after EXTINF.
    static func lines(_ number: Int) -> String {
        "#EXT-X-BYTERANGE:\(size)@\(number * size)\n/f.ts"
    }

    /// The file has this many segments.
    func grow(to count: Int) { story.cdn.put(path, Self.bytes(0..<count)) }

    /// The list names this many, and has ended if `isOver`; returns it as a player gets it.
    func list(of count: Int, isOver: Bool = false) throws -> PlayerResponse {
        var text = "#EXTM3U\n#EXT-X-VERSION:4\n#EXT-X-TARGETDURATION:1\n"
        text += "#EXT-X-PART-INF:PART-TARGET=0.1\n#EXT-X-PLAYLIST-TYPE:EVENT\n"
        text += "#EXT-X-MEDIA-SEQUENCE:0\n"
        for number in 0..<count { text += "#EXTINF:1,\n\(Self.lines(number))\n" }
        if isOver { text += "#EXT-X-ENDLIST\n" }
        story.cdn.put("/l.m3u8", text: text)
        var list = try story.get("/l.m3u8")
        _ = try eventually {
            list = try story.get("/l.m3u8")
            return uriLines(list.text).count == count
                && list.text.contains("#EXT-X-ENDLIST") == isOver
        }
        return list
    }

    /// Records it with a list of three segments.
    func record() throws -> RecordedStream {
        let window = LiveWindow(
            segments: (0..<50).map { .init(uri: Self.lines($0), duration: 1) }, targetDuration: 1,
            windowSize: 3)
        let stream = RecordedStream(on: story, window)
        try stream.record()
        return stream
    }
}

extension Story {
    /// Requests a segment of a growing file.
    fileprivate func play(_ number: Int, of list: PlayerResponse) throws -> PlayerResponse {
        let links = uriLines(list.text)
        try #require(links.indices.contains(number), "\(list.text)")
        let first = number * GrowingFile.size
        return try follow(
            links[number], headers: [("Range", "bytes=\(first)-\(first + GrowingFile.size - 1)")])
    }

    /// Checks that the first segments of a list have their own bytes.
    fileprivate func check(_ count: Int, of list: PlayerResponse) throws {
        for number in 0..<count {
            let answer = try play(number, of: list)
            let isRight = answer.body == GrowingFile.bytes(number..<number + 1)
            #expect(answer.status == 206 && isRight, "segment \(number)")
        }
    }
}

extension Stories.GrowingFileTests {
    @Test(arguments: [true, false])
    func `each range of a file that grows is played once the list names it`(
        hasValidators: Bool
    ) throws {
        let file = try GrowingFile(hasValidators: hasValidators)
        for count in [1, 3, 4, 6] {
            file.grow(to: count)
            try file.story.check(count, of: file.list(of: count))
        }
        // What came before stays stored, whatever validators the file has by now.
        let list = try file.list(of: 6)
        file.story.cdn.stop()
        try file.story.check(6, of: list)
    }

    @Test(arguments: [true, false])
    func `the length of a file is learned once after the end of its list`(
        hasValidators: Bool
    ) throws {
        let file = try GrowingFile(hasValidators: hasValidators)
        for count in [2, 4] {
            file.grow(to: count)
            try file.story.check(count, of: file.list(of: count))
        }
        let list = try file.list(of: 4, isOver: true)
        let link = try #require(uriLines(list.text).first)
        for isFirst in [true, false] {
            // The first request asks the origin for what follows the last range.
            if !isFirst { file.story.cdn.stop() }
            let answer = try file.story.follow(link, headers: [("Range", "bytes=0-")])
            let isWhole = answer.complete && answer.body == GrowingFile.bytes(0..<4)
            #expect(isWhole, "status \(answer.status), \(answer.body.count) bytes, \(isFirst)")
        }
    }

    @Test
    func `a range that the origin does not have yet is asked for once until the list moves`()
        throws
    {
        let file = try GrowingFile()
        file.grow(to: 2)
        let early = try file.list(of: 4)
        try file.story.check(2, of: early)
        let asked = file.story.cdn.requestCount(file.path)
        for number in [2, 3, 2] {
            #expect(try file.story.play(number, of: early).status == 416)
        }
        #expect(file.story.cdn.requestCount(file.path) == asked + 1)
        file.grow(to: 5)
        try file.story.check(5, of: file.list(of: 5))
    }
    @Test(arguments: [true, false])
    func `a recording of a file that grows has every segment`(hasValidators: Bool) throws {
        let file = try GrowingFile(hasValidators: hasValidators)
        file.grow(to: 3)
        let stream = try file.record()
        #expect(try stream.has(3))
        for count in [5, 6] {
            file.grow(to: count)
            stream.window.advance(by: count == 5 ? 2 : 1)
            #expect(try stream.has(count))
        }
        let list = try stream.stop()
        #expect(try members("lost", in: stream.told()).first == "0")
        file.story.cdn.stop()
        #expect(uriLines(list.text).count == 6)
        try file.story.check(6, of: list)
    }

    @Test func `a range that its file never got is lost to a recording, not counted as there`()
        throws
    {
        let file = try GrowingFile()
        file.grow(to: 2)
        let stream = try file.record()
        #expect(try stream.has(2))
        _ = try stream.stop()
        let end = try stream.told()
        #expect(members("segments", in: end).first == "2" && members("lost", in: end).first == "1")
    }
}
