import Glibc
import Posix
import Testing

@testable import Store

/// Folders of unnamed bodies, and their disks.
@Suite struct UnnamedPlaceTests {
    private func sorted(own: UnnamedPlace, shared: Int64, temporary: Int64) -> [String] {
        UnnamedPlace.sorted(
            [
                own, UnnamedPlace(path: "shared", free: shared),
                UnnamedPlace(path: "temporary", free: temporary),
            ], for: 64)
    }

    @Test func `folders with room keep their order`() {
        let own = UnnamedPlace(path: "own", free: 164, reserve: 100)
        #expect(sorted(own: own, shared: 64, temporary: 500) == ["own", "shared", "temporary"])
    }

    @Test func `a folder without room comes after those with room`() {
        let own = UnnamedPlace(path: "own", free: 500, reserve: 450)
        #expect(sorted(own: own, shared: 10, temporary: 64) == ["temporary", "own", "shared"])
    }

    @Test func `if none has room, the one with the most free bytes is first`() {
        let own = UnnamedPlace(path: "own", free: 40, reserve: 100)
        #expect(sorted(own: own, shared: 10, temporary: -1) == ["own", "shared", "temporary"])
    }

    @Test func `a disk that has just refused bytes is last`() {
        let own = UnnamedPlace(path: "own", free: 1_000, isFailing: true)
        #expect(sorted(own: own, shared: 10, temporary: -1) == ["shared", "temporary", "own"])
    }

    @Test(arguments: [true, false])
    func `a temporary folder on the disk of the cache folder comes after it`(isFailing: Bool) {
        let own = UnnamedPlace(path: "own", free: 500, reserve: 450, isFailing: isFailing)
        let temporary = UnnamedPlace(path: "temporary", free: 500, isOnOwnDisk: true)
        let shared = UnnamedPlace(path: "shared", free: 64)
        let order = UnnamedPlace.sorted([temporary, shared, own], for: 64)
        #expect(order == ["shared", "own", "temporary"])
    }

    @Test func `bodies do not take the bytes that must stay free by way of a temporary folder`()
        throws
    {
        let folder = try TemporaryFolder()
        let temporary = try TemporaryFolder()
        let store = try openStore(folder.path) {
            $0.minFreeBytes = .max
            $0.temporaryFolders = [temporary.path]
        }
        defer { store.close() }
        let object = try store.create(describe("a", total: 100, isStorable: false))
        // In the cache folder, where readers far apart keep less while the disk is short.
        #expect(object.countsForBudget && object.isOnShortDisk)
    }

    @Test(arguments: [true, false])
    func `a full disk suspends storing only if it is that of the cache folder`(
        isOwn: Bool
    ) throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        let header = ObjectHeader(
            pages: 1, generation: 1, description: describe("a", total: 100, isStorable: false))
        // It has no room for any byte (full(4)).
        let full = SharedDescriptor(try openFile("/dev/full", flags: O_RDWR))
        let object = StoredObject(
            header: header, place: .unnamed, descriptor: full, channel: store.core.channel,
            charge: 0, countsForBudget: isOwn)
        let error = #expect(throws: SystemError.self) { try fill(object, 0..<100) }
        #expect(error?.code == ENOSPC)
        #expect(store.statistics().isStoringSuspended == isOwn)
    }
}
