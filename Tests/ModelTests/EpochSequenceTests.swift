import FuzzSupport
import Testing

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
}
