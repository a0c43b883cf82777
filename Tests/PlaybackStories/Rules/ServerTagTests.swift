import FixtureCDN
import ScenarioSupport
import Testing

/// Servers of one origin that have strong entity tags of their own for the same file.
extension Stories {
    @Suite(.tags(.crowded)) struct ServerTagTests {
        @Test func `a seek gets its part from another server, and what is stored stays`() throws {
            let stage = try ServerStage()
            try stage.store("bytes=0-399999")
            stage.use("b")
            let seek = try stage.ask("bytes=4000000-4099999")
            expectPart(stage.isPart(seek, from: 4_000_000, count: 100_000))
            #expect(
                stage.takeLog() == [
                    "bytes=4000000-4099999 if a -> 200", "bytes=4000000-4099999 -> 206",
                ])
            #expect(seek["ETag"] == "\"b\"")
            #expect(seek["Cache-Status"]?.contains("detail=unproven") == true)
            let stored = try stage.ask("bytes=0-399999")
            expectPart(stage.isPart(stored, from: 0, count: 400_000))
            #expect(stored["ETag"] == "\"a\"" && stage.takeLog().isEmpty)
        }

        @Test func `the part is stored if the second request gets to the first server again`()
            throws
        {
            let stage = try ServerStage()
            try stage.store("bytes=0-399999")
            stage.use("b", "a")
            let seek = try stage.ask("bytes=4000000-4099999")
            expectPart(stage.isPart(seek, from: 4_000_000, count: 100_000))
            #expect(seek["ETag"] == "\"a\"" && stage.takeLog().count == 2)
            for range in ["bytes=0-399999", "bytes=4000000-4099999"] {
                #expect(try stage.ask(range).complete)
            }
            #expect(stage.takeLog().isEmpty)
        }

        @Test func `a part that is longer than all that is stored takes its place`() throws {
            let stage = try ServerStage()
            try stage.store("bytes=0-399999")
            stage.use("b")
            for requests in [2, 0] {
                let seek = try stage.ask("bytes=4000000-4999999")
                expectPart(stage.isPart(seek, from: 4_000_000, count: 1_000_000))
                #expect(seek["ETag"] == "\"b\"" && stage.takeLog().count == requests)
            }
        }

        @Test func `servers that alternate cost each seek two requests, and discard nothing`()
            throws
        {
            let stage = try ServerStage()
            try stage.store("bytes=0-399999")
            stage.use("b", "a", "b", "b", "a", "b", "a", "b", "b", "a")
            for start in stride(from: 2_000_000, to: 5_000_000, by: 500_000) {
                let seek = try stage.ask("bytes=\(start)-\(start + 99_999)")
                expectPart(stage.isPart(seek, from: start, count: 100_000))
                #expect((1...2).contains(stage.takeLog().count))
            }
            let stored = try stage.ask("bytes=0-399999")
            #expect(stored["ETag"] == "\"a\"" && stage.takeLog().isEmpty)
        }

        @Test func `a body is continued by another server that has the same bytes before the rest`()
            throws
        {
            let stage = try ServerStage()
            try stage.store("bytes=0-1999999")
            stage.use("b")
            let part = try stage.ask("bytes=1900000-2099999")
            expectPart(stage.isPart(part, from: 1_900_000, count: 200_000))
            #expect(
                stage.takeLog() == [
                    "bytes=2000000-2099999 if a -> 200", "bytes=1991808-2099999 -> 206",
                ])
            let again = try stage.ask("bytes=0-2099999")
            expectPart(stage.isPart(again, from: 0, count: 2_100_000))
            #expect(stage.takeLog().isEmpty)
        }

        @Test func `a body that another server has continued takes one request for each part`()
            throws
        {
            let stage = try ServerStage()
            try stage.store("bytes=0-1999999")
            stage.use("b")
            try stage.store("bytes=1900000-2099999")
            let part = try stage.ask("bytes=2000000-2199999")
            expectPart(stage.isPart(part, from: 2_000_000, count: 200_000))
            #expect(stage.takeLog() == ["bytes=2091808-2199999 -> 206"])
            let again = try stage.ask("bytes=0-2199999")
            expectPart(stage.isPart(again, from: 0, count: 2_200_000))
            #expect(stage.takeLog().isEmpty)
        }

        @Test func `a file that has changed is not mixed, and its former version is discarded`()
            throws
        {
            let stage = try ServerStage()
            try stage.store("bytes=0-1999999")
            stage.use("b")
            stage.change()
            let seek = try stage.ask("bytes=2000000-2099999")
            expectPart(stage.isPart(seek, from: 2_000_000, count: 100_000))
            #expect(seek["ETag"] == "\"b\"" && stage.takeLog().count <= 3)
            let start = try stage.ask("bytes=0-99999")
            expectPart(stage.isPart(start, from: 0, count: 100_000))
            #expect(start["ETag"] == "\"b\"")
        }
    }
}

