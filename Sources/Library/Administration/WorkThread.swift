// The thread of background work of which one piece runs at a time.
import Posix
import Reactor
import Synchronization

/// Runs successive pieces of work, each on a thread of its own.
final class WorkThread: Sendable {
    private let thread = Mutex<PosixThread?>(nil)

    /// Starts work on a new thread.
    ///
    /// The work before must have ended, or be about to end: this waits for it.
    ///
    /// - Throws: `SystemError` if the system cannot create another thread.
    func start(_ name: String, _ work: @escaping @Sendable () -> Void) throws(SystemError) {
        let made = try PosixThread(name: name, work)
        let former = thread.withLock { thread in
            let former = thread
            thread = made
            return former
        }
        former?.join()
    }

    /// Waits for the end of the work that runs, if any; blocks.
    func join() {
        let running = thread.withLock { thread in
            defer { thread = nil }
            return thread
        }
        running?.join()
    }
}
