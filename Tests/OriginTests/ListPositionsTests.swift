import HLS
import Logging
import Model
import Posix
import Reactor
import Store
import Synchronization
import Testing

@testable import Origin

/// Fetches that wait for a long list to be parsed on another thread.
@Suite struct ListPositionsTests {
    @Test func `a fetch that is put off is known until it is cancelled`() throws {
        let folder = try makeTemporaryFolder("list-positions")
        defer { removeTree(folder) }
        let store = try ObjectStore(
            folder: folder,
            configuration: StoreConfiguration(budgetBytes: 1 << 40, minFreeBytes: 0),
            log: Logger(label: "list-positions-tests"))
        defer { store.close() }
        let segment = "#EXTINF:6,\nsegment.ts\n"
        let count = Int(TextWorker.longText) / segment.utf8.count + 1
        let text =
            "#EXTM3U\n#EXT-X-TARGETDURATION:6\n" + String(repeating: segment, count: count)
        let list = try keepPlaylist(text, at: "http://h/live.m3u8", in: store)
        let texts = try TextWorker(counters: Counters())
        defer { texts.stop() }
        let found = Mutex<[Bool]>([])
        let thread = try LoopThread(name: "positions") { loop in
            let positions = ListPositions(texts, limits: .standard, loop: loop)
            let id = FetchID()
            // The loop learns of the end of the parsing after this job only.
            let isPutOff = positions.reads(list, before: id) {}
            let waits = positions.waits(id)
            positions.cancel(id)
            found.withLock { $0 = [isPutOff, waits, positions.waits(id)] }
        }
        thread.stopAndJoin()
        #expect(found.withLock { $0 } == [true, true, false])
    }
}
