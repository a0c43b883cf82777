// The only part of a loop that other threads may hold: a mailbox and an eventfd.
import CLinux
import Glibc
package import Posix
import Synchronization

/// Sends jobs to a loop's thread.
package final class LoopHandle: Sendable {
    /// Work for a loop; the loop is passed in, never captured.
    package typealias Job = @Sendable (EventLoop) -> Void

    /// A job and its call site.
    struct SentJob {
        let run: Job
        let site: CallSite
    }

    private struct Mailbox {
        var jobs: [SentJob] = []
        var isSignalled = false
        var isClosed = false
    }

    private let mailbox = Mutex(Mailbox())
    private let eventDescriptor: OwnedDescriptor

    package init() throws(SystemError) {
        let number = try check("eventfd") { eventfd(0, CInt(EFD_NONBLOCK) | CInt(EFD_CLOEXEC)) }
        eventDescriptor = OwnedDescriptor(taking: number)
    }

    var wakeDescriptor: CInt { eventDescriptor.number }

    /// Runs `job` on the loop's thread, in the order of sending; does not wait for it.
    ///
    /// - Returns: false if the loop has ended; the job is dropped then.
    @discardableResult
    package func enqueue(
        file: StaticString = #fileID, line: UInt = #line, _ job: @escaping Job
    ) -> Bool {
        let (accepted, mustSignal) = mailbox.withLock { mailbox -> (Bool, Bool) in
            if mailbox.isClosed { return (false, false) }
            mailbox.jobs.append(SentJob(run: job, site: CallSite(file, line)))
            let first = !mailbox.isSignalled
            mailbox.isSignalled = true
            return (true, first)
        }
        if mustSignal {
            var one: UInt64 = 1
            // EAGAIN means the counter is full, so the loop will wake anyway.
            _ = write(eventDescriptor.number, &one, 8)
        }
        return accepted
    }

    /// Swaps the mailbox with an empty list under the lock; the caller runs the jobs outside it.
    func takeJobs(into jobs: inout [SentJob]) {
        var count: UInt64 = 0
        _ = read(eventDescriptor.number, &count, 8)
        mailbox.withLock { mailbox in
            mailbox.isSignalled = false
            swap(&mailbox.jobs, &jobs)
        }
    }

    func close() {
        mailbox.withLock { $0.isClosed = true }
    }
}

/// A value that belongs to one loop, carried through other threads and accessed only on its loop.
///
/// `@unchecked Sendable` is sound because `value(on:)` traps on every thread except the loop's own,
/// so the value is never touched elsewhere; other threads only keep the reference alive.
package struct LoopBound<Value>: @unchecked Sendable {
    private let stored: Value
    private let home: LoopHandle

    /// Binds a value to the calling thread's loop.
    package init(_ value: Value, to loop: EventLoop) {
        precondition(loop.isCurrent, "a value is bound on its loop's own thread")
        stored = value
        home = loop.handle
    }

    /// Returns the value on its own loop; traps anywhere else.
    package func value(on loop: EventLoop) -> Value {
        precondition(
            loop.handle === home && loop.isCurrent, "a bound value was opened on a foreign loop")
        return stored
    }

    /// Runs `body` with the value on its own loop.
    package func enqueue(
        file: StaticString = #fileID, line: UInt = #line,
        _ body: @escaping @Sendable (Value, EventLoop) -> Void
    ) {
        home.enqueue(file: file, line: line) { loop in body(self.value(on: loop), loop) }
    }
}
