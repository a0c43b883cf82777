import FuzzSupport
import Testing

/// Consecutive versions of playlists, each mutated; `make fuzz` continues with inputs guided by
/// coverage.
@Suite struct ReadingSequenceTests {
    @Test(arguments: 0..<8)
    func `no sequence of playlist versions ends the process or grows without bound`(part: UInt64) {
        for seed in part * 20..<(part + 1) * 20 {
            let fault = ReadingSequences.fault(FuzzedReadings(seed: seed))
            #expect(fault == nil, "seed \(seed)")
        }
    }
}
