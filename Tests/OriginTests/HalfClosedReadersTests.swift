import Model
import Synchronization
import Testing

@testable import Origin

/// Which requests of half-closed clients are in the way of others.
@Suite struct HalfClosedReadersTests {
    @Test func `nobody is in the way while no request waits`() {
        for areTaken in [false, true] {
            #expect(!AwaitedSlots(hosts: [], areSlotsTaken: areTaken).include("a"))
        }
    }

    @Test func `a request that waits for its host is let through by those to that host`() {
        let awaited = AwaitedSlots(hosts: ["a"], areSlotsTaken: false)
        #expect(awaited.include("a") && !awaited.include("b"))
    }

    @Test func `a request that waits for its host is let through by those that it redirected`() {
        let awaited = AwaitedSlots(hosts: ["panel"], areSlotsTaken: false)
        #expect(awaited.include("cdn", redirectedBy: "panel"))
        #expect(!awaited.include("cdn", redirectedBy: "other"))
        #expect(!awaited.include("cdn", redirectedBy: "cdn"))
    }

    @Test func `a request that waits for a slot is let through by any`() {
        let awaited = AwaitedSlots(hosts: ["a"], areSlotsTaken: true)
        #expect(awaited.include("a") && awaited.include("b"))
    }

    @Test func `each is ended once, and not after it was answered`() {
        let ended = Mutex(0)
        var readers = HalfClosedReaders()
        let ids = (0..<3).map { _ in FetchID() }
        for id in ids { readers.add(id) { ended.withLock { $0 += 1 } } }
        readers.remove(ids[0])
        readers.end { $0 != ids[2] }
        #expect(ended.withLock { $0 } == 1)
        #expect(!readers.contains(ids[1]) && readers.contains(ids[2]) && !readers.isEmpty)
        readers.end { _ in true }
        #expect(ended.withLock { $0 } == 2 && readers.isEmpty)
    }
}
