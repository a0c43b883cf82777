import DurableState
import FuzzSupport
import HLS
import Posix
import Testing
import URISyntax

@testable import Model

/// Consecutive versions of playlists, each mutated; `make fuzz` continues with inputs guided by
/// coverage.
@Suite struct EpochSequenceTests {
    @Test(arguments: 0..<4)
    func `no sequence of playlist versions breaks the epochs of live lists`(part: UInt64) {
        for seed in part * 50..<(part + 1) * 50 {
            let fault = EpochSequences.fault(FuzzedReadings(seed: seed))
            #expect(fault == nil, "seed \(seed)")
        }
    }

    @Test(
        arguments: [
            (.min, 0, .doubtful), (.min, 500_000_000_000_000_000, .reset), (.max, 0, .same),
        ] as [(Int64, Int64, EpochTable.Relation)])
    func `a record with a time at the end of its range causes no overflow`(
        received: Int64, targetDuration: Int64, expected: EpochTable.Relation
    ) throws {
        var record = LiveListRecord(
            key: [UInt8](repeating: 0, count: 32), epoch: 0, first: 0, pastLast: 1)
        record.received = received
        record.targetDuration = targetDuration
        let text = "#EXTM3U\n#EXT-X-MEDIA-SEQUENCE:9007199254740991\n#EXTINF:6,\na.ts\n"
        let reading = try #require(
            try LiveReading(
                Array(text.utf8), base: try AbsoluteURL("http://h/l.m3u8"), wasLive: true,
                options: PlaylistReading()))
        let relation = EpochTable.relation(
            of: reading, at: Moment(wall: WallTime(seconds: 1_800_000_000)),
            to: EpochTable.List(record))
        #expect(record.isValid)
        #expect(relation == expected)
    }
}
