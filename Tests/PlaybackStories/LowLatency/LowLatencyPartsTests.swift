import FixtureCDN
import ScenarioSupport
import Testing

/// Parts: streamed as they are made, fetched once, and assembled into their segment.
extension Stories {
    @Suite(.tags(.timed)) struct LowLatencyPartsTests {}
}

extension Stories.LowLatencyPartsTests {
    /// The link of the announced part.
    private func hint(_ stage: LowLatencyStage) throws -> String {
        let text = try stage.story.follow(stage.list).text
        let line = try #require(text.split(separator: "\n").first { $0.contains("PRELOAD-HINT") })
        return try #require(links(String(line)).first)
    }

    @Test
    func `an announced part is requested once, and streamed to all as it grows`() throws {
        let stage = try LowLatencyStage()
        let (segment, part) = stage.stream.position
        let link = try hint(stage)
        let streams = try (0..<3).map { _ in try stage.story.player().open(link) }
        #expect(eventually { stage.story.cdn.activeRequests == 1 })
        let bytes = stage.stream.bytes(ofPart: part, in: segment)
        stage.stream.advance(quarters: 1)
        let first = try streams.map { try $0.read(1_000) }
        #expect(first.allSatisfy { $0 == Array(bytes[..<1_000]) })
        stage.stream.advance(quarters: 3)
        #expect(try streams.allSatisfy { try $0.readRest() == Array(bytes[1_000...]) })
        #expect(stage.story.cdn.requestCount("/ll/video/s\(segment).p\(part).ts") == 1)
        #expect(try stage.story.follow(link).body == bytes)
        #expect(stage.story.cdn.requestCount("/ll/video/s\(segment).p\(part).ts") == 1)
    }

