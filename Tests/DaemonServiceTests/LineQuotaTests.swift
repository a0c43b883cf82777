// How many lines of a kind the log takes.
import DaemonService
import Posix
import Testing

struct LineQuotaTests {
    private func time(_ seconds: Double) -> Monotonic {
        Monotonic(nanoseconds: 1_000_000_000_000 + Int64(seconds * 1e9))
    }

    @Test func `lines beyond the quota are left out until their window is over`() {
        let quota = LineQuota()
        let written = (0..<1_000).filter { index in
            quota.take("a disk fails", now: time(Double(index) / 1_000)).isWritten
        }
        #expect(written == Array(0..<LineQuota.most))
        #expect(quota.take("a disk fails", now: time(9.9)).isWritten == false)
        #expect(quota.take("a disk fails", now: time(10)).isWritten)
    }

    @Test func `what was left out is counted, once, with the next line of any kind`() {
        let quota = LineQuota()
        for _ in 0..<LineQuota.most + 7 { _ = quota.take("a disk fails", now: time(0)) }
        #expect(quota.take("an origin fails", now: time(1)).leftOut.isEmpty)
        let next = quota.take("an origin fails", now: time(11))
        #expect(next.isWritten)
        #expect(next.leftOut.map(\.kind) == ["a disk fails"])
        #expect(next.leftOut.map(\.count) == [7])
        #expect(quota.take("an origin fails", now: time(12)).leftOut.isEmpty)
    }

    @Test func `a flood of one kind leaves the others their lines`() {
        let quota = LineQuota()
        for _ in 0..<1_000 { _ = quota.take("a disk fails", now: time(0)) }
        #expect(quota.take("the daemon stops", now: time(1)).isWritten)
    }

    @Test func `kinds without end share one quota`() {
        let quota = LineQuota()
        let written = (0..<10_000).count { quota.take("kind \($0)", now: time(0)).isWritten }
        #expect(written < 200)
        let next = quota.take("kind", now: time(10))
        #expect(next.leftOut.map(\.count) == [10_000 - written])
    }
}
