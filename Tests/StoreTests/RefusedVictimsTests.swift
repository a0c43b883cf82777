import Glibc
import Posix
import Testing

@testable import Store

/// Which objects are tried again after the disk refused to delete their files.
@Suite struct RefusedVictimsTests {
    private let names: Range<UInt128> = 0..<20

    private func at(_ seconds: Int64) -> Monotonic {
        Monotonic(nanoseconds: 0) + Interval.seconds(seconds)
    }

    private func refuse(
        _ name: UInt128, _ refused: inout RefusedVictims, code: CInt = EACCES,
        seconds: Int64 = 0
    ) -> Bool {
        let error = SystemError("unlink", code: code)
        return refused.noteRefusal(of: name, error, at: at(seconds))
    }

    /// Returns what knows these objects as refused.
    private func refusing() -> RefusedVictims {
        var refused = RefusedVictims(interval: Interval.seconds(5 as Int64))
        for name in names { _ = refuse(name, &refused) }
        return refused
    }

    private func selectable(_ refused: RefusedVictims) -> [UInt128] {
        names.filter { !refused.contains($0) }
    }

    @Test func `a few are tried again in each interval, and all of them in turn`() {
        var refused = refusing()
        refused.retry(at: at(4))
        #expect(selectable(refused) == [])
        var tried: Set<UInt128> = []
        for seconds in [5, 10, 15] as [Int64] {
            refused.noteDeletion(of: 100)
            refused.retry(at: at(seconds))
            let chosen = selectable(refused)
            #expect(!chosen.isEmpty && chosen.count <= RefusedVictims.trials)
            tried.formUnion(chosen)
            for name in chosen {
                #expect(!refused.isNews(name))
                let isOver = refuse(name, &refused, seconds: seconds)
                #expect(!isOver)
            }
        }
        #expect(tried.count == names.count)
    }

    @Test func `all are tried again once one could be deleted`() throws {
        var refused = refusing()
        refused.noteDeletion(of: 100)
        #expect(selectable(refused) == [])
        refused.retry(at: at(5))
        let first = try #require(selectable(refused).first)
        refused.noteDeletion(of: first)
        #expect(selectable(refused).count == names.count)
    }

    @Test func `a search ends after many refusals, or one that holds for every file`() {
        var refused = RefusedVictims(interval: Interval.seconds(5 as Int64))
        var ends: [UInt128] = []
        for name in 0..<40 as Range<UInt128> where refuse(name, &refused) { ends.append(name) }
        #expect(ends == [15, 31])
        for code in [EROFS, ENOSPC, EDQUOT] {
            let isOver = refuse(50, &refused, code: code)
            #expect(isOver && !refused.contains(50))
        }
    }
}
