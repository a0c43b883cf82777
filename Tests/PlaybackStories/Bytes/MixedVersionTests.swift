import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// An origin without validators whose content changes and keeps its length: one response to a
/// player has one version, or is visibly broken.
extension Stories {
    @Suite(.tags(.crowded)) struct MixedVersionTests {
        /// Two spans of one version are stored; the hole between them is of the next one.
        @Test(arguments: [false, true])
        func `a hole is not filled with another version than what follows it`(
            takesRanges: Bool
        ) throws {
            let stage = try VersionStage { $0.takesRanges = takesRanges }
            try stage.store(3_000_000..<3_400_000)
            stage.origin.change(0)
            // Nothing stored precedes this; the bytes that follow are of the former version.
            let middle = try stage.ask("bytes=2500000-3399999")
            expectOne(stage.isOneVersion(middle, from: 2_500_000))
            for range in ["bytes=0-", "bytes=100000-3200000", "bytes=2900000-3100000"] {
                let start = Int(range.dropFirst(6).prefix { $0 != "-" }) ?? 0
                expectOne(stage.isOneVersion(try stage.ask(range), from: start))
            }
            let whole = try stage.ask(nil)
            expectOne(stage.isOneVersion(whole, from: 0))
        }

        @Test func `a hole is filled where its end proves the version`() throws {
            let stage = try VersionStage { _ in }
            try stage.store(3_000_000..<3_400_000)
            _ = stage.origin.takeLog()
            let answer = try stage.ask("bytes=2500000-3399999")
            expectOne(
                answer.complete && answer.body.elementsEqual(stage.body[2_500_000..<3_400_000]))
            let log = stage.origin.takeLog()
            #expect(log.count == 1 && log[0].contains("bytes=2500000-3008191 "), "\(log)")
            let again = try stage.ask("bytes=2500000-3399999")
            expectOne(again.body == answer.body)
            #expect(stage.origin.takeLog().isEmpty)
        }

        @Test func `a running fill is not mixed with the answer to a seek`() throws {
            let stage = try VersionStage { traits in
                traits.pace = 1_000_000
            }
            let running = try stage.open("bytes=0-")
            let first = try running.read(300_000)
            stage.origin.change(0)
            let seek = try stage.ask("bytes=4000000-4099999")
            expectOne(stage.isOneVersion(seek, from: 4_000_000))
            let rest = try running.readRest()
            let body = first + rest
            expectOne(stage.isPart(body, from: 0))
            expectOne(stage.isOneVersion(try stage.ask(nil), from: 0))
            expectOne(stage.isOneVersion(try stage.ask("bytes=3900000-4200000"), from: 3_900_000))
        }

        @Test(arguments: [false, true])
        func `a download does not mix stored bytes with another version`(
            isStoredAtFront: Bool
        ) throws {
            let stage = try VersionStage { _ in }
            try stage.store(isStoredAtFront ? 0..<500_000 : 3_000_000..<3_500_000)
            stage.origin.change(0)
            try stage.download()
            let whole = try stage.ask(nil)
            expectOne(whole.complete && whole.body == stage.body)
        }

        @Test func `a download beside a player of another version keeps one of them`() throws {
            let stage = try VersionStage { $0.pace = 1_500_000 }
            let running = try stage.open("bytes=3000000-")
            let first = try running.read(200_000)
            stage.origin.change(0)
            try stage.download()
            let body = first + (try running.readRest())
            expectOne(stage.isPart(body, from: 3_000_000))
            let whole = try stage.ask(nil)
            expectOne(whole.complete && stage.isOneVersion(whole, from: 0))
        }
    }
}

/// Only the verdict, since a failed comparison of megabytes would be printed byte by byte.
private func expectOne(_ isOne: Bool, sourceLocation: SourceLocation = #_sourceLocation) {
    #expect(isOne, sourceLocation: sourceLocation)
}

/// A daemon before an origin of one film without any validator.
private final class VersionStage: Sendable {
    let origin: ChangingOrigin
    private let story: Story

    init(_ change: (inout OriginTraits) -> Void) throws {
        var traits = OriginTraits()
        traits.validator = .none
        traits.lengths = [6_000_000]
        change(&traits)
        origin = try ChangingOrigin(seed: 7, [traits])
        story = try Story(["--min-free", "0"])
        let film = """
            #EXTM3U
            #EXT-X-VERSION:6
            #EXT-X-TARGETDURATION:10
            #EXT-X-PLAYLIST-TYPE:VOD
            #EXTINF:10,
            \(origin.baseURL)\(origin.path(0))
            #EXT-X-ENDLIST

            """
        story.cdn.put("/film.m3u8", text: film)
    }

    deinit { origin.stop() }

    /// The current version.
    var body: [UInt8] { origin.body(0, origin.version(0)) }

    private func player() -> ScriptedPlayer {
        let player = ScriptedPlayer(story.daemon.baseURL, deadline: .seconds(20))
        player.receiveBuffer = 64 << 10
        return player
    }

    private var path: String { "/" + origin.baseURL + origin.path(0) }

    func ask(_ range: String?) throws -> PlayerResponse {
        try player().get(path, headers: range.map { [("Range", $0)] } ?? [])
    }

    func open(_ range: String) throws -> PlayerStream {
        try player().open(path, headers: [("Range", range)])
    }

    /// Has a span stored, and waits until no transfer runs.
    func store(_ range: Range<Int>) throws {
        let answer = try ask("bytes=\(range.lowerBound)-\(range.upperBound - 1)")
        expectOne(answer.body.elementsEqual(body[range]))
        #expect(try story.settled("slots_in_use") { $0 == 0 } == 0)
    }

    /// Downloads the film, with any outcome.
    func download() throws {
        let url = DownloadStage.encoded(story.cdn.url("/film.m3u8"))
        let order = try player().get("/api/downloads?url=\(url)", method: "POST")
        #expect(order.status == 201, "\(order.text)")
        let ends = ["complete", "failed", "paused"].map { "\"state\":\"\($0)\"" }
        #expect(
            try eventually(within: .seconds(30)) {
                let text = try player().get("/api/downloads").text
                return ends.contains { text.contains($0) }
            })
    }

    /// Whether bytes from an offset on are all of one version.
    func isPart(_ bytes: [UInt8], from start: Int) -> Bool {
        (0...origin.version(0)).contains { version in
            bytes.elementsEqual(origin.body(0, version)[start..<start + bytes.count])
        }
    }

    /// Whether a response is of one version, or is broken before it would be mixed.
    func isOneVersion(_ answer: PlayerResponse, from start: Int) -> Bool {
        (answer.status == 200 || answer.status == 206) && isPart(answer.body, from: start)
    }
}