/// Only the verdict, since a failed comparison of megabytes would be printed byte by byte.
private func expectPart(_ isPart: Bool, sourceLocation: SourceLocation = #_sourceLocation) {
    #expect(isPart, sourceLocation: sourceLocation)
}

/// A daemon before an origin of one film, whose servers answer in turn.
private final class ServerStage: Sendable {
    private static let length = 6_000_000

    private struct State {
        /// The entity tags of the servers that answer the next requests; the last one goes on.
        var tags = ["a"]
        var version = 0
        var log: [String] = []
    }

    private let origin: AnsweringOrigin
    private let state: Shared<State>
    private let story: Story

    init() throws {
        let state = Shared(State())
        self.state = state
        origin = try AnsweringOrigin { request, _ in ServerStage.answer(request, state) }
        story = try Story(["--min-free", "0"])
    }

    deinit { origin.stop() }

    private static func bytes(_ version: Int, _ part: Range<Int>) -> [UInt8] {
        FixtureCDN.syntheticBytes("film\(version)", part)
    }

    private static func answer(
        _ request: WireHead, _ state: Shared<State>
    ) -> AnsweringOrigin.Answer {
        var name = ""
        state.update { now in
            name = now.tags[0]
            if now.tags.count > 1 { now.tags.removeFirst() }
        }
        let tag = "\"\(name)\""
        let asked = request["Range"]
        let condition = request["If-Range"]
        var (status, part) = (200, 0..<length)
        if let asked, condition == nil || condition == tag,
            case .part(let wanted) = WireRange.parse(asked, length: length)
        {
            (status, part) = (206, wanted)
        }
        let told = condition.map { " if \($0.filter { $0 != "\"" })" } ?? ""
        state.update { $0.log.append("\(asked ?? "whole")\(told) -> \(status)") }
        var fields: [WireHead.Field] = [
            ("Content-Type", "video/mp2t"), ("Accept-Ranges", "bytes"), ("ETag", tag),
        ]
        if status == 206 {
            let range = "bytes \(part.lowerBound)-\(part.upperBound - 1)/\(length)"
            fields.append(("Content-Range", range))
        }
        return .response(status, fields, bytes(state.value.version, part))
    }

    /// Has these servers answer the next requests, and the last one all that follow.
    func use(_ tags: String...) { state.update { $0.tags = tags } }

    /// Changes the content of the file.
    func change() { state.update { $0.version += 1 } }

    /// Takes the lines about requests since the last call.
    func takeLog() -> [String] {
        var log: [String] = []
        state.update {
            log = $0.log
            $0.log = []
        }
        return log
    }

    func ask(_ range: String) throws -> PlayerResponse {
        let url = story.url(for: origin.baseURL + "/film.ts")
        return try story.player().get(url, headers: [("Range", range)])
    }

    /// Has a part stored, and waits until no transfer runs.
    func store(_ range: String) throws {
        #expect(try ask(range).complete)
        #expect(try story.settled("slots_in_use") { $0 == 0 } == 0)
        _ = takeLog()
    }

    /// Whether a response has these bytes of the present version.
    func isPart(_ answer: PlayerResponse, from start: Int, count: Int) -> Bool {
        answer.status == 206 && answer.complete
            && answer.body == Self.bytes(state.value.version, start..<start + count)
    }
}
