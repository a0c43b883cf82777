import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// A system limit on the size of the daemon's files.
extension Stories {
    @Suite(.tags(.timed)) struct FileSizeLimitTests {}
}

extension Stories.FileSizeLimitTests {
    @Test(
        arguments: [1_048_576, 1_000_001], [OriginTraits.Framing.length, .chunked, .close])
    func `a body longer than a file may be reaches the player whole`(
        limit: Int, framing: OriginTraits.Framing
    ) throws {
        let stage = try ShortFileStage(limit) { traits in
            traits.framing = framing
            traits.lengths = [7_654_321]
        }
        for isMounted in [false, true] {
            let answer = try stage.ask(isMounted: isMounted)
            #expect(answer.status == 200 && answer.complete && answer.body == stage.body)
        }
        // For a body that ends with its connection the origin is asked for its end.
        #expect(stage.origin.requests(0) == (framing == .close ? 4 : 2))
    }

    @Test(arguments: [OriginTraits.Validator.strong, .none])
    func `ranges of a body longer than a file may be are answered in full`(
        validator: OriginTraits.Validator
    ) throws {
        let stage = try ShortFileStage(1_048_576) { traits in
            traits.validator = validator
            traits.lengths = [7_000_000]
        }
        let ranges = [
            0..<2_500_000, 900_000..<1_200_000, 3_000_000..<7_000_000, 6_999_999..<7_000_000,
        ]
        for isMounted in [false, true] {
            for range in ranges {
                let asked = "bytes=\(range.lowerBound)-\(range.upperBound - 1)"
                let answer = try stage.ask(isMounted: isMounted, range: asked)
                #expect(
                    answer.status == 206 && answer.complete
                        && answer.body.elementsEqual(stage.body[range]), "\(asked)")
            }
        }
        let last = try stage.ask(isMounted: false, range: "bytes=-3000000")
        #expect(last.status == 206 && last.body.elementsEqual(stage.body.suffix(3_000_000)))
    }

    /// With the lower limit too many files lie between the two readers, and the faster one waits.
    @Test(arguments: [1_048_576, 262_144])
    func `two readers at different speeds get all of a body longer than a file may be`(
        limit: Int
    ) throws {
        let stage = try ShortFileStage(limit) { traits in
            traits.validator = .none
            traits.lengths = [16_000_000]
        }
        let slow = try stage.open()
        let first = try slow.read(100_000)
        let fast = Background { try stage.ask(isMounted: false) }
        if limit > 1_000_000 { #expect(try fast.value().body == stage.body) }
        var body = first
        while !slow.isDone { body += try slow.read(200_000) }
        #expect(slow.broken == nil && body == stage.body)
        let other = try fast.value()
        #expect(other.complete && other.body == stage.body)
        #expect(eventually { stage.openBodies == 0 }, "files of passed-on bodies stay open")
    }

    @Test func `shorter bodies are kept, and nothing incomplete is taken for whole`() throws {
        let stage = try ShortFileStage(1_048_576) { traits in
            traits.framing = .chunked
            traits.lengths = [3_000_000]
        }
        let long = try stage.open()
        #expect(try long.read(1_500_000).count == 1_500_000)
        let story = stage.story
        let short = segment("short", 700_000)
        #expect(isContent(try story.get(short).body, of: short))
        #expect(try story.get(short)["Cache-Status"]?.contains("hit") == true)
        #expect(try long.readRest().count == 1_500_000)
        #expect(story.daemon.standardError.contains("bodies longer than 1048576 bytes"))
        try story.restart()
        #expect(try story.get(short)["Cache-Status"]?.contains("hit") == true)
        let answer = try stage.ask(isMounted: false)
        #expect(answer.complete && answer.body == stage.body)
        #expect(answer["Cache-Status"]?.contains("hit") == false)
        #expect(try story.stat("storage_failures_total") == 0)
    }

    @Test(arguments: [0, 1_024, 200_000])
    func `a limit too low for a store is an explained start-up error`(limit: Int) throws {
        let folder = try TemporaryFolder()
        let result = try Tool.run([
            "prlimit", "--fsize=\(limit):\(limit)", try DaemonProcess.builtBinary(), "serve",
            "--port", "0", "--cache-dir", folder.file("cache"),
        ])
        #expect(result.status == 6, "\(result.status) \(result.stderr)")
        #expect(result.stderr.contains("may write files of \(limit) bytes, and needs at least"))
    }
}

/// A daemon with a limited file size, before an origin with one resource.
private final class ShortFileStage: Sendable {
    let origin: ChangingOrigin
    let story: Story

    init(_ limit: Int, _ change: (inout OriginTraits) -> Void) throws {
        var traits = OriginTraits()
        change(&traits)
        origin = try ChangingOrigin(seed: 1, [traits])
        story = try Story(
            ["--min-free", "0", "--mount", "/mt/=\(origin.baseURL)/o/"],
            prefix: ["prlimit", "--fsize=\(limit):\(limit)"])
    }

    deinit { origin.stop() }

    var body: [UInt8] { origin.body(0, origin.version(0)) }

    func ask(isMounted: Bool, range: String? = nil) throws -> PlayerResponse {
        let player = ScriptedPlayer(story.daemon.baseURL, deadline: .seconds(20))
        let path = isMounted ? "/mt/subject0.ts" : "/" + origin.baseURL + origin.path(0)
        return try player.get(path, headers: range.map { [("Range", $0)] } ?? [])
    }

    func open() throws -> PlayerStream {
        let player = ScriptedPlayer(story.daemon.baseURL, deadline: .seconds(20))
        player.receiveBuffer = 64 << 10
        return try player.open("/" + origin.baseURL + origin.path(0))
    }

    /// Unnamed files that the daemon has open.
    var openBodies: Int {
        let folder = "/proc/\(story.daemon.pid)/fd"
        return listFolder(folder).count { name in
            var target = [CChar](repeating: 0, count: 4_096)
            let count = readlink("\(folder)/\(name)", &target, target.count - 1)
            let text = String(
                decoding: target.prefix(max(0, count)).map(UInt8.init(bitPattern:)), as: UTF8.self)
            return text.contains("/new/") && text.hasSuffix("(deleted)")
        }
    }
}
