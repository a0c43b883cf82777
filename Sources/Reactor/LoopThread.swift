// Threads that run a loop or a closure; both can be joined.
import CLinux
import Glibc
package import Posix
import Synchronization

/// A thread that its owner joins.
package final class PosixThread: Sendable {
    private let thread: Mutex<pthread_t?>

    /// Starts a thread with all signals blocked.
    ///
    /// - Parameters:
    ///   - name: shown by ps and perf; at most 15 bytes are kept.
    ///   - body: the code to run; the thread ends when it returns.
    /// - Throws: `SystemError` if the system cannot create another thread.
    package init(name: String, _ body: @escaping @Sendable () -> Void) throws(SystemError) {
        let box = Unmanaged.passRetained(ThreadBody(name: name, body: body))
        var made = pthread_t()
        let status = pthread_create(
            &made, nil,
            { raw in
                guard let raw else { return nil }
                let body = Unmanaged<ThreadBody>.fromOpaque(raw).takeRetainedValue()
                clinux_block_all_signals()
                clinux_name_thread(body.name)
                body.body()
                return nil
            }, box.toOpaque())
        guard status == 0 else {
            box.release()
            throw SystemError("pthread_create", code: status)
        }
        thread = Mutex(made)
    }

    /// Waits for the thread's end; blocks.
    ///
    /// A second call returns immediately.
    package func join() {
        let waiting = thread.withLock { thread in
            let taken = thread
            thread = nil
            return taken
        }
        if let waiting { pthread_join(waiting, nil) }
    }
}

private final class ThreadBody: Sendable {
    let name: String
    let body: @Sendable () -> Void

    init(name: String, body: @escaping @Sendable () -> Void) {
        self.name = name
        self.body = body
    }
}

/// A thread that runs an event loop.
package final class LoopThread: Sendable {
    /// The handle of the loop.
    package let handle: LoopHandle
    private let thread: PosixThread

    /// Starts the thread; `setUp` is the loop's first job.
    ///
    /// - Parameters:
    ///   - name: shown by ps and perf; at most 15 bytes are kept.
    ///   - clock: the source of the loop's times and timers.
    ///   - onHold: called for work that held the loop for too long; nil for loops whose work may
    ///     block.
    ///   - setUp: the loop's first job.
    /// - Throws: `SystemError` if the system has no descriptor or no thread left.
    package init(
        name: String, clock: LoopClock = .system, onHold: LoopHold.Observer? = nil,
        _ setUp: @escaping LoopHandle.Job
    ) throws(SystemError) {
        let handle = try LoopHandle()
        let handover = Handover(try EventLoop.Resources(handle: handle, clock: clock))
        self.handle = handle
        handle.enqueue(setUp)
        thread = try PosixThread(name: name) {
            guard let resources = handover.take() else { return }
            EventLoop(resources, onHold: onHold).run()
        }
    }

    /// Carries the loop's resources to its thread.
    private final class Handover: Sendable {
        private let resources: Mutex<EventLoop.Resources?>

        init(_ resources: sending EventLoop.Resources) {
            self.resources = Mutex(resources)
        }

        func take() -> sending EventLoop.Resources? {
            resources.withLock { held in
                let taken = held
                held = nil
                return taken
            }
        }
    }

    /// Stops the loop after the jobs sent so far, and waits for the thread; blocks.
    package func stopAndJoin() {
        handle.enqueue { $0.stop() }
        thread.join()
    }
}
