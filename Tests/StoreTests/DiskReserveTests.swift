import Glibc
import Posix
import Testing

@testable import Store

/// The room that a cache folder keeps for a start and a stop on a full disk.
@Suite final class DiskReserveTests {
    private let folder: String

    init() throws {
        folder = try makeTemporaryFolder("disk-reserve-tests")
        reserve(free: 1 << 30).fill()
    }

    deinit { removeTree(folder) }

    private func reserve(free: Int64, files: Int64? = nil) -> DiskReserve {
        DiskReserve(folder: folder) { _ in FreeRoom(bytes: free, files: files) }
    }

    private var names: Set<String> { get throws { Set(try listFolder(folder).map(\.name)) } }

    @Test func `a stop on a full disk leaves the room for the next start`() throws {
        #expect(try names == ["reserve", "reserve-stop"])
        #expect(!reserve(free: 1 << 30).spendForStop(), "the disk is not full")
        let full = reserve(free: 4_096)
        #expect(full.spendForStop() && !full.spendForStop())
        #expect(try names == ["reserve"])
    }

    @Test func `a stop takes back half of the room that is left`() throws {
        _ = reserve(free: 0).spendForStop()
        reserve(free: 1 << 20).refillAfterStop()
        var found = stat()
        #expect(stat(folder + "/reserve-stop", &found) == 0)
        #expect((1 << 19..<1 << 20).contains(Int64(found.st_blocks) * 512))
    }

    @Test func `a stop without files to make spends half of those that are kept`() throws {
        reserve(free: 1 << 30, files: 1 << 20).fill()
        let all = try names
        #expect(all.count == 9)
        let full = reserve(free: 1 << 30, files: 2)
        #expect(full.spendForStop() && !full.spendForStop())
        #expect(try names == ["reserve", "reserve-stop", "reserve-5", "reserve-6", "reserve-7"])
        full.refillAfterStop()
        #expect(try names == all)
    }

    @Test func `a shortage of files is not called a full disk`() {
        #expect(reserve(free: 1 << 30, files: 2).shortage.contains("inodes"))
        #expect(reserve(free: 4_096, files: 2).shortage == "the disk is full")
        #expect(reserve(free: 4_096).shortage == "the disk is full")
    }

    @Test func `a start whose room is spent takes that for a stop`() throws {
        let full = reserve(free: 4_096)
        #expect(full.spend())
        #expect(try names == ["reserve-stop"])
        #expect(full.spend())
        #expect(try names.isEmpty)
        #expect(!full.spend())
    }
}
