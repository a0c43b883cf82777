import FuzzSupport
import Testing

/// Consecutive versions of playlists, each mutated; `make fuzz` continues with inputs guided by
/// coverage.
@Suite struct OrderSequenceTests {
    @Test(arguments: 0..<4)
    func `no playlist and no damaged record breaks downloads and recordings`(part: UInt64) {
        for seed in part * 50..<(part + 1) * 50 {
            let fault = OrderSequences.fault(FuzzedReadings(seed: seed))
            #expect(fault == nil, "seed \(seed)")
        }
    }
}
