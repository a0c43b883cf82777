import Posix
import Reactor
import Synchronization
import Testing

@testable import Library

/// Background work of which one piece runs at a time.
@Suite struct WorkThreadTests {
    @Test func `the next work and a join wait for the work before`() throws {
        let thread = WorkThread()
        let mayEnd = try ThreadSemaphore()
        let ended = Mutex<[String]>([])
        try thread.start("first") {
            _ = mayEnd.wait(atMost: .seconds(10 as Int64))
            ended.withLock { $0.append("first") }
        }
        mayEnd.signal()
        try thread.start("second") { ended.withLock { $0.append("second") } }
        let beforeJoin = ended.withLock { $0 }
        #expect(beforeJoin.contains("first"))
        thread.join()
        let afterJoin = ended.withLock { $0 }
        #expect(Set(afterJoin) == ["first", "second"])
        // Nothing is left to wait for.
        thread.join()
    }
}
