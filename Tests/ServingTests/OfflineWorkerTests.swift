import CachePolicy
import Glibc
import HLS
import HTTP
@testable import Model
import Posix
import Reactor
import Routing
import Store
import Synchronization
import Testing
import TimeShiftSupport
import TimeShifting
import URISyntax

@testable import Playlists

/// The making of offline forms while the daemon stops.
@Suite final class OfflineWorkerTests {
    private let folder: String
    private let table: TimeShiftTable

    init() throws {
        folder = try makeTemporaryFolder("offline-worker")
        table = try TimeShiftTable(in: folder)
    }

    deinit {
        table.thread.stop()
        table.store.close()
        removeTree(folder)
    }

    private func question() throws -> OfflineWorker.Question {
        let url = try AbsoluteURL("http://h/m.m3u8")
        let resource = Resource(
            .init(
                url: url, cacheKey: CacheKey(url: url.text),
                session: Session(id: SessionID(7), fields: Fields()), role: .playlist,
                policy: .media, forwardedFields: Fields()))
        let object = try table.store.create(
            ObjectDescription(
                key: resource.key, url: url.text, role: ResourceRole.playlist.letter, head: [],
                total: 4, created: .now(), isStorable: true))
        return OfflineWorker.Question(resource: resource, object: object, variables: [:])
    }

    @Test func `a stop makes no form that waits, and rejects each request once`() throws {
        let worker = try OfflineWorker(
            PlaylistSources(
                store: table.store, names: table.names, live: table.live, health: OriginHealth(),
                parents: ParentChoice(ProxySettings().parents), memory: table.memory,
                revival: Revival(), limits: .standard))
        let (hasBegun, mayEnd) = (try ThreadSemaphore(), try ThreadSemaphore())
        let isTaken = worker.perform(orReject: {}) {
            hasBegun.signal()
            _ = mayEnd.wait(atMost: .seconds(20 as Int64))
        }
        #expect(isTaken && hasBegun.wait(atMost: .seconds(20 as Int64)))
        let (made, rejected) = (Counter(), Counter())
        let asked = try question()
        worker.ask(asked) { form in (form == nil ? rejected : made).add() }
        worker.lacking(asked) { urls in (urls == nil ? rejected : made).add() }
        let isQueued = worker.perform(orReject: { rejected.add() }) { made.add() }
        #expect(isQueued)
        let stopper = try PosixThread(name: "stop") { worker.stop() }
        let deadline = Monotonic.now() + .seconds(20 as Int64)
        while !worker.isStopping.load(ordering: .acquiring), .now() < deadline { sched_yield() }
        mayEnd.signal()
        stopper.join()
        #expect(made.value == 0 && rejected.value == 3)
        worker.ask(asked) { form in (form == nil ? rejected : made).add() }
        #expect(made.value == 0 && rejected.value == 4)
    }

    private final class Counter: Sendable {
        private let count = Atomic<Int>(0)

        var value: Int { count.load(ordering: .relaxed) }

        func add() { count.add(1, ordering: .relaxed) }
    }
}
