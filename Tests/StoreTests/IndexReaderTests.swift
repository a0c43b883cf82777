import GRDB
import Posix
import Reactor
import Synchronization
import Testing

@testable import Store

/// Reads of the index that run at the same time.
@Suite struct IndexReaderTests {
    @Test(.timeLimit(.minutes(1)))
    func `a server loop does not wait for long reads of the index`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        store.saveLongURL(id: [3], url: "u")
        try eventually { store.core.unsavedLongURLs.withLock { $0.urls.isEmpty } }
        let (isReading, mayEnd) = (try ThreadSemaphore(), try ThreadSemaphore())
        var readers: [PosixThread] = []
        for _ in 0..<ObjectIndex.longReaders {
            readers.append(
                try PosixThread(name: "reader") {
                    _ = try? store.core.index.pool.read { _ in
                        isReading.signal()
                        _ = mayEnd.wait(atMost: .seconds(60 as Int64))
                    }
                })
        }
        let areReading = readers.allSatisfy { _ in
            isReading.wait(atMost: .seconds(10 as Int64))
        }
        #expect(areReading)
        // It would wait for ever otherwise.
        if areReading { #expect(store.longURL(id: [3]) == "u") }
        for _ in readers { mayEnd.signal() }
        for reader in readers { reader.join() }
    }
}
