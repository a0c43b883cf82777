import Glibc
import HLS
import HTTP
import Logging
import Model
import Posix
import Reactor
import Store
import Synchronization
import Testing
import URISyntax

@testable import Library

/// Administration while a listing runs, and while the daemon stops.
@Suite struct AdministrationWorkerTests {
    @Test func `a change does not wait for a listing`() throws {
        let stage = try TitleStage()
        let worker = try AdministrationWorker(stage.administration())
        defer { worker.stop() }
        let (mayEnd, isChanged) = (try ThreadSemaphore(), try ThreadSemaphore())
        defer { mayEnd.signal() }
        for target in ["/api/titles?limit=5", "/api/titles/0123456789ab", "/api/df"] {
            worker.answer(.get, target) { _ in
                _ = mayEnd.wait(atMost: .seconds(20 as Int64))
                mayEnd.signal()
            }
        }
        worker.answer(.post, "/api/unpin?title=0123456789ab") { _ in isChanged.signal() }
        #expect(isChanged.wait(atMost: .seconds(20 as Int64)))
    }

    @Test func `what nobody has used for a time is removed and counted, but for what is pinned`()
        throws
    {
        let stage = try TitleStage()
        let keys = try ["http://h/1", "http://h/2"].map { url in
            let key = ObjectKey(sha256Of: url)
            try stage.store.keep([1], as: key, at: try AbsoluteURL(url), .segment)
            return key
        }
        try stage.store.pin(title: 9, url: "", keys: [keys[1]])
        let worker = try AdministrationWorker(stage.administration())
        defer { worker.stop() }
        let counters = Counters()
        worker.removeUnused(for: nil, counters: counters)
        // Since an hour from now.
        worker.removeUnused(for: .seconds(-3_600 as Int64), counters: counters)
        let deadline = Monotonic.now() + .seconds(20 as Int64)
        while counters.value(of: .unusedRemoved) == 0, .now() < deadline { sched_yield() }
        #expect(counters.value(of: .unusedRemoved) == 1)
        #expect(stage.store.lookup(keys[0]) == nil && stage.store.lookup(keys[1]) != nil)
    }

    @Test func `a stop carries out no request that waits`() throws {
        let stage = try TitleStage()
        let worker = try AdministrationWorker(stage.administration())
        let (hasBegun, mayEnd) = (try ThreadSemaphore(), try ThreadSemaphore())
        worker.answer(.get, "/api/df") { _ in
            hasBegun.signal()
            _ = mayEnd.wait(atMost: .seconds(20 as Int64))
        }
        let refused = Mutex(0)
        for _ in 0..<5 {
            worker.answer(.get, "/api/df") { answer in
                guard case .failure(let status, _) = answer, status == .serviceUnavailable else {
                    return
                }
                refused.withLock { $0 += 1 }
            }
        }
        #expect(hasBegun.wait(atMost: .seconds(20 as Int64)))
        let stopper = try PosixThread(name: "stop") { worker.stop() }
        let deadline = Monotonic.now() + .seconds(20 as Int64)
        while !worker.isStopping.load(ordering: .acquiring), .now() < deadline { sched_yield() }
        mayEnd.signal()
        stopper.join()
        #expect(refused.withLock { $0 } == 5)
    }
}
