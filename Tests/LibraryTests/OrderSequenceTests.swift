import FuzzSupport
import Testing

/// Readings that follow one another, each mutated; `make fuzz` goes on with inputs that
/// coverage guides.
@Suite struct OrderSequenceTests {
    @Test(arguments: 0..<4)
    func `no playlist and no damaged file confuses downloads and recordings`(part: UInt64) {
        for seed in part * 50..<(part + 1) * 50 {
            let fault = OrderSequences.fault(FuzzedReadings(seed: seed))
            #expect(fault == nil, "seed \(seed)")
        }
    }
}
