@testable import Origin
import Posix
import Testing

/// How often origins that do not answer are probed.
@Suite struct OriginProbeTests {
    @Test(arguments: [1, 40]) func `a few origins are probed every four seconds`(count: Int) {
        #expect(OriginProbes.longestDelay(of: count) == .seconds(4 as Int64))
    }

    @Test(arguments: [41, 256, 5_000])
    func `many origins are probed ten times a second altogether`(count: Int) {
        let delay = OriginProbes.longestDelay(of: count)
        #expect(delay.nanoseconds == Int64(count) * 100_000_000)
    }
}