    @Test func `an announced part takes no slot while it is held`() throws {
        let stage = try LowLatencyStage(["--slots", "1"])
        let link = try hint(stage)
        let held = stage.ask(link)
        #expect(eventually { stage.story.cdn.activeRequests == 1 })
        let media = try #require(
            uriLines(try stage.story.follow(stage.list).text).first { $0.hasPrefix("/s/") })
        #expect(try stage.story.follow(media).status == 200)
        stage.stream.advance()
        #expect(try held[0].value().status == 200)
    }

    @Test func `an announced part takes its host's only connection, and a segment waits`() throws {
        let stage = try LowLatencyStage(["--host-limit", "1"])
        let link = try hint(stage)
        let media = try #require(
            uriLines(try stage.story.follow(stage.list).text).first { $0.hasPrefix("/s/") })
        let held = stage.ask(link)
        #expect(eventually { stage.story.cdn.activeRequests == 1 })
        let waiting = stage.ask(media)
        #expect(try stage.story.settled("transfers_waiting") { $0 == 1 } == 1)
        stage.stream.advance()
        #expect(try held[0].value().status == 200)
        #expect(try waiting[0].value().body == stage.stream.bytes(ofSegment: 0))
        #expect(stage.story.cdn.peakConcurrentRequests == 1)
    }

    @Test func `parts that are ranges make up their segment, and no byte comes twice`() throws {
        let stage = try LowLatencyStage { $0.partsAreRanges = true }
        let number = stage.stream.position.segment
        var segment = ""
        for part in 0..<4 {
            stage.stream.advance()
            let text = try stage.story.follow("\(stage.list)?_HLS_msn=\(number)&_HLS_part=\(part)")
                .text
            let line = try #require(text.split(separator: "\n").last { $0.contains("PART:") })
            segment = try #require(links(String(line)).first)
            let range = try #require(
                line.split(separator: "BYTERANGE=\"").last?.prefix { $0 != "\"" })
            let numbers = range.split(separator: "@").compactMap { Int($0) }
            let field = "bytes=\(numbers[1])-\(numbers[1] + numbers[0] - 1)"
            let answer = try stage.story.follow(segment, headers: [("Range", field)])
            #expect(answer.status == 206)
            #expect(answer.body == stage.stream.bytes(ofPart: part, in: number))
        }
        let path = "/ll/video/s\(number).ts"
        #expect(stage.story.cdn.requestCount(path) == 4)
        let whole = try #require(
            uriLines(try stage.story.follow(stage.list).text)
                .last { originName($0) == "s\(number).ts" })
        let answer = try stage.story.follow(whole)
        #expect(answer.status == 200 && answer.body == stage.stream.bytes(ofSegment: number))
        #expect(stage.story.cdn.requestCount(path) == 4)
        #expect(stage.story.cdn.firstByteServedTwice(path) == nil)
        #expect(answer["Cache-Status"]?.contains("hit") == true)
    }

    /// A validator of the growing file would make the origin send all of it again.
    @Test func `the rest of a segment that has grown is fetched ahead without what is stored`()
        throws
    {
        let stage = try LowLatencyStage(["--look-ahead", "30"]) {
            $0.partsAreRanges = true
            $0.firstParts = 9
        }
        let number = stage.stream.position.segment
        let path = "/ll/video/s\(number).ts"
        let link = try #require(
            links(try stage.story.follow(stage.list).text)
                .last { originName($0) == "s\(number).ts" })
        let part = stage.stream.bytes(ofPart: 0, in: number)
        let field = [("Range", "bytes=0-\(part.count - 1)")]
        #expect(try stage.story.follow(link, headers: field).body == part)
        stage.stream.advance(parts: 3)
        var segments: [String] = []
        let isWhole = try eventually {
            segments = uriLines(try stage.story.follow(stage.list).text)
            return segments.last.flatMap(originName) == "s\(number).ts"
        }
        #expect(isWhole)
        _ = try stage.story.follow(segments[segments.count - 2])
        #expect(eventually { stage.story.cdn.requestCount(path) == 2 })
        #expect(
            try stage.story.follow(segments[segments.count - 1]).body
                == stage.stream.bytes(ofSegment: number))
        #expect(stage.story.cdn.requestCount(path) == 2)
        #expect(stage.story.cdn.firstByteServedTwice(path) == nil)
    }

    @Test(arguments: [nil, "bytes=0-"])
    func `a segment that is complete has its length, whoever requests it first`(_ range: String?)
        throws
    {
        let stage = try LowLatencyStage { $0.partsAreRanges = true }
        let link = try #require(uriLines(try stage.story.follow(stage.list).text).last)
        let answer = try stage.story.follow(link, headers: range.map { [("Range", $0)] } ?? [])
        let bytes = stage.stream.bytes(ofSegment: 1)
        #expect(answer.body == bytes && answer["Content-Length"] == "\(bytes.count)")
        let whole = "bytes 0-\(bytes.count - 1)/\(bytes.count)"
        #expect(answer["Content-Range"] == (range == nil ? nil : whole))
    }

    @Test func `a segment that became whole as its stream ended has its length`() throws {
        let stage = try LowLatencyStage {
            $0.partsAreRanges = true
            $0.firstParts = 9
        }
        let number = stage.stream.position.segment
        #expect(
            try partNames(stage.story.follow(stage.list)).contains("s\(number).ts"))
        stage.stream.advance(parts: 3)
        stage.stream.end()
        let hasEnded = try eventually {
            try stage.story.follow(stage.list).text.contains("#EXT-X-ENDLIST")
        }
        #expect(hasEnded)
        let link = try #require(uriLines(try stage.story.follow(stage.list).text).last)
        let answer = try stage.story.follow(link)
        let bytes = stage.stream.bytes(ofSegment: number)
        #expect(answer.body == bytes && answer["Content-Length"] == "\(bytes.count)")
        #expect(stage.story.cdn.requestCount("/ll/video/s\(number).ts") == 1)
    }

    @Test func `a segment is complete for players after its parts left the playlist`() throws {
        let stage = try LowLatencyStage { $0.partsAreRanges = true }
        let text = try stage.story.follow(stage.list).text
        let link = try #require(uriLines(text).last)
        let length = stage.stream.bytes(ofSegment: 1).count
        let half = [
            ("Range", "bytes=0-\(length / 2 - 1)"), ("Range", "bytes=\(length / 2)-\(length - 1)"),
        ]
        for field in half { #expect(try stage.story.follow(link, headers: [field]).status == 206) }
        stage.stream.advance(parts: 16)
        let isGone = try eventually {
            try !partNames(stage.story.follow(stage.list)).contains("s1.ts")
        }
        #expect(isGone)
        #expect(try stage.story.follow(link).body == stage.stream.bytes(ofSegment: 1))
        #expect(stage.story.cdn.firstByteServedTwice("/ll/video/s1.ts") == nil)
    }

    @Test(arguments: ["", "9007199254740991"])  // RFC 8673
    func `an announced range without an end is streamed to the end of its part`(_ end: String)
        throws
    {
        let stage = try LowLatencyStage {
            $0.partsAreRanges = true
            $0.firstParts = 9
        }
        let (number, part) = stage.stream.position
        let link = try hint(stage)
        let start = stage.stream.bytes(ofPart: 0, in: number).count
        let players = (0..<2).map { _ in stage.story.player() }
        let streams = try players.map {
            try $0.open(link, headers: [("Range", "bytes=\(start)-\(end)")])
        }
        #expect(eventually { stage.story.cdn.activeRequests == 1 })
        let bytes = stage.stream.bytes(ofPart: part, in: number)
        stage.stream.advance(quarters: 1)
        for stream in streams {
            let head = try stream.readHead()
            #expect(head.status == 206)
            #expect(head["Content-Range"] == "bytes \(start)-9007199254740991/*")
            #expect(try stream.read(500) == Array(bytes[..<500]))
        }
        stage.stream.advance(quarters: 3)
        #expect(try streams.allSatisfy { try $0.readRest() == Array(bytes[500...]) })
        #expect(streams.allSatisfy { $0.broken == nil })
        #expect(stage.story.cdn.requestCount("/ll/video/s\(number).ts") == 1)
    }

    @Test func `a part that never comes is broken, not short`() throws {
        let stage = try LowLatencyStage()
        let stream = try stage.story.player().open(try hint(stage))
        #expect(eventually { stage.story.cdn.activeRequests == 1 })
        stage.stream.advance(quarters: 2)
        #expect(try stream.read(1_000).count == 1_000)
        stage.story.cdn.stop()
        _ = try stream.readRest()
        #expect(stream.broken != nil)
    }

    @Test
    func `the rest of a cut growing segment is requested, not taken for the whole`()
        throws
    {
        let origin = try ScriptedOrigin()
        defer { origin.stop() }
        let body = FixtureCDN.syntheticBytes("growing", 0..<3_000)
        let list = """
            #EXTM3U
            #EXT-X-TARGETDURATION:2
            #EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=1.5
            #EXT-X-PART-INF:PART-TARGET=0.5
            #EXTINF:2,
            s0.ts
            #EXT-X-PART:DURATION=0.5,URI="s1.ts",BYTERANGE="1000@0"
            #EXT-X-PRELOAD-HINT:TYPE=PART,URI="s1.ts",BYTERANGE-START=1000
            """
        origin.answer("/ll/list.m3u8", .respond(200, [], Array(list.utf8)))
        /// A response without a stated end; without its last chunk it is incomplete.
        func part(from start: Int, to end: Int, isCut: Bool) -> [UInt8] {
            let head =
                "HTTP/1.1 206 OK\r\nContent-Range: bytes \(start)-9007199254740991/*\r\n"
                + "Transfer-Encoding: chunked\r\n\r\n\(String(end - start, radix: 16))\r\n"
            return Array(head.utf8) + body[start..<end]
                + Array((isCut ? "\r\n" : "\r\n0\r\n\r\n").utf8)
        }
        origin.answer("/ll/s1.ts", .send(part(from: 1_000, to: 1_500, isCut: true)), .close)
        origin.answer("/ll/s1.ts", .respond(410))
        origin.answer("/ll/s1.ts", .send(part(from: 1_500, to: 3_000, isCut: false)))
        let story = try Story()
        let text = try story.player().get(story.url(for: origin.baseURL + "/ll/list.m3u8")).text
        let line = try #require(text.split(separator: "\n").first { $0.contains("PRELOAD-HINT") })
        let link = try #require(links(String(line)).first)
        let open = [("Range", "bytes=1000-")]
        let broken = try story.follow(link, headers: open)
        #expect(!broken.complete && broken.body == Array(body[1_000..<1_500]))
        let rest = try story.follow(link, headers: open)
        #expect(rest.complete && rest.body == Array(body[1_000...]))
        #expect(origin.requests.last?["Range"] == "bytes=1500-")
    }
}
