import FuzzSupport
import Testing

/// Readings that follow one another, each mutated; `make fuzz` goes on with inputs that
/// coverage guides.
@Suite struct ReadingSequenceTests {
    @Test(arguments: 0..<8)
    func `no sequence of readings ends the process or grows without bound`(part: UInt64) {
        for seed in part * 20..<(part + 1) * 20 {
            let fault = ReadingSequences.fault(FuzzedReadings(seed: seed))
            #expect(fault == nil, "seed \(seed)")
        }
    }
}
