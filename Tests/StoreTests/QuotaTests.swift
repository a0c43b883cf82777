import Glibc
import Posix
import Testing

@testable import Store

/// Quotas, of which statvfs(3) shows nothing: what is stored keeps below them.
@Suite struct QuotaTests {
    private let start = Monotonic(nanoseconds: 1_000_000_000_000)
    private let quota: Int64 = 64 << 20

    private func after(_ seconds: Int64) -> Monotonic { start + .seconds(seconds) }

    @Test func `a refused write has objects take an eighth less, at most every half minute`() {
        var ceiling = QuotaCeiling()
        func refuse(_ used: Int64, at seconds: Int64) -> Bool {
            ceiling.noteRefusal(used: used, at: after(seconds))
        }
        #expect(ceiling.bytes == nil)
        #expect(refuse(quota, at: 0) && ceiling.bytes == quota / 8 * 7)
        #expect(!refuse(quota / 2, at: 29))
        // Others have taken some of the quota since.
        #expect(refuse(quota / 2, at: 30))
        #expect(ceiling.bytes == quota / 16 * 7)
    }

    @Test func `with little stored a refused write has nothing evicted`() {
        var ceiling = QuotaCeiling()
        func refuse(_ used: Int64, at seconds: Int64) -> Bool {
            ceiling.noteRefusal(used: used, at: after(seconds))
        }
        #expect(!refuse(4 << 20, at: 0) && ceiling.bytes == nil)
        #expect(refuse(4 << 20 + 4_096, at: 0))
        #expect(ceiling.bytes == 4 << 20)
    }

    @Test func `without refusals more is tried, in growing steps up to the budget`() {
        var ceiling = QuotaCeiling()
        func raise(below budget: Int64 = 1 << 40, at seconds: Int64) -> Bool {
            ceiling.raise(below: budget, at: after(seconds))
        }
        _ = ceiling.noteRefusal(used: quota, at: start)
        #expect(!raise(at: 1_799))
        #expect(raise(at: 1_800))
        #expect(ceiling.bytes == quota / 16 * 15)
        #expect(!raise(at: 1_801))
        #expect(raise(at: 3_600))
        #expect(ceiling.bytes == quota / 16 * 17)
        #expect(raise(below: quota, at: 5_400) && ceiling.bytes == nil)
    }

    @Test func `a refused file has few objects evicted, and more only if that does not help`() {
        let usage = DiskUsage(budget: 100, minFree: 0)
        func wanted(at seconds: Int64) -> Int {
            usage.forgetWantedFiles()
            usage.noteFileRefused(isQuota: true, at: after(seconds))
            return usage.wantedFiles
        }
        #expect(wanted(at: 0) == 4)
        // Others that were refused at the same time.
        #expect(wanted(at: 1) == 0)
        #expect([30, 60, 90, 120].map { wanted(at: $0) } == [8, 16, 32, 64])
        #expect(wanted(at: 150) == 0)
        usage.noteFileMade()
        #expect(wanted(at: 151) == 4)
        usage.noteFileMade()
        // A disk without files gets room for more at once.
        usage.noteFileRefused(at: after(200))
        #expect(usage.wantedFiles == 64)
    }

    @Test func `a quota has old objects evicted, not all, until the limits are set anew`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path) { $0.indexInterval = .milliseconds(20) }
        defer { store.close() }
        try eventually { store.statistics().isReconciled }
        for name in 0..<8 { try store.add("\(name)", total: 1 << 20) }
        try store.flushed()
        let before = store.statistics()
        store.core.channel.noteStorageFailure(SystemError("open", code: EDQUOT))
        store.core.channel.noteStorageFailure(SystemError("pwrite", code: EDQUOT))
        try eventually { store.statistics().bytes <= before.bytes / 8 * 7 }
        #expect(store.statistics().objects >= 6)
        #expect(store.core.usage.budget == before.bytes - before.bytes / 8)
        store.limit(budget: 1 << 40, minFree: 0)
        try eventually { store.core.usage.budget == 1 << 40 }
    }
}
