import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// Bodies and statuses under odd origins and small caches: correct and complete, or visibly broken.
extension Stories {
    @Suite(.tags(.timed)) struct ExactBytesTests {
        @Test(arguments: ["1MB", "2MB"], [OriginTraits.Validator.strong, .date, .weak, .none])
        func `a coded body that outgrows the cache arrives whole through a mount`(
            cacheSize: String, validator: OriginTraits.Validator
        ) throws {
            let stage = try ExactStage(cacheSize) { traits in
                traits.validator = validator
                traits.framing = .chunked
                traits.isEncoded = true
                traits.lengths = [2_700_000]
            }
            #expect(try stage.isWhole(isMounted: true))
            #expect(stage.origin.requests(0) == 1)
        }

        @Test(arguments: [OriginTraits.Framing.chunked, .close])
        func `a body of unknown length that outgrows the cache arrives whole`(
            framing: OriginTraits.Framing
        ) throws {
            let stage = try ExactStage("1MB") { traits in
                traits.validator = .weak
                traits.framing = framing
                traits.lengths = [5_000_000]
            }
            for isMounted in [false, true] { #expect(try stage.isWhole(isMounted: isMounted)) }
            #expect(stage.origin.requests(0) == 2)
            // Passed-on bytes are freed, and the store continues.
            let player = stage.player()
            #expect(try player.get("/api/health").status == 200)
        }

        @Test(arguments: [OriginTraits.Framing.length, .chunked], [false, true])
        func
            `a range far into a body is answered although the origin ignores ranges and nothing fits`(
                framing: OriginTraits.Framing, isMounted: Bool
            ) throws
        {
            let stage = try ExactStage("1MB") { traits in
                traits.takesRanges = false
                traits.framing = framing
                traits.lengths = [12_000_000]
            }
            let answer = try stage.ask(isMounted: isMounted, range: "bytes=11000000-11000999")
            #expect(answer.status == 206 && answer.complete)
            #expect(answer.body.elementsEqual(stage.body[11_000_000...11_000_999]))
            #expect(stage.origin.requests(0) <= 3)
        }

        @Test(arguments: [false, true])
        func `a range that cannot be satisfied fails nobody else`(isMounted: Bool) throws {
            let stage = try ExactStage { traits in
                traits.lengths = [500_000]
                traits.delay = 400
            }
            let beyond = Background { try stage.ask(isMounted: isMounted, range: "bytes=999999-") }
            #expect(eventually { stage.origin.requests(0) == 1 })
            let others = try inParallel(2) { index in
                try stage.ask(isMounted: isMounted, range: index == 0 ? nil : "bytes=1000-1999")
            }
            #expect(others[0].status == 200 && others[0].body == stage.body)
            #expect(
                others[1].status == 206 && others[1].body.elementsEqual(stage.body[1000..<2000]))
            #expect(try beyond.value().status == 416)
        }

        @Test func `HEAD of an empty file is answered like GET`() throws {
            let stage = try ExactStage { $0.lengths = [0] }
            for isMounted in [false, true] {
                #expect(try stage.ask(isMounted: isMounted, method: "HEAD").status == 200)
                #expect(try stage.ask(isMounted: isMounted).status == 200)
            }
        }

        @Test func `HEAD never gets a 304`() throws {
            let stage = try ExactStage { traits in
                traits.lengths = [20_000]
                traits.cacheControl = "no-cache"
            }
            #expect(try stage.ask(isMounted: true).body == stage.body)
            #expect(try stage.ask(isMounted: true).body == stage.body)
            let head = try stage.ask(isMounted: true, method: "HEAD")
            #expect(head.status == 200 && head["Content-Length"] == "20000")
        }

        /// A body of 300,000 bytes whose length and ranges are unknown, and that takes 200 ms.
        private func slowBody(_ framing: OriginTraits.Framing) throws -> ExactStage {
            try ExactStage { traits in
                traits.framing = framing
                traits.takesRanges = false
                traits.lengths = [300_000]
                traits.pace = 1_500_000
            }
        }

        @Test(arguments: [OriginTraits.Framing.chunked, .close], [false, true])
        func `a range beyond the end of a body of unknown length is a 416`(
            framing: OriginTraits.Framing, isMounted: Bool
        ) throws {
            let stage = try slowBody(framing)
            let answer = try stage.ask(isMounted: isMounted, range: "bytes=400000-400999")
            #expect(answer.status == 416)
        }

        @Test(arguments: [OriginTraits.Framing.chunked, .close], [false, true])
        func `a range that ends behind a body of unknown length is stated up to the body's end`(
            framing: OriginTraits.Framing, isMounted: Bool
        ) throws {
            let stage = try slowBody(framing)
            let answer = try stage.ask(isMounted: isMounted, range: "bytes=250000-310000")
            #expect(answer.status == 206 && answer.complete)
            #expect(answer["Content-Range"] == "bytes 250000-299999/300000")
            #expect(answer.body.elementsEqual(stage.body[250_000...]))
        }

        @Test(arguments: [100_000..<400_001, 0..<(1 << 20)], [false, true])
        func `a longer range that ends behind a short body is stated up to the body's end`(
            range: Range<Int>, isMounted: Bool
        ) throws {
            let stage = try slowBody(.chunked)
            let text = "bytes=\(range.lowerBound)-\(range.upperBound - 1)"
            let answer = try stage.ask(isMounted: isMounted, range: text)
            #expect(answer.status == 206 && answer.complete)
            #expect(answer["Content-Range"] == "bytes \(range.lowerBound)-299999/300000")
            #expect(answer.body.elementsEqual(stage.body[range.lowerBound...]))
        }

        @Test(arguments: [OriginTraits.Validator.strong, .none])
        func `a body whose end was reached is not requested again`(
            validator: OriginTraits.Validator
        ) throws {
            let stage = try ExactStage { traits in
                traits.validator = validator
                traits.framing = .close
                traits.lengths = [300_000]
            }
            // The player leaves with the last byte, before the end of the connection.
            stage.origin.fail(0, [.lingering(6_000)])
            let first = try stage.player().open(stage.url(isMounted: false))
            #expect(try first.read(300_000).count == 300_000)
            first.close()
            #expect(try stage.isIdle())
            for _ in 0..<3 { #expect(try stage.isWhole(isMounted: false)) }
            let before = stage.origin.takeLog()
            for _ in 0..<3 { #expect(try stage.isWhole(isMounted: false)) }
            let ends = stage.origin.takeLog().filter { $0.contains("bytes=3") }
            #expect(ends.isEmpty, "\(before) \(ends)")
        }

        @Test(arguments: ["bytes=-17166", "bytes=1000-50999"])
        func `a coded part that ends with its connection is passed on whole`(range: String) throws {
            let stage = try ExactStage { traits in
                traits.framing = .close
                traits.isEncoded = true
                traits.lengths = [90_000]
            }
            let answer = try stage.ask(isMounted: true, range: range)
            guard case .part(let part) = WireRange.parse(range, length: 90_000) else { return }
            #expect(answer.status == 206 && answer.complete)
            #expect(answer.body.elementsEqual(stage.body[part]))
            #expect(stage.origin.requests(0) == 1)
        }

        @Test func `six players that share a no-store body all get it`() throws {
            let stage = try ExactStage { traits in
                traits.framing = .close
                traits.takesRanges = false
                traits.validator = .none
                traits.cacheControl = "no-store"
                traits.lengths = [6_000_000]
                traits.pace = 40_000_000
            }
            for _ in 0..<4 {
                let answers = try inParallel(6) { index in
                    // Some arrive while the first bytes are already being freed.
                    usleep(UInt32(index) * 8_000)
                    return try stage.ask(isMounted: false)
                }
                let lengths = answers.map(\.body.count)
                #expect(answers.allSatisfy { $0.complete && $0.body == stage.body }, "\(lengths)")
            }
        }

        @Test(arguments: [OriginTraits.Validator.none, .weak])
        func `a body that was cut is never continued with another version of its length`(
            validator: OriginTraits.Validator
        ) throws {
            let stage = try ExactStage { traits in
                traits.validator = validator
                traits.lengths = [400_000]
            }
            stage.origin.fail(0, [.cut(150_000)])
            stage.origin.changeAfterNextAnswer(0)
            let leaving = try stage.player().open(stage.url(isMounted: false))
            #expect(try leaving.read(100_000).count == 100_000)
            _ = try leaving.readRest()
            let versions = [0, 1].map { stage.origin.body(0, $0) }
            for _ in 0..<3 {
                let answer = try stage.ask(isMounted: false)
                #expect(!answer.complete || versions.contains(answer.body))
            }
            #expect(try stage.ask(isMounted: false).body == versions[1])
        }

        @Test func `a body that was cut is resumed where its bytes prove the version`() throws {
            let stage = try ExactStage { traits in
                traits.validator = .none
                traits.lengths = [400_000]
            }
            stage.origin.fail(0, [.cut(150_000)])
            #expect(try stage.isWhole(isMounted: false))
            let log = stage.origin.takeLog()
            #expect(log.count == 2 && log[1].contains("bytes=141808-"), "\(log)")
        }
    }
}

/// A daemon before an origin with one odd resource.
private final class ExactStage: Sendable {
    let origin: ChangingOrigin
    private let daemon: DaemonProcess
    private let folder: TemporaryFolder

    init(_ cacheSize: String = "100MB", _ change: (inout OriginTraits) -> Void) throws {
        var traits = OriginTraits()
        change(&traits)
        origin = try ChangingOrigin(seed: 1, [traits])
        folder = try TemporaryFolder()
        daemon = try Story.serve(
            folder.file("cache"),
            [
                "--cache-size", cacheSize, "--min-free", "0", "--mount",
                "/mt/=\(origin.baseURL)/o/",
            ])
    }

    deinit {
        daemon.kill(SIGKILL)
        _ = try? daemon.waitForExit()
        origin.stop()
    }

    var body: [UInt8] { origin.body(0, origin.version(0)) }

    func player() -> ScriptedPlayer { ScriptedPlayer(daemon.baseURL, deadline: .seconds(20)) }

    func url(isMounted: Bool) -> String {
        isMounted ? "/mt/subject0.ts" : "/" + origin.baseURL + origin.path(0)
    }

    func ask(
        isMounted: Bool, method: String = "GET", range: String? = nil
    ) throws -> PlayerResponse {
        try player().get(
            url(isMounted: isMounted), headers: range.map { [("Range", $0)] } ?? [],
            method: method)
    }

    /// Waits until no transfer from the origin runs.
    func isIdle() throws -> Bool {
        try eventually {
            try player().get("/api/stats").text.contains("\"slots_in_use\":0")
        }
    }

    /// Whether a complete body is correct, and ends as it should.
    func isWhole(isMounted: Bool) throws -> Bool {
        let answer = try ask(isMounted: isMounted)
        return answer.status == 200 && answer.complete && answer.body == body
    }
}
