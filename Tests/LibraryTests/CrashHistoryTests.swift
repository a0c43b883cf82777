@testable import DurableState
import Glibc
import Logging
import Posix
import Reactor
import Synchronization
import Testing

@testable import Library

/// Crashes that are counted over several runs, and their records at a stop.
@Suite final class CrashHistoryTests {
    private let log = Logger(label: "crash-history-tests") { _ in SwiftLogNoOpLogHandler() }
    private let folder: String
    private let database: StateDatabase

    init() throws {
        folder = try makeTemporaryFolder("crash-history-tests")
        database = try StateDatabase(folder: folder, log: log)
    }

    deinit {
        database.close()
        removeTree(folder)
    }

    @Test func `crashes before a recording was stopped do not count for its end`() {
        for _ in 0..<2 { CrashHistory(database, log: log).begins(.recording, "a") }
        let history = CrashHistory(database, log: log)
        #expect(history.verdict(on: .recording, "a") != nil)
        #expect(history.verdict(on: .recordingEnd, "a") == nil)
        // A crash loop at the end is one as well.
        for _ in 0..<2 { CrashHistory(database, log: log).begins(.recordingEnd, "a") }
        #expect(CrashHistory(database, log: log).verdict(on: .recordingEnd, "a") != nil)
    }

    @Test func `a clean stop that cannot be saved counts no crash`() throws {
        let folder = try makeTemporaryFolder("crash-history-tests")
        defer { removeTree(folder) }
        for _ in 0..<CrashCounts.most {
            let database = try StateDatabase(folder: folder, log: log)
            let history = CrashHistory(database, log: log)
            history.begins(.recording, "a")
            // As on a full disk, each later write fails.
            database.close()
            history.endCleanly()
        }
        let database = try StateDatabase(folder: folder, log: log)
        defer { database.close() }
        #expect(CrashHistory(database, log: log).verdict(on: .recording, "a") == nil)
        #expect(database.records(CrashRecord.self).isEmpty)
    }

    @Test func `what starts while a clean stop is saved has no crash counted`() throws {
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
