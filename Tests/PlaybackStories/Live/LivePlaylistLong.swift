import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// A stream that is watched for long: memory, descriptors and disk do not grow.
extension Stories {
    @Suite(.tags(.timed)) struct LivePlaylistLong {}
}

/// Watches a stream part by part, as a low-latency player does.
private final class Watching {
    let stage: LowLatencyStage
    private let player: ScriptedPlayer
    private(set) var parts = 0

    init(_ stage: LowLatencyStage) {
        self.stage = stage
        player = stage.story.player()
    }

    func watch(_ count: Int) throws {
        for _ in 0..<count {
            let next = stage.next
            let (segment, part) = stage.stream.position
            stage.stream.advance()
            let list = try player.get(next)
            let link = try #require(lastPartLink(list), "\(list.status)")
            let body = try player.get(link).body
            guard body == stage.stream.bytes(ofPart: part, in: segment) else {
                throw ScenarioFailure("part \(part) of segment \(segment) is another")
            }
            parts += 1
        }
    }
}

extension Stories.LivePlaylistLong {
    @Test
    func `a live stream's resources do not grow with watching time`() throws {
        let stage = try LowLatencyStage(["--cache-size", "1MB"], segmentBytes: 16_000)
        let watching = Watching(stage)
        // SLUICE_LONG_LIVE sets a longer time; 6,000 parts took 200 KiB in their second half.
        let count = getenv("SLUICE_LONG_LIVE").flatMap { Int(String(cString: $0)) } ?? 400
        try watching.watch(count / 2)
        let daemon = stage.story.daemon
        let before = (memory: daemon.anonymousBytes, descriptors: daemon.descriptorCount)
        try watching.watch(count / 2)
        let grown = daemon.anonymousBytes - before.memory
        let descriptors = daemon.descriptorCount
        print("\(watching.parts) parts: \(grown >> 10) KiB more, \(descriptors) descriptors")
        #expect(grown < 2 << 20)
        #expect(descriptors <= before.descriptors + 16)
        #expect(try stage.story.settled("stored_bytes") { $0 <= 1_000_000 } <= 1_000_000)
        #expect(eventually { diskBytes(stage.story.cacheFolder) < 3_000_000 })
        // Nothing was requested twice.
        #expect(stage.reloads == watching.parts)
    }
}
