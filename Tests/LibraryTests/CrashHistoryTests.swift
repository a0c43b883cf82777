@testable import DurableState
import Glibc
import Logging
import Posix
import Reactor
import Synchronization
import Testing

@testable import Library

/// The records of crashes at a stop.
@Suite struct CrashHistoryTests {
    @Test func `what starts while a clean stop is saved has no crash counted`() throws {
        let folder = try makeTemporaryFolder("crash-history-tests")
        defer { removeTree(folder) }
        let log = Logger(label: "crash-history-tests") { _ in SwiftLogNoOpLogHandler() }
        let database = try StateDatabase(folder: folder, log: log)
        defer { database.close() }
        // Whether the one that starts waits already when the stop is saved is not seen from here.
        for round in 0..<20 {
            let history = CrashHistory(database, log: log)
            history.begins(.feed, "a")
            let threads = try database.committing.withLock { _ -> [PosixThread] in
                let stop = try PosixThread(name: "stop") { history.endCleanly() }
                let deadline = Monotonic.now() + .seconds(20 as Int64)
                func isSaving() -> Bool { history.state.withLockIfAvailable { _ in true } == nil }
                while !isSaving(), .now() < deadline { sched_yield() }
                let isStarting = Atomic<Bool>(false)
                let start = try PosixThread(name: "start") {
                    isStarting.store(true, ordering: .releasing)
                    history.begins(.download, "b")
                }
                while !isStarting.load(ordering: .acquiring), .now() < deadline { sched_yield() }
                for _ in 0..<100 { sched_yield() }
                return [stop, start]
            }
            for thread in threads { thread.join() }
            #expect(database.records(CrashRecord.self).isEmpty, "round \(round)")
        }
    }
}
