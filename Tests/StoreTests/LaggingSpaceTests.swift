import Posix
import Testing

@testable import Store

/// What deletions freed, on file systems that report it later.
@Suite struct LaggingSpaceTests {
    private let start = Monotonic(nanoseconds: 1_000_000_000_000)

    private func after(_ seconds: Int64) -> Monotonic { start + .seconds(seconds) }

    @Test func `space that is reported at once is not counted twice`() {
        var space = LaggingSpace()
        space.noteDeletion(of: 4_096, before: 10_000, after: 14_096, at: start)
        #expect(space.bytes == 0)
    }

    @Test func `space counts as freed until it is reported`() {
        var space = LaggingSpace()
        for _ in 0..<3 {
            space.noteDeletion(of: 4_096, before: 10_000, after: 10_000, at: start)
        }
        #expect(space.bytes == 3 * 4_096)
        space.observe(free: 10_000 + 4_096, at: after(1))
        #expect(space.bytes == 2 * 4_096)
        space.observe(free: 10_000 + 4_096, at: after(2))
        #expect(space.bytes == 2 * 4_096)
        space.observe(free: 50_000, at: after(3))
        #expect(space.bytes == 0)
    }

    @Test func `space that is never reported does not count for ever`() {
        var space = LaggingSpace()
        space.noteDeletion(of: 4_096, before: 10_000, after: 10_000, at: start)
        space.noteDeletion(of: 8_192, before: 10_000, after: 10_000, at: after(20))
        space.observe(free: 10_000, at: after(29))
        #expect(space.bytes == 3 * 4_096)
        space.observe(free: 10_000, at: after(30))
        #expect(space.bytes == 8_192)
        space.observe(free: 10_000, at: after(50))
        #expect(space.bytes == 0)
    }

    @Test func `sums do not overflow`() {
        var space = LaggingSpace()
        for second in 0..<100 as Range<Int64> {
            space.noteDeletion(of: .max, before: .max, after: .min, at: after(second))
            #expect(space.bytes >= 0)
        }
        space.observe(free: .max, at: after(1_000))
        #expect(space.bytes == 0)
    }
}
