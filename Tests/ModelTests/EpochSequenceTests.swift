import FuzzSupport
import Testing

/// Readings that follow one another, each mutated; `make fuzz` goes on with inputs that
/// coverage guides.
@Suite struct EpochSequenceTests {
    @Test(arguments: 0..<4)
    func `no sequence of readings confuses the memory of live lists`(part: UInt64) {
        for seed in part * 50..<(part + 1) * 50 {
            let fault = EpochSequences.fault(FuzzedReadings(seed: seed))
            #expect(fault == nil, "seed \(seed)")
        }
    }
}
